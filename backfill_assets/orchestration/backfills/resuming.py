"""Resumes a backfill: asks Dagster for one of just what is not published of it and can be now."""

import getpass
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagster import AssetKey, DagsterInstance, DagsterRun, PartitionsDefinition

from backfill_assets.catalog import find_table
from backfill_assets.errors import BackfillError
from backfill_assets.lake.partitions import build_partitions
from backfill_assets.lake.protections import read_protections
from backfill_assets.lake.table_log import read_log
from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.orchestration.backfills.backfills import Backfill
from backfill_assets.orchestration.backfills.progress import Progress, State
from backfill_assets.orchestration.due.downstream import fit_title, request_backfill
from backfill_assets.orchestration.due.readiness import Readiness, find_readiness
from backfill_assets.orchestration.instance.dagster_internals import (
    BULK_ACTION_TERMINAL_STATUSES,
    AssetGraph,
)
from backfill_assets.orchestration.instance.partition_definitions import find_partitions_def
from backfill_assets.orchestration.instance.ranges import describe_ranges, format_ranges
from backfill_assets.orchestration.runs.run_options import build_asset_config, read_override
from backfill_assets.orchestration.runs.run_tags import LAUNCHED_BY_TAG, REASON_TAG
from backfill_assets.orchestration.runs.runs_at_work import find_partitions_at_work
from backfill_assets.orchestration.status.attempts import Attempt, find_attempts
from backfill_assets.publishing.inputs import PinnedInputs, list_landing
from backfill_assets.publishing.recipes import Recipe
from backfill_assets.resources import SPARK_REMOTE_TAG

RESUMES_TAG = "backfill_assets/resumes"
"""Tag of a backfill and its runs: the backfill, or the run, that it resumes."""

_SHOWN_OF_ID = 8
_UNCHANGED = "withheld, and neither its input nor its code is another one since"
_WISHES_OF_RUNS = (REASON_TAG, SPARK_REMOTE_TAG, "dagster/priority")


@dataclass(frozen=True)
class Resumption:
    """What is to be asked for again.

    Attributes:
        backfill: what is resumed.
        partitions: by asset, upstream ones first; assets without any are left out.
        left_alone: by table key, why the others that are not published are left alone.
    """

    backfill: Backfill
    partitions: Mapping[AssetKey, Sequence[str]]
    left_alone: Mapping[str, Mapping[str, str]]

    @property
    def count(self) -> int:
        """Partitions over all tables."""
        return sum(map(len, self.partitions.values()))

    def describe_partitions(self) -> dict[str, list[str]]:
        """Describes them as ranges, by table."""
        return {
            key.to_user_string(): format_ranges(_find_def(key.to_user_string()), keys)
            for key, keys in self.partitions.items()
        }

    def describe_left_alone(self) -> list[str]:
        """Describes what is left alone, and why: a line for each table and reason."""
        return [
            f"{table} {line}"
            for table, why in self.left_alone.items()
            for line in describe_ranges(_find_def(table), why)
        ]


@dataclass(frozen=True)
class Resumer:
    """Finds what can be asked for again.

    Attributes:
        instance: the Dagster instance.
        graph: of all assets.
        warehouse: the tables.
        recipes: how each is made, by table key.
        landing_root: root of the landing zone.
    """

    instance: DagsterInstance
    graph: AssetGraph
    warehouse: Warehouse
    recipes: Mapping[str, Recipe]
    landing_root: str

    def find(self, progress: Progress, *, take_all: bool) -> Resumption:
        """Finds what is not published of a backfill, and can be as things stand now.

        What was withheld can if its input or its code is another one since; what reads others, if
        these are published, or are to be before; what is protected, if the backfill says why.

        Args:
            progress: of the backfill.
            take_all: also what was withheld and has the same input and code.

        Raises:
            BackfillError: while it is at work, or what resumes it already, or other runs on
                partitions of it; or if what is protected can't be read.
        """
        backfill = progress.backfill
        _refuse_at_work(progress)
        self._refuse_twice(backfill)
        at_work = find_partitions_at_work(self.instance, self.graph)
        protections = read_protections(self.warehouse)
        chosen: dict[AssetKey, list[str]] = {}
        left: dict[str, dict[str, str]] = {}
        for asset_key in self.graph.toposorted_asset_keys:
            table = asset_key.to_user_string()
            if table not in progress.states:
                continue
            log = read_log(self.warehouse, find_table(table))
            attempts = find_attempts(self.instance, log, list(progress.states[table]))
            keys = [
                key
                for key, state in progress.states[table].items()
                if state is not State.PUBLISHED
                or (key in attempts and attempts[key].status != "published")
            ]
            _refuse_busy(table, set(keys) & at_work.get(asset_key, frozenset()))
            readiness = find_readiness(self.instance, self.graph, asset_key, keys, expected=chosen)
            left[table] = dict(readiness.blocked)
            if not take_all:
                tried = {key: attempts[key] for key in keys if key in attempts}
                left[table] |= dict.fromkeys(
                    self._find_unchanged(table, tried, readiness, chosen), _UNCHANGED
                )
            if not read_override(_find_run(backfill), asset_key):
                protected = protections.find(log.table, keys)
                left[table] |= {
                    key: f"protected: {one.describe()}" for key, one in protected.items()
                }
            rest = [key for key in keys if key not in left[table]]
            if rest:
                chosen[asset_key] = rest
        return Resumption(backfill, chosen, {key: why for key, why in left.items() if why})

    def _refuse_twice(self, backfill: Backfill) -> None:
        for record in self.instance.get_backfills():
            resumes = (record.tags or {}).get(RESUMES_TAG) == backfill.id
            if resumes and record.status not in BULK_ACTION_TERMINAL_STATUSES:
                raise BackfillError(
                    f"backfill {record.backfill_id} resumes {backfill.id} already, and is "
                    f"{record.status.value.lower()}: `backfill-assets watch {record.backfill_id}`; "
                    "nothing was requested"
                )

    def _find_unchanged(
        self,
        table: str,
        attempts: Mapping[str, Attempt],
        readiness: Readiness,
        chosen: Mapping[AssetKey, Collection[str]],
    ) -> list[str]:
        """Finds the withheld ones whose input and code are what they were withheld with."""
        recipe = self.recipes[table]
        withheld = {
            key: attempt
            for key, attempt in attempts.items()
            if attempt.status == "withheld"
            and attempt.certificate is not None
            and attempt.certificate.code_version == recipe.code_version
        }
        if not withheld:
            return []
        keys = list(withheld)
        listing = list_landing(recipe, self.landing_root, build_partitions(recipe.table, keys))
        pinned = PinnedInputs(
            target=read_log(self.warehouse, recipe.table),
            inputs={one.key: read_log(self.warehouse, one) for one in recipe.inputs},
            listing=listing,
            windows=readiness.windows,
        )
        consumed = pinned.describe_consumed(keys)
        missing = {one.key for one in listing.missing} if listing else set[str]()
        coming = {
            key
            for name, windows in readiness.windows.items()
            for key in keys
            if not set(windows.get(key, ())).isdisjoint(
                chosen.get(AssetKey.from_user_string(name), ())
            )
        }
        unchanged: list[str] = []
        for key, attempt in withheld.items():
            assert attempt.certificate is not None
            then = attempt.certificate.held_back_from.get(key)
            # What was never computed waited for its input: for files, or for what it reads.
            same = consumed[key].state == then if then is not None else key in missing
            if same and key not in coming:
                unchanged.append(key)
        return unchanged


def request_resumption(
    instance: DagsterInstance, graph: AssetGraph, found: Resumption
) -> tuple[str, str]:
    """Asks Dagster for a backfill that resumes another, told what that was told.

    Returns:
        Its id and its title.
    """
    backfill = found.backfill
    title = fit_title(f"resumes {backfill.id[:_SHOWN_OF_ID]}: {backfill.title}")
    tags = {
        **_find_wishes(backfill),
        LAUNCHED_BY_TAG: getpass.getuser(),
        RESUMES_TAG: backfill.id,
    }
    config = _find_config(backfill, list(found.partitions))
    backfill_id = request_backfill(
        instance, graph, found.partitions, title=title, tags=tags, run_config=config
    )
    return backfill_id, title


def _find_wishes(backfill: Backfill) -> dict[str, str]:
    """Finds the tags that say what was wished, and not what became of a run."""
    if backfill.record is not None:
        return dict(backfill.tags)
    return {name: backfill.tags[name] for name in _WISHES_OF_RUNS if name in backfill.tags}


def _find_config(backfill: Backfill, keys: Sequence[AssetKey]) -> Mapping[str, Any] | None:
    if backfill.record is not None:
        return backfill.record.run_config
    return build_asset_config(backfill.chain.runs[0], keys) or None


def _find_run(backfill: Backfill) -> DagsterRun:
    """Finds a run that was told what what resumes it is: of a backfill, as each of its own is."""
    record = backfill.record
    if record is None:
        return backfill.chain.runs[0]
    return DagsterRun("", tags=dict(backfill.tags), run_config=dict(record.run_config or {}))


def _refuse_at_work(progress: Progress) -> None:
    if progress.is_over:
        return
    backfill = progress.backfill
    raise BackfillError(
        f"{backfill.kind} {backfill.id} is at work ({progress.at_work}): wait for it "
        f"(`backfill-assets watch {backfill.id[:_SHOWN_OF_ID]}`) or cancel it first; nothing was "
        "requested"
    )


def _refuse_busy(table: str, busy: Collection[str]) -> None:
    if busy:
        listed = ", ".join(format_ranges(_find_def(table), sorted(busy)))
        raise BackfillError(
            f"other runs are at work on {table} {listed}: wait for them or cancel them; nothing "
            "was requested"
        )


def _find_def(table: str) -> PartitionsDefinition:
    return find_partitions_def(find_table(table))
