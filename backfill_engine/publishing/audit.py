"""Computes the partitions of a window once, measures them in one pass, and judges each.

Small chunks are audited together, so that each costs a commit and not a pass of Spark of its own.
To plan, compile and start what computes and measures a few thousand rows takes longer than to run
it. Which verdict a partition gets does not depend on what is measured together with it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from backfill_engine.engines.sessions import find_engine
from backfill_engine.errors import TableError
from backfill_engine.lake.landing import FileFault
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.reader import SPARK_ERRORS, add_folder
from backfill_engine.lake.stored_declarations import find_new_fields
from backfill_engine.lake.table_log import TableLog
from backfill_engine.publishing.inputs import PinnedInputs, split_chunks
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import Run
from backfill_engine.publishing.write_modes.choosing import find_write_mode
from backfill_engine.publishing.write_modes.mode import mark_filtered_out
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.quality.judging import judge_partitions
from backfill_engine.quality.measures import keep_rows, measure_partitions
from backfill_engine.rules.measured import Landed, PartitionMeasures, PartitionProfile, list_some
from backfill_engine.rules.verdicts import Verdict
from backfill_engine.sources.input_window import InputWindow
from backfill_engine.tables.declarations import Column, Table, build_ddl


@dataclass(frozen=True)
class Audit:
    """What was computed and found.

    Attributes:
        window: what could be computed; without the partitions of broken files.
        frame: the kept rows, with audit columns; of the window, and maybe more.
        measures: by partition key, ascending.
        verdicts: likewise.
        broken_files: files that can't be read, with each partition that they may hold records of.
        is_whole: whether all kept rows are of the window.
    """

    window: InputWindow
    frame: DataFrame
    measures: Mapping[str, PartitionMeasures]
    verdicts: Mapping[str, Verdict]
    broken_files: tuple[FileFault, ...] = ()
    is_whole: bool = True

    def restrict(self, partitions: Iterable[Partition]) -> "Audit":
        """Returns what was found of some of its partitions; the frame has the rows of all."""
        keys = {partition.key for partition in partitions}
        left = tuple(partition for partition in self.window.partitions if partition.key in keys)
        listing = self.window.listing.restrict(left) if self.window.listing else None
        return Audit(
            replace(self.window, partitions=left, listing=listing),
            self.frame,
            {key: measured for key, measured in self.measures.items() if key in keys},
            {key: verdict for key, verdict in self.verdicts.items() if key in keys},
            tuple(fault for fault in self.broken_files if fault.partition.key in keys),
            is_whole=self.is_whole and len(left) == len(self.window.partitions),
        )

    def find_fields(self, keys: Collection[str], *, stored: Collection[str]) -> tuple[str, ...]:
        """Finds which extra fields the rows of partitions have in the table.

        Args:
            keys: of the partitions.
            stored: those that the table has already.
        """
        seen = (self.measures[key].fields_seen or () for key in keys)
        known = set(stored).union(*seen)
        return tuple(name for name in self.window.extra_fields if name in known)

    @property
    def rows(self) -> DataFrame:
        """The rows to publish: neither rejected nor left out. Of the frame, so maybe more."""
        return keep_rows(self.frame)


@contextmanager
def audit_window(
    recipe: Recipe,
    window: InputWindow,
    run: Run,
    provisional: Mapping[str, str],
    *,
    adds_fields: bool = True,
) -> Iterator[Audit]:
    """Audits a window; the frame is kept for as long as the context is open.

    New fields of the source are columns of the frame; of the table they become columns where rows
    that have them are published.

    Args:
        recipe: how the table is made.
        window: what to compute; its partitions are compared with what its table's log has.
        run: says how what is computed gets together with what is published.
        provisional: by key, what of a partition's input is not there yet, or not final.
        adds_fields: whether the frame gets them; where nothing is published nobody needs them.
    """
    table = find_write_mode(run.options).add_rules(
        recipe.table, is_landed=window.listing is not None
    )
    recipe = replace(recipe, table=table)
    broken_files = tuple(window.listing.faults) if window.listing else ()
    window = _leave_out(window, broken_files)
    engine = find_engine(window.spark)
    frame: DataFrame | None = None
    try:
        while True:
            try:
                frame = _keep(recipe, window, run.options)
                measures = _measure(recipe, window, frame)
                counts = recipe.count_source if window.partitions else None
                source_records = counts(window) if counts else {}
            except SPARK_ERRORS as error:
                # Once more without what can't be read, until the rest can.
                found = window.listing.find_broken(str(error)) if window.listing else ()
                if not found:
                    raise
                broken_files += tuple(found)
                window = _leave_out(window, found)
                if frame is not None:
                    engine.release(frame)
            else:
                break
        landed = window.listing.describe_landed() if window.listing else {}
        measures = _add_landed_bytes(measures, landed)
        verdicts = _judge(recipe, window, measures, source_records, landed, run, provisional)
        new_fields = _find_fields_to_add(recipe, window, measures, verdicts)
        if new_fields and adds_fields:
            window = replace(window, extra_fields=(*window.extra_fields, *new_fields))
            engine.release(frame)
            frame = _keep(recipe, window, run.options)
            # The verdicts stand: all that changed is that the new fields are kept.
            measures = _add_landed_bytes(_measure(recipe, window, frame), landed)
        yield Audit(window, frame, measures, verdicts, broken_files)
    finally:
        if frame is not None:
            engine.release(frame)


def describe_faults(broken_files: Iterable[FileFault]) -> dict[str, str]:
    """Describes the files that can't be read, by the key of each partition that has any."""
    faults: dict[str, list[str]] = {}
    for broken in broken_files:
        faults.setdefault(broken.partition.key, []).append(f"{broken.name} {broken.fault}")
    return {key: list_some(described) for key, described in faults.items()}


def compute_rows(recipe: Recipe, window: InputWindow, options: WriteOptions) -> DataFrame:
    """Builds the contents that the window's partitions are to have, and audit columns.

    Nothing is computed yet.

    Args:
        recipe: how the table is made.
        window: its partitions and pinned inputs.
        options: of the run.

    Raises:
        TableError: if a declared column isn't computed, or as another type.
    """
    rows = recipe.compute(window)
    _check_computed(rows, window.stored_table)
    computed = mark_filtered_out(rows, window, options)
    rows = add_folder(find_write_mode(options).combine(computed, window, options), recipe.table)
    if not recipe.table.folder_column:
        return rows
    # Rows of a folder together, so that each folder becomes one file.
    return rows.repartition(recipe.table.folder_column)


def infer_columns(recipe: Recipe, window: InputWindow) -> tuple[Recipe, TableLog]:
    """Returns a recipe, and the log of its table, with all columns of a table that infers them.

    A column that is stored already keeps its place and type.

    Args:
        recipe: how the table is made.
        window: any of its partitions, with their inputs.
    """
    if not recipe.table.infers:
        return recipe, window.target
    computed = recipe.compute(window).schema.fields
    types = {field.name: field.dataType.simpleString() for field in computed}
    table = window.table.complete(types)
    return replace(recipe, table=table), replace(window.target, table=table)


def _check_computed(rows: DataFrame, table: Table) -> None:
    """Refuses what Delta would refuse to write once all is computed: it casts nothing."""
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    placed = {table.folder_by}  # The recipe adds it.
    for column in table.columns:
        computed = types.get(column.name)
        if computed is None and column.name not in placed:
            raise TableError(
                f"{table.key}: `{column.name}` is declared and not computed: select it in the "
                "compute function; nothing was written"
            )
        # A null without a type becomes one of any.
        wanted = column.parsed_type.of_values
        if computed and "void" not in computed and (found := _spell(computed)) != wanted:
            raise TableError(
                f"{table.key}: `{column.name}` is computed as {found}, and {wanted} is declared: "
                "cast it in the compute function; nothing was written"
            )


def _spell(computed: str) -> str:
    """Spells a type of Spark's as declarations do; one that none can have, as Spark does."""
    return Column("", computed).type


def _keep(recipe: Recipe, window: InputWindow, options: WriteOptions) -> DataFrame:
    if not window.partitions:
        # All that was asked for is in files that can't be read.
        nothing = build_ddl(window.stored_table.columns, constraints=False)
        return window.spark.createDataFrame([], nothing)
    return find_engine(window.spark).keep(compute_rows(recipe, window, options))


def _measure(recipe: Recipe, window: InputWindow, frame: DataFrame) -> dict[str, PartitionMeasures]:
    fields = (*recipe.source_fields, *window.extra_fields) if recipe.source_fields else ()
    return measure_partitions(frame, recipe.table, window.partitions, fields=fields)


def _add_landed_bytes(
    measures: Mapping[str, PartitionMeasures], landed: Mapping[str, Landed]
) -> dict[str, PartitionMeasures]:
    return {
        key: replace(measured, landed_bytes=landed[key].bytes) if key in landed else measured
        for key, measured in measures.items()
    }


def _leave_out(window: InputWindow, broken_files: Iterable[FileFault]) -> InputWindow:
    """Returns the window without the partitions of broken files."""
    lost = {broken.partition for broken in broken_files}
    if not lost or window.listing is None:
        return window
    left = tuple(partition for partition in window.partitions if partition not in lost)
    return replace(window, partitions=left, listing=window.listing.restrict(left))


def _judge(
    recipe: Recipe,
    window: InputWindow,
    measures: Mapping[str, PartitionMeasures],
    source_records: Mapping[str, int],
    landed: Mapping[str, Landed],
    run: Run,
    provisional: Mapping[str, str],
) -> dict[str, Verdict]:
    # What a rollback is to undo is nothing to compare with.
    undone = measures if find_write_mode(run.options).restores else ()
    profiles, is_lost = find_profiles(window.target)
    return judge_partitions(
        recipe.table,
        measures,
        source_records=source_records,
        published={key: profile for key, profile in profiles.items() if key not in undone},
        is_history_lost=is_lost,
        source_fields=recipe.source_fields,
        evolved_fields=window.extra_fields,
        landed=landed,
        provisional=provisional,
        acceptances=run.acceptances,
    )


def find_profiles(log: TableLog) -> tuple[dict[str, PartitionProfile], bool]:
    """Finds what partitions are compared with: the profiles of what is published, by key.

    Of what neither log nor index knows any more, the table itself has the rows.

    Args:
        log: of the table.

    Returns:
        The profiles; and whether some have less than the commits had that are gone.
    """
    published = log.publishes
    former = {name: column.name for column in log.table.columns for name in column.formerly}
    profiles = {
        key: PartitionProfile.from_json(publish.record.profiles[key]).rename(former)
        for key, publish in published.items()
        if key in publish.record.profiles
    }
    counted = log.count_rows() if log.foreign_changes or log.known_since else {}
    if not log.known_since:
        # Nobody audited what another program wrote; yet a run may not lose it without a word.
        foreign = log.foreign_changes.keys() & counted.keys()
        return {**{key: PartitionProfile(counted[key]) for key in foreign}, **profiles}, False
    # Certificates, which have no commit's id, have rows only.
    whole = {key for key in profiles if published[key].record.commit_id}
    is_lost = log.table.folder_by is not None or not whole.issuperset(counted)
    return {**{key: PartitionProfile(rows) for key, rows in counted.items()}, **profiles}, is_lost


def _find_fields_to_add(
    recipe: Recipe,
    window: InputWindow,
    measures: Mapping[str, PartitionMeasures],
    verdicts: Mapping[str, Verdict],
) -> list[str]:
    """Finds new fields of partitions that will be published.

    A withheld one must not change the table.
    """
    seen = (
        name
        for key, measured in measures.items()
        if not verdicts[key].withheld
        for name in measured.fields_seen or ()
    )
    return find_new_fields(recipe.table, window.extra_fields, seen)


AHEAD_BYTES = 16 * 2**20
"""Most bytes of input of chunks that are audited together: what a crash may lose of work done."""

OpenAudit = Callable[[tuple[Partition, ...]], AbstractContextManager[Audit]]
"""Audits partitions, ascending; their rows are kept for as long as it is open."""


class BatchedAudits(ExitStack):
    """The audits of a step's chunks, each opened once the first of its chunks is to be published.

    As a context: whatever is open is closed with it.
    """

    def __init__(self, pinned: PinnedInputs, lots: Sequence[Sequence[Partition]] = ()) -> None:
        """Takes the inputs of the step, and the partitions to audit together, in order."""
        super().__init__()
        self.pinned = pinned
        self._lots = [tuple(lot) for lot in lots]
        self._covered: frozenset[str] = frozenset()
        self._audit: Audit | None = None

    def find(self, partitions: Sequence[Partition], open_audit: OpenAudit) -> Audit | None:
        """Finds the audit of a chunk, among what is or can be audited together with it.

        Args:
            partitions: of the chunk, ascending; at least one.
            open_audit: audits all that is to be audited together, from the inputs of the step.

        Returns:
            None where the chunk is to be audited alone: with nothing else to go with it, or
            because to audit them together failed, so that an error is told of the chunk that it is
            of.
        """
        keys = {partition.key for partition in partitions}
        if self._audit is None or not keys <= self._covered:
            self.drop()
            lot = next((lot for lot in self._lots if not {*partitions}.difference(lot)), ())
            left = lot[lot.index(partitions[0]) :] if lot else ()
            if len(left) <= len(keys):
                return None
            try:
                self._audit = self.enter_context(open_audit(left))
            except Exception:
                self._lots.remove(lot)
                return None
            self._covered = frozenset(partition.key for partition in left)
        return self._audit.restrict(partitions)

    def drop(self) -> None:
        """Forgets what is audited: what comes next is audited anew."""
        self._audit, self._covered = None, frozenset()
        self.close()


def group_small_chunks(
    pinned: PinnedInputs,
    chunks: Sequence[Sequence[Partition]],
    sizes: Mapping[str, int],
    *,
    max_partitions: int,
    max_bytes: int,
) -> list[tuple[Partition, ...]]:
    """Gathers neighbouring chunks while they are small together; a larger one stays alone.

    Args:
        pinned: the inputs of the step; partitions that never landed can't be computed.
        chunks: of a range, in order.
        sizes: bytes of input by partition key; absent ones count as 0.
        max_partitions: most partitions to work on at once.
        max_bytes: most bytes of input to work on at once.
    """
    never_landed = pinned.find_never_landed()
    lots: list[tuple[Partition, ...]] = []
    filled = 0
    for chunk in chunks:
        for part in split_chunks(chunk, sizes, max_partitions=max_partitions, max_bytes=max_bytes):
            landed = tuple(partition for partition in part if partition.key not in never_landed)
            size = sum(sizes.get(partition.key, 0) for partition in landed)
            fits = bool(lots) and len(lots[-1]) + len(landed) <= max_partitions
            if fits and filled + size <= min(max_bytes, AHEAD_BYTES):
                lots[-1] += landed
                filled += size
            else:
                lots.append(landed)
                filled = size
    return lots
