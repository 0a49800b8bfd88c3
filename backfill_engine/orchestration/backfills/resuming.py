"""Resumes a backfill: asks Dagster for one of just what is not published of it and can be now.

A pause keeps Dagster from requesting the rest of a backfill: it takes a run that paused for one
that failed, and requests nothing that reads from it: days that read hours, or tables of other
ranges. The runs that go on after it Dagster doesn't wait for. So a sensor requests the rest.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

from dagster import (
    AssetKey,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    PartitionsDefinition,
    RunsFilter,
)

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError, HistoryError
from backfill_engine.lake.origins import Origin
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.protections import read_protections
from backfill_engine.lake.served_versions import find_unread
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.backfills.backfills import (
    Backfill,
    find_last_requested,
    read_backfill,
)
from backfill_engine.orchestration.backfills.progress_reader import Progress, State
from backfill_engine.orchestration.due.downstream import fit_title, request_backfill
from backfill_engine.orchestration.due.readiness import (
    Readiness,
    find_readiness,
    find_upstream_tables,
    get_partitions_def,
)
from backfill_engine.orchestration.due.row_movements import find_moved_since, find_rows_for
from backfill_engine.orchestration.instance.dagster_internals import (
    BULK_ACTION_TERMINAL_STATUSES,
    AssetGraph,
)
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import (
    describe_ranges,
    find_ranges,
    format_ranges,
)
from backfill_engine.orchestration.runs.chains import find_partitions_at_work, find_why_at_work
from backfill_engine.orchestration.runs.pausing import find_why_none_may_go
from backfill_engine.orchestration.runs.run_options import build_asset_config, read_override
from backfill_engine.orchestration.runs.run_tags import (
    COMMAND_TAG,
    IN_BACKGROUND,
    LAUNCHED_BY_TAG,
    LAUNCHED_CODE_TAG,
    OPERATION_TAG,
    PAUSED_TAG,
    REASON_TAG,
    SETTLED,
    WENT_ON,
    find_chain,
    tag_origin,
)
from backfill_engine.orchestration.status.attempts import find_attempts
from backfill_engine.proof.certificates import Certificate
from backfill_engine.publishing.inputs import PinnedInputs, list_landing
from backfill_engine.publishing.serving import choose_served
from backfill_engine.settings import ENGINE_TAG
from backfill_engine.spark.remotes import SPARK_REMOTE_TAG

RESUMES_TAG = "backfill_assets/resumes"
"""Tag of a backfill and its runs: the backfill, or the run, that it resumes."""

_SHOWN_OF_ID = 8
_UNCHANGED = "withheld, and neither its input nor its code is another one since"
_WISHES_OF_RUNS = (REASON_TAG, OPERATION_TAG, SPARK_REMOTE_TAG, ENGINE_TAG, "dagster/priority")
_OF_ONE_LAUNCH = (LAUNCHED_CODE_TAG, LAUNCHED_BY_TAG, COMMAND_TAG)


@dataclass(frozen=True)
class Resumption:
    """What is to be asked for again.

    Attributes:
        catalog: of the code location.
        backfill: what is resumed.
        partitions: by asset, upstream ones first; assets without any are left out.
        left_alone: by table key, why the others that are not published are left alone.
    """

    catalog: Catalog
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
            key.to_user_string(): format_ranges(_find_def(self.catalog, key.to_user_string()), keys)
            for key, keys in self.partitions.items()
        }

    def describe_left_alone(self) -> list[str]:
        """Describes what is left alone, and why: a line for each table and reason."""
        return [
            f"{table} {line}"
            for table, why in self.left_alone.items()
            for line in describe_ranges(_find_def(self.catalog, table), why)
        ]


@dataclass(frozen=True)
class Resumer:
    """Finds what can be asked for again.

    Attributes:
        instance: the Dagster instance.
        graph: of all assets.
        warehouse: the tables.
        catalog: of the code location.
        landing_root: root of the landing zone.
    """

    instance: DagsterInstance
    graph: AssetGraph
    warehouse: Warehouse
    catalog: Catalog
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
        if not progress.is_over:
            raise BackfillError(
                f"{backfill.kind} {backfill.id} is at work ({progress.at_work}): wait for it "
                f"(`backfill-assets backfill watch {backfill.id[:_SHOWN_OF_ID]}`) or cancel it "
                "first; nothing was requested"
            )
        lacking: dict[str, Sequence[str]] = {}
        for table, states in progress.states.items():
            attempts = find_attempts(self.instance, self._read_log(table), list(states))
            lacking[table] = [
                key
                for key, state in states.items()
                if state is not State.PUBLISHED
                or (key in attempts and attempts[key].status != "published")
            ]
        return self.find_ready(backfill, lacking, take_all=take_all)

    def find_ready(
        self, backfill: Backfill, lacking: Mapping[str, Sequence[str]], *, take_all: bool = False
    ) -> Resumption:
        """Finds which of some partitions can be published as things stand now.

        Args:
            backfill: of which no run is at work.
            lacking: its partitions, by table key.
            take_all: as in `find`.

        Raises:
            BackfillError: as `find`.
        """
        self._refuse_twice(backfill)
        at_work = find_partitions_at_work(self.instance, self.graph)
        protections = read_protections(self.warehouse)
        chosen: dict[AssetKey, list[str]] = {}
        left: dict[str, dict[str, str]] = {}
        for asset_key in self.graph.toposorted_asset_keys:
            table = asset_key.to_user_string()
            keys = lacking.get(table, ())
            if not keys:
                continue
            if busy := set(keys) & at_work.get(asset_key, frozenset()):
                listed = ", ".join(format_ranges(_find_def(self.catalog, table), sorted(busy)))
                raise BackfillError(
                    f"other runs are at work on {table} {listed}: wait for them or cancel them; "
                    "nothing was requested"
                )
            log = self._read_log(table)
            readiness = find_readiness(
                self.instance,
                self.graph,
                asset_key,
                keys,
                expected=chosen,
                unread=find_unread(log),
            )
            left[table] = dict(readiness.blocked)
            if not take_all:
                unchanged = self._find_unchanged(log, keys, readiness, chosen)
                left[table] |= dict.fromkeys(unchanged, _UNCHANGED)
            if not read_override(find_model_run(backfill), asset_key):
                protected = protections.find(log.table, keys)
                left[table] |= {
                    key: f"protected: {found.describe()}" for key, found in protected.items()
                }
            if rest := [key for key in keys if key not in left[table]]:
                chosen[asset_key] = rest
        left = {table: reasons for table, reasons in left.items() if reasons}
        return Resumption(self.catalog, backfill, chosen, left)

    def _read_log(self, table: str) -> TableLog:
        return read_log(self.warehouse, self.catalog.find_table(table))

    def _find_unchanged(
        self,
        log: TableLog,
        keys: Sequence[str],
        readiness: Readiness,
        chosen: Mapping[AssetKey, Collection[str]],
    ) -> list[str]:
        """Finds withheld partitions of which neither the input nor the code is another one since.

        Of an input whose rows say who reads them, the rows that moved since are asked; the mapping
        gives too much and too little. Of what is to be published before, only the mapping is known.
        """
        recipe = choose_served(self.catalog.recipes[log.table.key], log)
        withheld: dict[str, list[str]] = {}
        certificates: dict[str, Certificate] = {}
        for key, attempt in find_attempts(self.instance, log, keys).items():
            then = attempt.certificate
            is_coming = any(
                not set(windows.get(key, ())).isdisjoint(
                    chosen.get(AssetKey.from_user_string(name), ())
                )
                for name, windows in readiness.windows.items()
            )
            if attempt.status != "withheld" or then is None or is_coming:
                continue
            if then.code_version == recipe.code_version:
                certificates[then.run_id] = then
                withheld.setdefault(then.run_id, []).append(key)
        if not withheld:
            return []
        partitions = build_partitions(recipe.table, [*chain.from_iterable(withheld.values())])
        pinned = PinnedInputs(
            target=log,
            inputs={table.key: read_log(self.warehouse, table) for table in recipe.inputs},
            listing=list_landing(recipe, self.landing_root, partitions),
            windows=readiness.windows,
        )
        by_rows = find_rows_for(self.graph, find_asset_key(recipe.table))
        return [
            key
            for run_id, of_run in withheld.items()
            for key in _find_unchanged_since(certificates[run_id], of_run, pinned, by_rows)
        ]

    def _refuse_twice(self, backfill: Backfill) -> None:
        for record in self.instance.get_backfills():
            resumes = (record.tags or {}).get(RESUMES_TAG) == backfill.id
            if resumes and record.status not in BULK_ACTION_TERMINAL_STATUSES:
                raise BackfillError(
                    f"backfill {record.backfill_id} resumes {backfill.id} already, and is "
                    f"{record.status.value.lower()}: "
                    f"`backfill-assets backfill watch {record.backfill_id}`; nothing was requested"
                )


def request_resumption(
    instance: DagsterInstance, graph: AssetGraph, found: Resumption, origin: Origin
) -> tuple[str, str]:
    """Asks Dagster for a backfill that resumes another, told what that was told.

    Args:
        instance: the Dagster instance.
        graph: of all assets.
        found: what is to be asked for.
        origin: who asks for it, by which command.

    Returns:
        Its id and its title.
    """
    backfill, record = found.backfill, found.backfill.record
    # What was wished; not what became of a run, nor by which code.
    if record is None:
        wishes = {tag: text for tag, text in backfill.tags.items() if tag in _WISHES_OF_RUNS}
        config = build_asset_config(backfill.chain.runs[0], list(found.partitions)) or None
    else:
        wishes = {tag: text for tag, text in backfill.tags.items() if tag not in _OF_ONE_LAUNCH}
        config = record.run_config
    title = fit_title(f"resumes {backfill.id[:_SHOWN_OF_ID]}: {backfill.title}")
    tags = {**wishes, **tag_origin(origin), RESUMES_TAG: backfill.id}
    backfill_id = request_backfill(
        instance, graph, found.partitions, title=title, tags=tags, run_config=config
    )
    return backfill_id, title


def find_model_run(backfill: Backfill) -> DagsterRun:
    """Finds a run with the options and tags of a backfill's runs, for the runs that resume it.

    Of a backfill of Dagster's, the instance has no such run; its id is the backfill's.
    """
    record = backfill.record
    if record is None:
        return backfill.chain.runs[0]
    config = dict(record.run_config or {})
    tags = {**IN_BACKGROUND, **backfill.tags}
    return DagsterRun("", run_id=backfill.id, tags=tags, run_config=config)


def _find_def(catalog: Catalog, table: str) -> PartitionsDefinition:
    return find_partitions_def(catalog.find_table(table))


def _find_unchanged_since(
    then: Certificate, keys: Sequence[str], pinned: PinnedInputs, by_rows: Mapping[str, str]
) -> list[str]:
    """Finds those of some partitions, which a run withheld, that it would read the same of."""
    inputs, moved = dict(pinned.inputs), set[str]()
    ended = datetime.fromisoformat(then.started_at).timestamp() + then.seconds
    for name, column in by_rows.items():
        source, version = pinned.inputs[name], then.input_versions.get(name)
        # Without the version as it was, only the mapping is known.
        if not isinstance(version, int) or not source.had(version, ended):
            continue
        try:
            earlier = source.as_of(version)
        except HistoryError:
            continue
        moved |= find_moved_since(pinned.target.table, source, column, keys, since=version)
        inputs[name] = earlier
    # What a mapping gives of these is set back, and so doesn't count: their rows do.
    consumed = replace(pinned, inputs=inputs).describe_consumed(keys)
    absent = pinned.listing.missing if pinned.listing else ()
    missing = {partition.key for partition in absent}
    unchanged: list[str] = []
    for key in keys:
        state = then.held_back_from.get(key)
        # What was never computed waited for its input: for files, or for what it reads.
        same = consumed[key].state == state if state is not None else key in missing
        if same and key not in moved:
            unchanged.append(key)
    return unchanged


_LISTED_RUNS = 200


@dataclass(frozen=True)
class UnrequestedRun:
    """A run that no run of a backfill was requested for before.

    Attributes:
        model: a run with the options and tags that this one is to have; its id is the backfill's.
        continues: the paused run that it goes on after.
        assets: upstream ones first.
        ends: first and last partition key.
    """

    model: DagsterRun
    continues: str
    assets: tuple[AssetKey, ...]
    ends: tuple[str, str]


@dataclass
class UnrequestedPartitions:
    """What a look at backfills that were paused came to; filled while it goes on.

    Attributes:
        requested: the runs to request.
        waiting: backfills that are not done yet, and why, a line each.
        left_alone: what was never requested and can't go, and why, a line each.
    """

    requested: list[UnrequestedRun] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    left_alone: list[str] = field(default_factory=list)


def look_for_unrequested(resumer: Resumer, *, now: datetime) -> UnrequestedPartitions:
    """Looks at the backfills of which a paused run was gone on with; each until nothing is left.

    What reads from these comes at the next look, once that is published. What can't go then,
    as what it reads was withheld, is left to `backfill retry`.

    Args:
        resumer: finds what can go.
        now: UTC.
    """
    found, instance = UnrequestedPartitions(), resumer.instance
    paused = RunsFilter(statuses=[DagsterRunStatus.FAILURE], tags={PAUSED_TAG: WENT_ON})
    by_chain: dict[str, list[DagsterRun]] = {}
    for run in instance.get_runs(paused, limit=_LISTED_RUNS)[::-1]:
        by_chain.setdefault(find_chain(run), []).append(run)
    for chain_id, runs in by_chain.items():
        before = len(found.requested)
        try:
            why = _look(resumer, chain_id, runs[-1].run_id, found, now=now)
        except BackfillError as error:
            why = str(error)
        if why:
            found.waiting.append(f"backfill {chain_id}: {why}")
        elif len(found.requested) == before:
            for run in runs:
                instance.add_run_tags(run.run_id, {PAUSED_TAG: SETTLED})
    return found


def _look(
    resumer: Resumer, chain_id: str, continues: str, found: UnrequestedPartitions, *, now: datetime
) -> str:
    """Looks at one backfill; returns why not all of it can be requested yet."""
    catalog, instance, graph = resumer.catalog, resumer.instance, resumer.graph
    backfill = read_backfill(catalog, instance, chain_id)
    if backfill.record is None or backfill.is_cancelled:
        return ""
    if why := find_why_at_work(instance, backfill.chain, now=now):
        return why
    if backfill.error:  # Of Dagster's own: a person is to look at it first.
        return ""
    requested = find_last_requested(catalog, instance, backfill.chain.runs)
    lacking = {
        table: [key for key in keys if key not in requested.get(table, ())]
        for table, keys in backfill.targets.items()
    }
    left = resumer.find_ready(backfill, lacking)
    found.left_alone += left.describe_left_alone()
    ranges = {
        key.to_user_string(): find_ranges(get_partitions_def(graph, key), keys)
        for key, keys in left.partitions.items()
    }
    model, reasons = find_model_run(backfill), []
    for tables in group_tables(catalog, graph, ranges):
        if _reads_others(graph, tables, ranges):
            continue  # It comes at a later look.
        assets = tuple(map(AssetKey.from_user_string, tables))
        if why := find_why_none_may_go(instance, model, assets, now=now):
            reasons.append(why)
        else:
            ends = ranges[tables[0]]
            found.requested += [UnrequestedRun(model, continues, assets, each) for each in ends]
    return "; ".join(dict.fromkeys(reasons))


Ranges = Sequence[tuple[str, str]]


def group_tables(
    catalog: Catalog, graph: AssetGraph, ranges: Mapping[str, Ranges]
) -> list[tuple[str, ...]]:
    """Groups tables so that each group can be one run for each of its ranges.

    Run in their order, each finds what it reads.

    Args:
        catalog: of the code location.
        graph: of all assets.
        ranges: first and last keys by table, upstream ones first.
    """
    groups: list[list[str]] = []
    placed: dict[str, int] = {}
    for table in ranges:
        at = max((placed.get(key, -1) for key in _list_upstream(graph, table)), default=-1)
        if at < 0 or not _is_alike(catalog, ranges, groups[at][0], table):
            groups.append([])
            at = len(groups) - 1
        groups[at].append(table)
        placed[table] = at
    return [tuple(group) for group in groups]


def _reads_others(graph: AssetGraph, group: Sequence[str], ranges: Mapping[str, Ranges]) -> bool:
    """Tells whether any of a group reads a table of `ranges` that is not of the group."""
    return any(
        upstream in ranges and upstream not in group
        for table in group
        for upstream in _list_upstream(graph, table)
    )


def _list_upstream(graph: AssetGraph, table: str) -> list[str]:
    upstream = find_upstream_tables(graph, AssetKey.from_user_string(table))
    return [key.to_user_string() for key in upstream]


def _is_alike(catalog: Catalog, ranges: Mapping[str, Ranges], table: str, other: str) -> bool:
    same_grain = catalog.find_table(table).grain == catalog.find_table(other).grain
    return same_grain and list(ranges[table]) == list(ranges[other])
