"""Pins the inputs of a step, so that what is rewritten meanwhile changes nothing."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backfill_engine.grains.chunk_sizes import ChunkSize, cut_chunks
from backfill_engine.grains.overlaps import are_comparable
from backfill_engine.lake.commits import Consumed
from backfill_engine.lake.landing import LandingFile
from backfill_engine.lake.partitions import (
    Partition,
    build_partitions,
    find_folder,
    list_overlapping,
)
from backfill_engine.lake.table_log import TableLog
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.results import PartitionResult, withhold
from backfill_engine.rules.finding_names import LANDING_FILES_EXIST, UPSTREAM_IS_PUBLISHED
from backfill_engine.sources.source import Listing

_CURE = "run the changed partitions again, or accept them with a reason (`backfill-assets accept`)"


@dataclass(frozen=True)
class PinnedInputs:
    """The inputs as they were when the step began.

    Attributes:
        target: log of the table itself, read before the inputs were: whatever another run commits
            later may be from newer inputs than these.
        inputs: logs of the input tables, by table key.
        listing: files of the landing zone, for a table that reads it.
        windows: by input table, the upstream keys that each partition's mapping gives.
        restored: of a rollback, by partition key, what the version that comes back had consumed.
        newest: a later reading of the log of the table, with what the step itself has published
            since; None if there is none.
    """

    target: TableLog
    inputs: Mapping[str, TableLog]
    listing: Listing | None = None
    windows: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    restored: Mapping[str, Consumed] = field(default_factory=dict)
    newest: TableLog | None = None

    @property
    def current(self) -> TableLog:
        """The log of the table as it was read last."""
        return self.newest or self.target

    def describe(self) -> dict[str, int | str]:
        """Describes the inputs for commits and events, by name.

        Of tables these are versions; of the landing files, a fingerprint.
        """
        versions: dict[str, int | str] = {key: log.version for key, log in self.inputs.items()}
        if self.listing is not None:
            versions[f"landing/{self.listing.dataset}"] = self.listing.fingerprint()
        return versions

    def identify(self) -> dict[str, str]:
        """Tells the input tables from others that were at the same places before, by key."""
        return {key: log.table_id for key, log in self.inputs.items()}

    def describe_consumed(
        self, keys: Iterable[str], *, is_partial: bool = False
    ) -> dict[str, Consumed]:
        """Describes what partitions are computed from, by key.

        Of an input table without windows nothing is known.

        Args:
            keys: of the partitions, which the listing must have.
            is_partial: whether some of their published rows stay, as of a filter. These are of
                earlier inputs, and so the whole partition is.
        """
        if self.restored:
            return {key: self.restored[key] for key in keys}
        landed = self.listing.describe_files() if self.listing is not None else {}
        earlier = self.target.publishes if is_partial else {}
        return {
            key: earlier[key].consumed
            if key in earlier
            else Consumed(landed.get(key), self._find_upstream(key))
            for key in keys
        }

    def restrict(self, partitions: Sequence[Partition]) -> "PinnedInputs":
        """Returns the same inputs, with only the landing files of `partitions`."""
        if self.listing is None:
            return self
        return replace(self, listing=self.listing.restrict(partitions))

    def find_mapped(
        self, recipe: Recipe, partitions: Sequence[Partition]
    ) -> dict[str, Mapping[str, Sequence[str]] | None]:
        """Finds what each partition reads of the inputs in `recipe.mapped`, by their keys."""
        found = recipe.map_inputs([partition.key for partition in partitions])
        return {name: found[name] and self.windows.get(name, found[name]) for name in found}

    def find_never_landed(self) -> set[str]:
        """Finds the keys of partitions without files, now or ever.

        Their files have not come, or the path is wrong. A partition that was consumed before and
        has no files now is another thing: its data was taken back, or lost. Of one that a file with
        a fault may hold records of nobody knows.
        """
        if self.listing is None or not self.listing.missing:
            return set()
        consumed = {*self.target.count_rows(), *self.target.publishes}
        missing = {partition.key for partition in self.listing.missing}
        return missing - consumed - {fault.partition.key for fault in self.listing.faults}

    def withhold_never_landed(self) -> list[PartitionResult]:
        """Withholds the partitions without files, now or ever, ascending, and says what there is.

        That their folder is empty is no evidence: it may have been made ahead.
        """
        never = self.find_never_landed()
        if self.listing is None or not never:
            return []
        missing = [partition for partition in self.listing.missing if partition.key in never]
        landed = self.listing.restrict(missing).describe_landed()
        return [
            withhold(
                key,
                LANDING_FILES_EXIST,
                f"nothing has ever landed; {landed[key].why_never_landed}",
            )
            for key in sorted(never)
        ]

    def withhold_foreign(
        self, partitions: Sequence[Partition], *, keeps_rows: bool
    ) -> list[PartitionResult]:
        """Withholds what would be computed from rows that another program wrote, ascending.

        Nobody has audited these rows. A partition whose published rows are all replaced isn't
        computed from them, so that running the partition again mends it.

        Args:
            partitions: to be computed.
            keeps_rows: whether some of the published rows stay, as of a merge.
        """
        found: dict[str, list[str]] = defaultdict(list)
        own = self.target.foreign_changes if keeps_rows else {}
        for table, windows in self.windows.items():
            foreign = self.inputs[table].foreign_changes
            for partition in partitions if foreign else ():
                for key in foreign.keys() & set(windows.get(partition.key, ())):
                    found[partition.key].append(
                        f"{table} {key} was {foreign[key].describe_foreign()}"
                    )
        for partition in partitions:
            if change := own.get(partition.key):
                found[partition.key].append(f"the rows that stay were {change.describe_foreign()}")
        return [
            withhold(key, UPSTREAM_IS_PUBLISHED, f"{'; '.join(why)}: {_CURE}")
            for key, why in sorted(found.items())
        ]

    def measure_bytes(self, partitions: Sequence[Partition]) -> dict[str, int]:
        """Sums the bytes of input by partition key.

        These are what landed, and the input tables' folders of the same values; of a table without
        partitions, all of the input tables. Of an input of names, or of no partitions, they are the
        partitions that its mapping gives; one that several read counts for the first of them.
        """
        sizes = dict(self.listing.measure_bytes()) if self.listing else {}
        for name, log in self.inputs.items():
            folders, read, target = log.sum_folder_bytes(), log.table, self.target.table
            windows, counted = self.windows.get(name, {}), set[str]()
            for partition in partitions:
                if not target.folder_column:
                    names = set(folders)
                elif are_comparable(target.grain, read.grain):
                    near = list_overlapping(read, partition)
                    names = {find_folder(read, other) for other in near}
                else:
                    mapped = set(windows.get(partition.key, ())) - counted
                    counted |= mapped
                    names = {find_folder(read, other) for other in build_partitions(read, mapped)}
                size = sum(folders.get(folder, 0) for folder in names)
                sizes[partition.key] = sizes.get(partition.key, 0) + size
        return sizes

    def cut(
        self, partitions: Sequence[Partition], size: ChunkSize | None
    ) -> list[tuple[Partition, ...]]:
        """Cuts partitions into the chunks that a run was told to work in; without a size, into one.

        Args:
            partitions: ascending, at least one.
            size: of a chunk, maybe in files that landed. A partition of a table is one file, so
                that of what reads tables each counts as one. A file that the partition before is
                in, too, counts once.
        """
        if size is None:
            return [tuple(partitions)]
        landed = self.listing.list_landed() if self.listing is not None else {}
        files: dict[str, int] = {}
        before: Collection[LandingFile] = ()
        for key, found in landed.items():
            files[key] = sum(file not in before for file in found)
            before = set(found)
        by_key = {partition.key: partition for partition in partitions}
        starts = [(partition.key, partition.slice.start) for partition in partitions]
        return [tuple(by_key[key] for key in chunk) for chunk in cut_chunks(starts, size, files)]

    def _find_upstream(self, key: str) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for table, windows in self.windows.items():
            checksums = self.inputs[table].checksums
            if window := windows.get(key):
                found[table] = {upstream: checksums.get(upstream, "") for upstream in window}
        return found


def pin_inputs(
    target: TableLog,
    inputs: Mapping[str, TableLog],
    recipe: Recipe,
    *,
    landing_root: str,
    partitions: Sequence[Partition],
    windows: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
) -> PinnedInputs:
    """Fixes the versions and files that a step will read, as they are now.

    Args:
        target: an earlier reading of the table's log.
        inputs: earlier readings of the logs of the input tables, by table key.
        recipe: how the table is made.
        landing_root: root of the landing zone.
        partitions: what is to be computed.
        windows: by input table, the upstream keys that each of them needs.

    Raises:
        TableError: if an input table doesn't exist.
        LandingError: if the landing zone can't be listed.
    """
    return PinnedInputs(
        target=target.reread(),
        inputs={key: log.reread().require() for key, log in inputs.items()},
        listing=list_landing(recipe, landing_root, partitions),
        windows=windows or {},
    )


def list_landing(
    recipe: Recipe, landing_root: str, partitions: Sequence[Partition]
) -> Listing | None:
    """Lists the files that partitions are computed from; None for none, or a table that reads none.

    Raises:
        LandingNotFoundError: if it isn't there.
        LandingError: if the landing zone can't be listed.
    """
    if recipe.source is None or not partitions:
        return None
    return recipe.source.list_files(landing_root, recipe.table, partitions)


def split_chunks(
    partitions: Sequence[Partition],
    sizes: Mapping[str, int],
    *,
    max_partitions: int,
    max_bytes: int,
) -> list[tuple[Partition, ...]]:
    """Cuts a range into chunks, in order; each within both bounds, but never without a partition.

    Args:
        partitions: ascending.
        sizes: bytes of input by key; absent ones count as 0.
        max_partitions: most partitions of a chunk.
        max_bytes: most bytes of input of a chunk of more than one partition.
    """
    chunks: list[list[Partition]] = []
    filled = 0
    for partition in partitions:
        size = sizes.get(partition.key, 0)
        if chunks and len(chunks[-1]) < max_partitions and filled + size <= max_bytes:
            chunks[-1].append(partition)
            filled += size
        else:
            chunks.append([partition])
            filled = size
    return [tuple(chunk) for chunk in chunks]
