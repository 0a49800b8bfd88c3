"""Once-flows as a whole: how far they are, and the plan of what is left.

There is no other memory of them than the table: a flow is done when its partitions are published.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from backfill_engine.catalog import Catalog
from backfill_engine.errors import SettingsError
from backfill_engine.lake.table_log import TableLog
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.planning.planning import Planner
from backfill_engine.orchestration.planning.plans import Plan
from backfill_engine.orchestration.runs.option_declarations import Launch, RunOptions
from backfill_engine.orchestration.runs.run_tags import BEHIND_THE_DAILY_RUN
from backfill_engine.tables.once_flows import OnceFlow

INACTIVE, PENDING, PARTLY, PUBLISHED = "inactive", "pending", "partly", "published"


@dataclass(frozen=True)
class FlowState:
    """How far a once-flow is.

    Attributes:
        flow: its name.
        table: that it fills, `layer/name`.
        first: key of its first partition.
        last: of its last one, included.
        state: `inactive`, `pending` (nothing is published), `partly` or `published`.
        partitions: how many it fills.
        published: how many of them are published.
        rows: in these.
        runs: that published them last, sorted by id.
        missing: keys of the others, ascending.
    """

    flow: str
    table: str
    first: str
    last: str
    state: str
    partitions: int = 0
    published: int = 0
    rows: int = 0
    runs: Sequence[str] = ()
    missing: Sequence[str] = ()

    def __str__(self) -> str:
        """Says it in one line."""
        if self.state == INACTIVE:
            return f"{self.flow}: not active: add it to BACKFILL_ONCE_FLOWS"
        if self.state == PUBLISHED:
            runs = f"run{'s' * (len(self.runs) > 1)} {', '.join(run[:8] for run in self.runs)}"
            return (
                f"{self.flow}: {self.table} {self.first}...{self.last} is published in {runs}, "
                "nothing to do"
            )
        return (
            f"{self.flow}: {self.published} of {self.partitions} partitions of {self.table} are "
            "published"
        )


def find_flow(catalog: Catalog, name: str) -> tuple[str, OnceFlow]:
    """Finds an active once-flow by its name, with the key of its table.

    Raises:
        SettingsError: if there is none, or it isn't active here.
    """
    key, flow = _find_declared(catalog, name)
    if not list_flow_keys(catalog, name):
        raise SettingsError(
            f"the once-flow {name} is not active here: add it to BACKFILL_ONCE_FLOWS, where the "
            "daemon and the webserver see it too; it has to begin before BACKFILL_BEGIN"
        )
    return key, flow


def _find_declared(catalog: Catalog, name: str) -> tuple[str, OnceFlow]:
    declared = catalog.once_flows
    if name not in declared:
        raise SettingsError(f"there is no once-flow {name}: choose of {', '.join(declared)}")
    return declared[name]


def read_flow_state(catalog: Catalog, name: str, log: TableLog) -> FlowState:
    """Reads how far a once-flow is from the log of its table. No JVM.

    Args:
        catalog: of the code location.
        name: of the flow, active or not.
        log: of its table.

    Raises:
        SettingsError: if there is no such flow.
        TableError: if the log can't be read.
    """
    keys = list_flow_keys(catalog, name)
    if not keys:
        _, flow = _find_declared(catalog, name)
        days = flow.begin, flow.end - dt.timedelta(days=1)
        first, last = map(log.table.grain.find_key, days)
        return FlowState(name, log.table.key, first, last, INACTIVE)
    publishes = log.publishes
    done = [publishes[key] for key in keys if key in publishes]
    whole = PUBLISHED if len(done) == len(keys) else PARTLY
    return FlowState(
        flow=name,
        table=log.table.key,
        first=keys[0],
        last=keys[-1],
        state=whole if done else PENDING,
        partitions=len(keys),
        published=len(done),
        rows=sum(publish.rows for publish in done),
        runs=sorted({publish.record.run_id for publish in done}),
        missing=[key for key in keys if key not in publishes],
    )


def list_flow_keys(catalog: Catalog, name: str) -> list[str]:
    """Lists the partitions that a once-flow fills, ascending; of one that isn't active, none.

    Raises:
        SettingsError: if there is no such flow.
    """
    key, flow = _find_declared(catalog, name)
    history = catalog.histories.get(key)
    if history is None or flow not in history.flows:
        return []
    grain, end = catalog.find_table(key).grain, history.find_end(flow)
    first, last = grain.find_key(flow.begin), grain.find_key(end)
    every = find_partitions_def(catalog.find_table(key)).get_partition_keys()
    return [one for one in every if first <= one < last]


def plan_flow(catalog: Catalog, planner: Planner, name: str, *, full_refresh: bool) -> Plan | None:
    """Plans what is left of an active once-flow; None if that is nothing.

    Args:
        catalog: of the code location.
        planner: knows its table.
        name: of the flow.
        full_refresh: all of it, though it is published.

    Raises:
        BackfillError: if there is no such flow, or what it reads can't be listed.
    """
    key, flow = find_flow(catalog, name)
    table, keys = catalog.find_table(key), list_flow_keys(catalog, name)
    left = (
        keys if full_refresh else read_flow_state(planner.catalog, name, planner.logs[key]).missing
    )
    if not left:
        return None
    options = _build_options(flow, full_refresh=full_refresh)
    return planner.plan({table: (left[0], left[-1])}, among={key: left}, options=options)


def _build_options(flow: OnceFlow, *, full_refresh: bool) -> RunOptions:
    if not flow.max_files:
        return RunOptions()
    return RunOptions(chunk=f"files={flow.max_files}", restart=full_refresh or None)


def build_flow_launch(catalog: Catalog, name: str, *, full_refresh: bool, reason: str) -> Launch:
    """Builds what the runs of a once-flow are told.

    Args:
        catalog: of the code location.
        name: of the flow.
        full_refresh: whether what is published is computed again.
        reason: why, in a person's words; empty if nobody said.
    """
    _, flow = find_flow(catalog, name)
    return Launch(
        **_build_options(flow, full_refresh=full_refresh).model_dump(),
        reason=reason,
        priority=BEHIND_THE_DAILY_RUN,
        once=name,
    )
