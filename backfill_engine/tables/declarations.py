"""What is declared of a table: columns, types, partitions, natural key, rules. Pure data."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias, get_args

from backfill_engine.audit_columns import LANDED_LINE, REJECT_COLUMNS, is_reserved
from backfill_engine.errors import DeclarationError
from backfill_engine.grains.dates import DAYS
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.whole import WHOLE
from backfill_engine.rules.column_rules import NullSpike, add_null_spike
from backfill_engine.rules.count_rules import Reconciled, Rejects, Shrink
from backfill_engine.rules.declared import (
    DeclaredFields,
    Emptied,
    LandedFiles,
    LandedRecords,
    RequiredColumns,
    SomeAccepted,
    TextLengths,
    UniqueKeys,
)
from backfill_engine.rules.rule import Rule
from backfill_engine.tables.column_types import NESTED, TYPES
from backfill_engine.tables.columns import Column as Column
from backfill_engine.tables.columns import build_ddl as build_ddl
from backfill_engine.tables.columns import check_columns
from backfill_engine.tables.columns import required as required
from backfill_engine.tables.protected import Protected as Protected
from backfill_engine.uris import is_local, local_path

Empty: TypeAlias = Literal["publish", "evidenced", "withhold"]
"""What becomes of a partition whose source has no records any more: see `Table.empty`."""


SIDE_LAYERS = ("withheld", "quarantine")
"""Of what is kept aside; no asset publishes there."""

LANDING = "landing"
"""First part of the keys of assets that stand for what lands; no layer of tables is called so."""

_TAKEN_LAYERS = (LANDING, "ops")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Calendar:
    """The days that partitions of time lie in.

    Attributes:
        begin: the first day of what lands day by day.
        end: the day after the last; None for up to today.
        first_day: where history is active that is older than `begin`, the first day of that; else
            None.

    Raises:
        DeclarationError: if the end isn't after the begin.
    """

    begin: dt.date
    end: dt.date | None = None
    first_day: dt.date | None = None

    def __post_init__(self) -> None:
        if self.end is not None and self.begin >= self.end:
            raise DeclarationError(f"begin {self.begin} must be before end {self.end}")

    @property
    def first(self) -> dt.date:
        """The first day of all."""
        return self.first_day or self.begin


@dataclass(frozen=True)
class Table:
    """A Delta table at `<warehouse>/<layer>/<name>`, or at a location of its own.

    Attributes:
        layer: such as `raw` or `gold`: the table's folder, and the first part of its key.
        name: table name within the layer.
        partition_by: the column whose values decide the partition; left out of a table without
            partitions, such as a dimension: all of it is one, called `whole`.
        columns: in the order in which they are stored.
        infers: whether what its function computes beyond `columns` are columns, too: as the first
            run computes them, and from then on as they are stored.
        grain: which of these values make one partition; `WHOLE` of a table without partitions.
        folder_by: a DATE column, the day of `partition_by`, with a folder a day; whatever computes
            the rows need not set it. None for a folder for each value of `partition_by`.
        natural_key: columns that together identify a row; empty where rows may repeat.
        rules: what a partition must meet to be published, beside what `all_rules` adds.
        empty: whether a partition whose source became empty is published empty (`publish`), or
            withheld, or published where something says that it is meant: `rules.declared`.
        max_new_fields: most columns that it takes on for fields that no schema declares; a record
            with more such fields is rejected.
        write_mode: how runs write that aren't told otherwise: the name of a mode in
            `publishing.write_modes`; one that the table can't honour is refused at assembly.
        row_filter: SQL over the columns: only rows for which it is true belong to the table; empty
            means all. `filters.row_filters` says what it may hold.
        protected: partitions that no run publishes unless a person says why.
        versions: of a served table, the tables of which it holds one at a time, whole; the first is
            served until another is promoted. Empty of any other table.
        begins_with: the table that it reads with whose history it begins; None to begin with its
            own, or with the feed.
        begin: the first day of what lands for it; None for that of the project's calendar.
        end: the day after its last; None for that of the project's calendar.
        owners: of its asset, as Dagster takes them: `team:name`, or an address.
        location: absolute path or URI of the table, which Spark and delta-rs both reach; None for
            its place in the warehouse, where what is kept beside it lies in any case.
        asset_path: set by the catalog, where the project's translator calls the asset not
            `layer/name`; no part of what is declared.
        calendar: set by the catalog, from `begin`, `end`, the project's calendar and the active
            history; no part of what is declared.

    Raises:
        DeclarationError: when it is made, if it can't be as it is declared.
    """

    is_published: ClassVar[bool] = True
    """Whether an asset of the catalog publishes it; somebody else writes it otherwise."""

    layer: str
    name: str
    partition_by: str = ""
    columns: tuple[Column, ...] = ()
    grain: Grain = DAYS
    folder_by: str | None = None
    natural_key: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    empty: Empty = "evidenced"
    max_new_fields: int = 50
    write_mode: str = "overwrite"
    row_filter: str = ""
    # No part of the code version, which is made of what prints: it changes no row.
    protected: tuple[Protected, ...] = field(default=(), repr=False)
    versions: tuple["Table", ...] = field(default=(), repr=False)
    begins_with: "Table | None" = field(default=None, repr=False)
    # Which days there are changes no row of any of them.
    begin: dt.date | None = field(default=None, repr=False)
    end: dt.date | None = field(default=None, repr=False)
    owners: tuple[str, ...] = field(default=(), repr=False)
    location: str | None = field(default=None, repr=False)
    infers: bool = field(default=False, repr=False)
    asset_path: tuple[str, ...] = field(default=(), repr=False, compare=False)
    calendar: Calendar | None = field(default=None, repr=False, compare=False)
    column_names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(column.name for column in self.columns)
        object.__setattr__(self, "column_names", names)
        if not self.partition_by and self.grain == DAYS:
            object.__setattr__(self, "grain", WHOLE)
        self._check_names()
        check_columns(self.key, self.columns)
        self._check_partitions()
        self._check_natural_key()
        self._check_rules()
        self._check_protected()
        self._check_versions()

    @property
    def folder_column(self) -> str:
        """The column of which each value is a folder; empty if the table has no partitions."""
        return self.folder_by or self.partition_by

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Lists the rules that follow from the declaration itself, then those that it names.

        Rules `Shrink`, `Reconciled`, `Rejects` and `NullSpike` of its own take the places of those
        that every table has.
        """
        required_names = tuple(column.name for column in self.columns if not column.nullable)
        of_source = Emptied(empty=self.empty), LandedFiles()
        lengths = tuple(
            (column.name, column.parsed_type.digits[0], column.parsed_type.digits[1])
            for column in self.columns
            if column.parsed_type.kind == "STRING" and column.parsed_type.digits
        )
        of_columns = (
            RequiredColumns(required_names),
            *((TextLengths(lengths),) if lengths else ()),
            UniqueKeys(self.natural_key),
        )
        of_counts = tuple(
            rule
            for rule, kind in (
                (LandedRecords(), Reconciled),
                (Shrink(), Shrink),
                (SomeAccepted(), Rejects),
            )
            if not any(isinstance(own, kind) for own in self.rules)
        )
        of_fields = DeclaredFields(self.max_new_fields)
        nullable = (column.name for column in self.columns if column.nullable)
        own = add_null_spike(self.rules, nullable)
        return (*of_source, *of_counts, *of_columns, of_fields, *own)

    def complete(self, types: Mapping[str, str]) -> "Table":
        """Returns the table with all of its columns, where it infers them; else the table itself.

        Args:
            types: Spark SQL types by name of a stored or computed column.
        """
        if not self.infers:
            return self
        former = (name for column in self.columns for name in column.formerly)
        known = {name.lower() for name in (*self.column_names, *former)}
        new = [
            Column(name, type_)
            for name, type_ in types.items()
            if name.lower() not in known and not is_reserved(name)
        ]
        return replace(self, columns=(*self.columns, *new))

    @property
    def key(self) -> str:
        """The key of its asset, as Dagster prints it: `layer/name`, unless a translator says."""
        return "/".join(self.asset_path) or self.place

    @property
    def cure_absence(self) -> str:
        """What to do where the table isn't there."""
        return f"materialize the asset {self.key} first"

    @property
    def place(self) -> str:
        """`layer/name`, whatever its asset is called: who writes at one place waits in one line."""
        return f"{self.layer}/{self.name}"

    def _check_names(self) -> None:
        for what, name in (("layer", self.layer), ("table", self.name)):
            if not NAME.fullmatch(name):
                raise DeclarationError(
                    f"{self.key}: a {what} can't be called `{name}`: write letters, digits and _"
                )
        if self.layer in _TAKEN_LAYERS:
            raise DeclarationError(
                f"{self.key}: the layer `{self.layer}` is taken by assets that are no tables: "
                "give it another name"
            )
        place = self.location
        if place is not None and is_local(place) and not local_path(place).is_absolute():
            raise DeclarationError(
                f"{self.key}: its `location` {place} depends on who works where: write an absolute "
                "path, or a URI"
            )
        if self.empty not in get_args(Empty):
            raise DeclarationError(
                f"{self.key}: `empty` can't be `{self.empty}`: choose of "
                f"{', '.join(get_args(Empty))}"
            )

    def _check_partitions(self) -> None:
        if not isinstance(self.grain, Grain):
            raise DeclarationError(
                f"{self.key}: {self.grain!r} is no grain: give one of `backfill_engine.grains`, "
                "such as DAYS or Buckets(step=…, space=…)"
            )
        if self.grain == WHOLE:
            if self.partition_by or self.folder_by or not self.columns:
                raise DeclarationError(
                    f"{self.key} has no partitions: leave `partition_by` and `folder_by` out, and "
                    "name its `columns`; or give it another grain"
                )
            return
        if not self.partition_by:
            raise DeclarationError(
                f"{self.key} is partitioned by {self.grain}: name the column, as `partition_by`"
            )
        self._check_required(self.partition_by, self.folder_column)
        for name in (self.partition_by, self.folder_column):
            if self.layer not in SIDE_LAYERS and name.lower() in (LANDED_LINE, *REJECT_COLUMNS):
                raise DeclarationError(
                    f"{self.key}: what lands and what is rejected has a column `{name}` of its own "
                    "beside the partition: partition by a column of another name"
                )
        types = {column.name: column.type for column in self.columns}
        if types[self.partition_by] not in self.grain.column_types:
            raise DeclarationError(
                f"{self.key}: `{self.partition_by}` must be {self.grain.column_types[0]}, "
                f"to be partitioned by {self.grain}"
            )
        daily = self.grain.in_daily_folders
        if daily != (self.folder_by is not None) or (daily and types[self.folder_column] != "DATE"):
            raise DeclarationError(
                f"{self.key}: `folder_by` is the DATE column of a table with several partitions a "
                f"day, and of no other; this one is partitioned by {self.grain}"
            )

    def _check_natural_key(self) -> None:
        if isinstance(self.natural_key, str):
            raise DeclarationError(
                f'{self.key}: `natural_key` is a tuple of names: write ("{self.natural_key}",)'
            )
        self._check_required(*self.natural_key)
        if len(set(self.natural_key)) < len(self.natural_key):
            raise DeclarationError(
                f"{self.key}: `natural_key` has a column twice: name each once in "
                f"{', '.join(self.natural_key)}"
            )
        for column in self.columns:
            if column.name in self.natural_key and column.parsed_type.kind in NESTED:
                raise DeclarationError(
                    f"{self.key}: `{column.name}` is {column.type}, which tells no rows apart: "
                    "make a natural key of columns that aren't nested"
                )

    def _check_required(self, *names: str) -> None:
        required_names = {column.name for column in self.columns if not column.nullable}
        for name in names:
            if name not in required_names:
                raise DeclarationError(f"{self.key}: `{name}` must be a declared, required column")

    def _check_rules(self) -> None:
        spikes = [rule for rule in self.rules if isinstance(rule, NullSpike)]
        about = [name for rule in spikes for name in rule.columns or ("the columns left",)]
        if twice := sorted({name for name in about if about.count(name) > 1}):
            raise DeclarationError(
                f"{self.key}: two rules `NullSpike` are about {', '.join(twice)}: keep one"
            )
        kinds = {column.name: column.parsed_type.kind for column in self.columns}
        for at, rule in enumerate(self.rules):
            if not isinstance(rule, Rule):
                raise DeclarationError(
                    f"{self.key}: {rule!r} is no rule: make one of the classes in "
                    "`backfill_engine.rules`"
                )
            if rule in self.rules[:at]:
                raise DeclarationError(f"{self.key}: the rule {rule!r} is there twice: remove one")
            for name, wanted in rule.columns_needed.items():
                if name not in kinds:
                    raise DeclarationError(
                        f"{self.key}: the rule {type(rule).__name__} is about a column `{name}`, "
                        f"which isn't declared: choose of {', '.join(self.column_names)}"
                    )
                if wanted and kinds[name] not in wanted:
                    raise DeclarationError(
                        f"{self.key}: the rule {type(rule).__name__} is about `{name}`, which is "
                        f"{kinds[name]}: give it a column of "
                        f"{', '.join(kind for kind in TYPES if kind in wanted)}"
                    )

    def _check_protected(self) -> None:
        for protection in self.protected:
            if not protection.reason.strip():
                raise DeclarationError(
                    f"{self.key}: {protection!r} needs a reason, for whoever is refused"
                )
            for key in filter(None, (protection.first, protection.last)):
                if not self._is_key(key):
                    raise DeclarationError(
                        f"{self.key}: no partition can be called `{key}`, which {protection!r} "
                        f"names: it is partitioned by {self.grain}"
                    )
            if protection.first and protection.last and protection.first > protection.last:
                raise DeclarationError(
                    f"{self.key}: {protection!r} is reversed: exchange first and last"
                )

    def _check_versions(self) -> None:
        if any(table.infers for table in (self, *self.versions) if self.versions):
            raise DeclarationError(
                f"{self.key} serves versions, and not all columns are declared: declare them"
            )
        for at, version in enumerate(self.versions):
            if version in self.versions[:at]:
                raise DeclarationError(f"{self.key} serves {version.key} twice: name it once")
            for what in ("partition_by", "grain", "folder_by", "natural_key", "column_names"):
                own, its = getattr(self, what), getattr(version, what)
                if own != its:
                    raise DeclarationError(
                        f"{self.key} can't serve {version.key}, whose {what} is {its}, not {own}: "
                        "consumers would find another table after a switch"
                    )
            for own_column, its in zip(self.columns, version.columns, strict=True):
                if (own_column.type, own_column.nullable) != (its.type, its.nullable):
                    raise DeclarationError(
                        f"{self.key} can't serve {version.key}, where `{its.name}` is "
                        f"{its.type}{'' if its.nullable else ' and never null'}: give both tables "
                        "the same columns"
                    )

    def _is_key(self, key: str) -> bool:
        try:
            return self.grain.find_key(self.grain.find_start(key)) == key
        except ValueError:
            return False
