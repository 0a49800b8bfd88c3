"""The one place for what is private in Dagster, each name with the reason why no public one does.

Nothing else imports `dagster._core` or leans on a convention that Dagster doesn't document; the
test of this module says in one line which of them a new version of Dagster has broken.
"""

import secrets
import string

from dagster import AssetKey, DagsterInstance, DagsterRun

# The UI shows a check as not run for a partition unless its evaluation names the materialization
# that it is about, and the public evaluation takes that as an instance of this class.
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as TargetMaterialization,
)

# A backfill of chosen partitions of several assets: public only over HTTP, for which a webserver
# would have to run.
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset

# What `repository_def.asset_graph` returns; there is no public name to annotate it by.
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph as AssetGraph

# From how many upstream partitions on Dagster doesn't compare whether a partition is unsynced: its
# docs don't say.
from dagster._core.definitions.data_version import (
    SKIP_PARTITION_DATA_VERSION_DEPENDENCY_THRESHOLD as UNCOMPARED_PARTITIONS,
)

# An asset's metadata carries the catalog that it was built of: an object, which no public value is.
from dagster._core.definitions.metadata.metadata_value import ObjectMetadataValue

# `execute_job` takes one to run a job of a code location, and nothing public makes it.
from dagster._core.definitions.reconstruct import ReconstructableRepository

# What a run did that an instance never saw: the public way has no runs and no plans; and that of
# observing takes no time. An instance stores events as a batch that it is told are one.
from dagster._core.events import (
    AssetMaterializationPlannedData,
    AssetObservationData,
    DagsterEventBatchMetadata,
    StepMaterializationData,
)

# What public methods of the instance take and return for a backfill: its class, how it stands, and
# which of these states are ends.
from dagster._core.execution.backfill import (
    BULK_ACTION_TERMINAL_STATUSES,
    BulkActionStatus,
    PartitionBackfill,
)

# An instance class of one's own, which `dagster.yaml` may name, has to return the defaults.
from dagster._core.instance.ref import InstanceRef

# By what an event is known that belongs to no run.
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID

# What an instance is given of a job whose run it creates: by the ops the job is known.
from dagster._core.remote_representation.external import RemoteJob

# Arguments and results of public methods of the instance and its storage: no public name has them.
from dagster._core.scheduler.instigation import InstigatorStatus
from dagster._core.snap import JobSnap
from dagster._core.storage.asset_check_execution_record import (
    AssetCheckExecutionRecordStatus as CheckStatus,
)

# Dagster's storages of events store each in a transaction of its own; to extend one is private.
from dagster._core.storage.event_log import SqlEventLogStorage, SqliteEventLogStorage
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    SqlEventLogStorageTable,
)

# The states of all partitions of an asset at once: the public method compares each key that it is
# given with each state, which was a third of the time of a plan over a year of hours.
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

# How an instance keeps which class stands for a part of it, and with what configuration: called
# public where it is, and no public module has it.
from dagster._serdes import ConfigurableClassData

__all__ = [
    "AUTO_RETRY_RUN_ID_TAG",
    "BACKFILL_TAG",
    "BULK_ACTION_TERMINAL_STATUSES",
    "COMPOSITE_STORAGE",
    "EVENTS_ARE_LOGGED",
    "HIDDEN_TAG_PREFIX",
    "ROOT_RUN_ID_TAG",
    "RUNLESS_JOB_NAME",
    "RUNLESS_RUN_ID",
    "RUN_KEY_TAG",
    "UNCOMPARED_PARTITIONS",
    "WILL_RETRY_TAG",
    "AssetCheckExecutionsTable",
    "AssetGraph",
    "AssetGraphSubset",
    "AssetMaterializationPlannedData",
    "AssetObservationData",
    "BulkActionStatus",
    "CheckStatus",
    "ConfigurableClassData",
    "DagsterEventBatchMetadata",
    "InstanceRef",
    "InstigatorStatus",
    "JobSnap",
    "ObjectMetadataValue",
    "PartitionBackfill",
    "ReconstructableRepository",
    "RemoteJob",
    "SqlEventLogStorage",
    "SqlEventLogStorageTable",
    "SqliteEventLogStorage",
    "StepMaterializationData",
    "TargetMaterialization",
    "find_run_assets",
    "get_and_update_asset_status_cache_value",
    "get_input_data_version_tag",
    "get_input_event_pointer_tag",
    "make_new_backfill_id",
]

# Names of tags, written out, as they are stored and seen; a test says if Dagster has others.
BACKFILL_TAG = "dagster/backfill"
"""Tag of the runs of a backfill: its id."""

ROOT_RUN_ID_TAG = "dagster/root_run_id"
"""Tag of a retry: the run that all of them go back to."""

RUN_KEY_TAG = "dagster/run_key"
"""Tag of a run that a sensor or a schedule requested: its key, by which none is requested twice."""

WILL_RETRY_TAG = "dagster/will_retry"
"""Tag of a run that ended: whether a retry of it is to come."""

AUTO_RETRY_RUN_ID_TAG = "dagster/auto_retry_run_id"
"""Tag of a run that ended: the retry of it that came."""

HIDDEN_TAG_PREFIX = ".dagster/"
"""How a tag begins that the UI shows to nobody."""

# Which storage is to be the default, if the three parts of it are of different makes; a
# `dagster.yaml` that names one of them gets it, too.
COMPOSITE_STORAGE = ("dagster._core.storage.legacy_storage", "CompositeStorage")
"""Module and name of a storage of given parts."""

# A range run logs one materialization for each partition, with that partition's figures and data
# version. The event that Dagster would add for every partition of the output, the same for all, is
# turned off by the key with which it marks outputs whose events are logged already.
EVENTS_ARE_LOGGED = {"__source_asset_observation__": True}
"""Metadata of a result."""


def make_new_backfill_id() -> str:
    """Makes an id for a backfill, of the length of those that Dagster makes."""
    return "".join(secrets.choice(string.ascii_lowercase) for _ in range(8))


def get_input_data_version_tag(upstream: AssetKey) -> str:
    """Returns the tag of a materialization that says which data version of an upstream it read."""
    return f"dagster/input_data_version/{upstream.to_user_string()}"


def get_input_event_pointer_tag(upstream: AssetKey) -> str:
    """Returns the tag of a materialization that says at which event it read an upstream."""
    return f"dagster/input_event_pointer/{upstream.to_user_string()}"


# Only a run of chosen assets says which (`asset_selection`); one of a job, or of some of its ops,
# has them in its plan alone, and the instance's way to read that has no public name.
def find_run_assets(instance: DagsterInstance, run: DagsterRun) -> frozenset[AssetKey]:
    """Finds the assets that a run was to materialize, however it was started."""
    if run.execution_plan_snapshot_id is None:
        return frozenset(run.asset_selection or ())
    plan = instance.get_execution_plan_snapshot(run.execution_plan_snapshot_id)
    return frozenset(plan.asset_selection)
