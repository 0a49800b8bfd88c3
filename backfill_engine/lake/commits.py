"""Commits of a table, and the audit record that each publish carries in its `userMetadata`.

The record says, too, what each partition was computed from: landed files, upstream checksums.
Thousands of partitions fit into one commit. The windows of neighbours overlap (a day's hours, a
week's days), so the checksum of an upstream partition stands once, and of each window only where it
begins and ends. 8,760 hours that each need the 24 up to their own take 97 bytes an hour, those that
need their own 60, and files 49.

Here is what can be told from commits alone; `lake.table_log` reads them.
"""

import datetime as dt
import hashlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from backfill_engine.lake.landing import LandedFiles
from backfill_engine.lake.whole_files import is_file_name


@dataclass(frozen=True)
class Consumed:
    """What one partition was computed from; nothing, where that is not known.

    Attributes:
        landed: the files of the landing zone; None of a table that reads none.
        upstream: by upstream table, the checksum of each partition that the asset's mapping gives;
            "" of one that was not published then. Of no table it is empty.
    """

    landed: LandedFiles | None = None
    upstream: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """Hashes all of it: 16 hexadecimal digits; empty where nothing is known."""
        if self.landed is None and not self.upstream:
            return ""
        parts = [self.landed.fingerprint if self.landed else ""]
        parts += [f"{table} {self.fingerprint(table)}" for table in sorted(self.upstream)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def fingerprint(self, table: str) -> str:
        """Hashes what was read of an upstream table: 16 hexadecimal digits."""
        digest = hashlib.sha256()
        for key, checksum in sorted(self.upstream[table].items()):
            digest.update(f"{key}\0{checksum}\n".encode())
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class UpstreamRead:
    """What partitions of one commit read of one upstream table.

    Attributes:
        table: the upstream table, `layer/name`.
        checksums: by upstream key; "" where nothing was published.
        windows: by partition key, the first and the last of `checksums` that it needs; more such
            pairs where they are not neighbours, and none where it needs the one of its own key.
    """

    table: str
    checksums: Mapping[str, str]
    windows: Mapping[str, tuple[str, ...]]

    def find_window(self, key: str) -> dict[str, str]:
        """Finds the checksums that a partition of `windows` needs, by upstream key, ascending."""
        ends = self.windows[key] or (key, key)
        needed = (
            self._keys[bisect_left(self._keys, first) : bisect_right(self._keys, last)]
            for first, last in zip(ends[::2], ends[1::2], strict=True)
        )
        return {upstream: self.checksums[upstream] for run in needed for upstream in run}

    @cached_property
    def _keys(self) -> list[str]:
        return sorted(self.checksums)


@dataclass(frozen=True)
class CommitInputs:
    """What the partitions of one commit were computed from.

    Attributes:
        landed: by partition key, the landed files that it was computed from.
        upstream: what was read of each upstream table.
    """

    landed: Mapping[str, LandedFiles] = field(default_factory=dict)
    upstream: tuple[UpstreamRead, ...] = ()

    @classmethod
    def of(cls, consumed: Mapping[str, Consumed]) -> "CommitInputs":
        """Builds it from what each partition was computed from, by key."""
        tables = dict.fromkeys(table for found in consumed.values() for table in found.upstream)
        reads = (
            read
            for table in tables
            for read in _build_reads(
                table,
                {
                    key: found.upstream[table]
                    for key, found in consumed.items()
                    if table in found.upstream
                },
            )
        )
        landed = {key: found.landed for key, found in consumed.items() if found.landed}
        return cls(landed, tuple(reads))

    def find(self, key: str) -> Consumed:
        """Finds what a partition was computed from."""
        return Consumed(
            self.landed.get(key),
            {read.table: read.find_window(key) for read in self.upstream if key in read.windows},
        )

    def restrict(self, keys: Iterable[str]) -> "CommitInputs":
        """Reduces it to some of the partitions, and to what their windows need."""
        return self.of({key: self.find(key) for key in keys})


def _build_reads(table: str, windows: Mapping[str, Mapping[str, str]]) -> Iterator[UpstreamRead]:
    """Builds one, or more where an upstream partition was read at several times.

    That is so of what a rollback restores.
    """
    reads: list[tuple[dict[str, str], list[str]]] = []
    for key, window in windows.items():
        agreeing = (read for read in reads if _agree(read[0], window))
        read = next(agreeing, None)
        if read is None:
            read = {}, []
            reads.append(read)
        checksums, keys = read
        checksums.update(window)
        keys.append(key)
    for checksums, keys in reads:
        places = {key: place for place, key in enumerate(sorted(checksums))}
        ends = {key: tuple(_find_ends(sorted(windows[key]), places)) for key in keys}
        yield UpstreamRead(
            table,
            {key: checksums[key] for key in places},
            {key: () if found == (key, key) else found for key, found in ends.items()},
        )


def _agree(checksums: Mapping[str, str], window: Mapping[str, str]) -> bool:
    return all(checksums.get(key, checksum) == checksum for key, checksum in window.items())


def _find_ends(keys: Sequence[str], places: Mapping[str, int]) -> Iterator[str]:
    """Yields first and last key of each run of neighbours."""
    for number, key in enumerate(keys):
        if number == 0 or places[key] != places[keys[number - 1]] + 1:
            yield key
        if number == len(keys) - 1 or places[keys[number + 1]] != places[key] + 1:
            yield key


RUNS_KEPT = 2
"""Runs of which the index of publishes has a partition's commits: the last, and the one before."""


RESTORED = "restored"
"""Note of a partition that a rollback brought back: from where."""


@dataclass(frozen=True)
class CommitAudit:
    """What the audit found of the partitions of one commit.

    Attributes:
        rules: the check and the rule of each finding, in one order for all partitions.
        figures: by partition key, what each of `rules` measured; null where it measured nothing,
            "" where it didn't apply.
        remarks: by partition key, the findings that did not pass: index in `rules`, outcome, bound.
        accepted: failed checks that a person let pass: check, partition and reason of each.
    """

    rules: tuple[str, ...] = ()
    figures: Mapping[str, tuple[int | float | str | None, ...]] = field(default_factory=dict)
    remarks: Mapping[str, tuple[tuple[int, str, str], ...]] = field(default_factory=dict)
    accepted: tuple[Mapping[str, str], ...] = ()

    def restrict(self, keys: Collection[str]) -> "CommitAudit":
        """Reduces it to some of the partitions."""
        return replace(
            self,
            figures=_restrict(self.figures, keys),
            remarks=_restrict(self.remarks, keys),
            accepted=tuple(
                acceptance for acceptance in self.accepted if acceptance["partition"] in keys
            ),
        )


@dataclass(frozen=True, kw_only=True)
class CommitRecord:
    """What a commit published, from what, by which code.

    Attributes:
        commit_id: unique for each attempt to publish; finds the commit in the log again.
        run_id: the Dagster run.
        asset_key: `layer/name`.
        code_version: hash of all that decides the rows: `publishing.reached_code`.
        input_versions: Delta version per input table; for the landing zone, a fingerprint of the
            files.
        input_ids: by input table, the id of the table at that place: what is made anew there has
            other versions.
        predicate: the rows that the commit replaced.
        rows: rows per partition key; its keys are exactly the partitions replaced.
        checksums: content checksum per partition key.
        profiles: per partition key, what later partitions are compared with.
        options: how the rows came about: what is not empty of `write_modes.options.WriteOptions`.
        batches: of an append, the batch by partition key.
        backfill_id: the backfill that the run is part of or continues; empty if none.
        based_on: the table's version when the inputs were pinned; None where nothing was.
        provisional: by partition key, what of its input was not there yet, or not final.
        audit: what was found of the partitions.
        consumed: what they were computed from.
        statement: hash of what the run's certificate says of this commit, see
            `publishing.statements`; empty where a commit takes back another of its run.
        features: by name of a feature, what it did to the publish: see `publishing.hooks`.
        notes: by partition key, and by name of a feature, what it did to that partition.
    """

    commit_id: str
    run_id: str
    asset_key: str
    code_version: str
    input_versions: Mapping[str, int | str]
    predicate: str
    rows: Mapping[str, int]
    checksums: Mapping[str, str]
    input_ids: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    batches: Mapping[str, str] = field(default_factory=dict)
    backfill_id: str = ""
    based_on: int | None = None
    provisional: Mapping[str, str] = field(default_factory=dict)
    audit: CommitAudit = field(default_factory=CommitAudit)
    consumed: CommitInputs = field(default_factory=CommitInputs)
    statement: str = ""
    features: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def write_mode(self) -> str:
        """How the rows came about: the name of a mode of `publishing.write_modes`."""
        return self.options.get("write_mode", "overwrite")

    @property
    def row_filter(self) -> str:
        """The run's filter of what was computed; empty if none."""
        return self.options.get("row_filter", "")

    def to_json(self) -> str:
        """Writes it as one line of JSON, keys in field order; rare ones only if not empty."""
        empty = {name for name in _RARE if not getattr(self, name)}
        return _RECORDS.dump_json(self, exclude=empty).decode()

    def restrict(self, keys: Collection[str]) -> "CommitRecord":
        """Returns the record with only what it says of the partitions `keys`.

        The predicate, which is of all of them and may be long, is left out.
        """
        if all(key in keys for key in self.rows):
            return self
        kept = {name: _restrict(getattr(self, name), keys) for name in _BY_PARTITION}
        return replace(
            self,
            predicate="",
            audit=self.audit.restrict(keys),
            consumed=self.consumed.restrict(kept["rows"]),
            **kept,
        )

    @classmethod
    def from_json(cls, text: str | None) -> "CommitRecord | None":
        """Reads the record from a commit's `userMetadata`.

        Returns None for a commit that isn't this project's (maintenance, or by hand); no run of it
        commits if its certificate could lie elsewhere.
        """
        try:
            record = _RECORDS.validate_json(text or "")
        except ValidationError:
            return None
        names = (record.run_id, record.backfill_id or record.run_id)
        return record if all(map(is_file_name, names)) else None


MIGRATE = "MIGRATE COLUMNS"
"""What a commit that only changed names and types of columns is called."""


@dataclass(frozen=True, kw_only=True)
class MigrationRecord:
    """What a commit carries that changed columns, and of no partition the contents.

    Such a commit is no publish, and changes no partition: what published each, from what, and what
    was measured of it then stays true of the rows, whose checksums are the same.

    Attributes:
        migrated: what became of columns, in words.
        run_id: the Dagster run.
        asset_key: of the table.
        based_on: the version that was rewritten.
        rows: rows per partition key, before and after.
        checksums: content checksum per partition key, before and after.
        overrides: of protected partitions, why they were rewritten all the same, by key.
        features: who asked for it, and why, as `origins.Origin.describe` writes it.
    """

    migrated: tuple[str, ...]
    run_id: str
    asset_key: str
    based_on: int
    rows: Mapping[str, int]
    checksums: Mapping[str, str]
    overrides: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """Writes it as one line of JSON."""
        return _MIGRATIONS.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str | None) -> "MigrationRecord | None":
        """Reads the record from a commit's `userMetadata`; None of a commit of another kind."""
        try:
            return _MIGRATIONS.validate_json(text or "")
        except ValidationError:
            return None


def _restrict(by_key: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in by_key.items() if key in keys}


_BY_PARTITION = ("rows", "checksums", "profiles", "batches", "provisional", "notes")
_RARE = ("features", "notes")

_RECORDS = TypeAdapter(CommitRecord)
_MIGRATIONS = TypeAdapter(MigrationRecord)


@dataclass(frozen=True)
class Commit:
    """One version of a table.

    Attributes:
        version: of the table.
        committed_at: UTC.
        operation: as the commit names it.
        record: None where the commit isn't a publish of this project.
        foreign: of such a commit, the keys of the partitions whose data it changed, by its file
            actions; None if it may be any.
        restores: of a RESTORE by hand, the version that it put back.
    """

    version: int
    committed_at: dt.datetime
    operation: str
    record: CommitRecord | None
    foreign: tuple[str, ...] | None = ()
    restores: int | None = None

    def find_changed(self, keys: Iterable[str]) -> set[str]:
        """Finds which of `keys` it changed."""
        changed = self.record.rows if self.record is not None else self.foreign
        return set(keys) if changed is None else set(keys).intersection(changed)

    @property
    def is_migration(self) -> bool:
        """Whether it only changed names and types of columns: see `MigrationRecord`."""
        return self.operation == MIGRATE

    def describe_foreign(self) -> str:
        """Says that another program made it, and what."""
        return f"changed by another writer ({self.operation or 'a commit'}, version {self.version})"


@dataclass(frozen=True)
class Publish:
    """What the log says of one partition's last publish.

    Attributes:
        commit: the commit that replaced it.
        record: what that commit carries.
        key: the partition.
    """

    commit: Commit
    record: CommitRecord
    key: str

    @property
    def version(self) -> int:
        """The Delta version that the commit made."""
        return self.commit.version

    @property
    def rows(self) -> int:
        """Rows that the audit counted."""
        return self.record.rows[self.key]

    @property
    def checksum(self) -> str:
        """Checksum that the audit computed."""
        return self.record.checksums[self.key]

    @property
    def consumed(self) -> Consumed:
        """What it was computed from."""
        return self.record.consumed.find(self.key)

    @property
    def restored(self) -> str:
        """From where a rollback brought it back; empty if none did."""
        return self.record.notes.get(self.key, {}).get(RESTORED, "")


def group_publishes(commits: Iterable[Commit]) -> dict[str, list[Publish]]:
    """Finds all publishes of each partition, by partition key; in the order of the commits."""
    found: dict[str, list[Publish]] = {}
    for commit in commits:
        if commit.record is not None:
            for key in commit.record.rows:
                found.setdefault(key, []).append(Publish(commit, commit.record, key))
    return found


def find_foreign_changes(commits: Iterable[Commit], keys: Iterable[str]) -> dict[str, Commit]:
    """Finds the partitions that another program changed since they were published last.

    Args:
        commits: newest first.
        keys: what commits that may have changed any partition are taken to have changed.

    Returns:
        By partition key, the newest commit that changed it. One that was never published, and that
        another program wrote, is among them.
    """
    settled: set[str] = set()
    found: dict[str, Commit] = {}
    for commit in commits:
        if commit.record is not None:
            settled.update(commit.record.rows)
            continue
        for key in keys if commit.foreign is None else commit.foreign:
            if key not in settled:
                settled.add(key)
                found[key] = commit
    return found


def describe_foreign_changes(changes: Mapping[str, Commit]) -> dict[str, str]:
    """Describes how other programs changed partitions, by key."""
    return {key: commit.describe_foreign() for key, commit in changes.items()}


def keep_publishes(commits: Sequence[Commit]) -> tuple[Commit, ...]:
    """Keeps of commits what later runs need, restricted to the partitions that need it.

    Of each partition these are the publishes of the run that published it last, and the last one of
    the run before, to which an undo goes back. Of one that was ever appended to they are all, as
    which batches it holds follows from all of them, and so are those of other programs. Of other
    partitions those of other programs are kept that changed one last.

    Args:
        commits: newest first.

    Returns:
        Those of which anything is kept, newest first.
    """
    appended = {key for commit in commits if commit.record for key in commit.record.batches}
    published = {key for commit in commits if commit.record for key in commit.record.rows}
    foreign = {id(commit) for commit in find_foreign_changes(commits, published).values()}
    runs: dict[str, set[str]] = defaultdict(set)
    kept: list[Commit] = []
    for commit in commits:
        record = commit.record
        if record is None:
            is_kept = id(commit) in foreign or bool(commit.find_changed(appended))
            kept += [commit] if is_kept else []
            continue
        keys = {key for key in record.rows if key in appended or len(runs[key]) < RUNS_KEPT}
        for key in keys:
            runs[key].add(record.run_id)
        if keys:
            kept.append(replace(commit, record=record.restrict(keys)))
    return tuple(kept)


def find_commit(commits: Iterable[Commit], commit_id: str) -> Commit | None:
    """Finds the commit that carries this id; None if there is none."""
    matching = (
        commit for commit in commits if commit.record and commit.record.commit_id == commit_id
    )
    return next(matching, None)


def find_changed_partitions(
    commits: Iterable[Commit], keys: Iterable[str], *, run_id: str
) -> set[str]:
    """Finds which of `keys` a commit of another run may have changed.

    A commit without a record is of another program, or was made by hand.
    """
    wanted = set(keys)
    others = (
        commit for commit in commits if commit.record is None or commit.record.run_id != run_id
    )
    return {key for commit in others for key in commit.find_changed(wanted)}
