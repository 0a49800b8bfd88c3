"""Columns that are declared of a wider type or by another name than they are stored; no Spark."""

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from backfill_engine.contents.partition_contents import IN_THIS_PROCESS, read_back
from backfill_engine.errors import DeclarationError, RollbackError, TableError
from backfill_engine.lake.commits import MIGRATE, CommitRecord, MigrationRecord
from backfill_engine.lake.partitions import build_partitions
from backfill_engine.lake.stored_declarations import check_readable, check_stored, find_changes
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.lake.writer import build_record, hold_partitions
from backfill_engine.proof.untouched import prove_untouched
from backfill_engine.publishing.audit import find_profiles
from backfill_engine.publishing.restoring import plan_rollback
from backfill_engine.rules.measured import PartitionProfile
from backfill_engine.tables.column_types import is_widening
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine.uris import local_path

DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
COLUMNS = (
    required("day", "DATE"),
    required("meter", "INT"),
    Column("litres", "INT"),
    Column("flow", "FLOAT"),
)
OLD = Table("gold", "meters", "day", COLUMNS)
NEW = replace(
    OLD,
    columns=(
        required("day", "DATE"),
        required("meter", "BIGINT"),
        Column("volume", "BIGINT", formerly=("litres",)),
        Column("flow", "DOUBLE"),
    ),
)
NOTHING = "nothing was written"


def build_rows(*, migrated: bool) -> pa.Table:
    number, fraction = (pa.int64(), pa.float64()) if migrated else (pa.int32(), pa.float32())
    days = [dt.date.fromisoformat(day) for day in DAYS for _ in range(2)]
    names = ("meter", "volume" if migrated else "litres", "flow")
    types = (number, number, fraction)
    values = (range(6), [None, *range(5)], [0.1, 2.5, None, -1e30, 4.0, 1 / 3])
    # What stands in 32 bits is what both types hold.
    narrow = [
        pa.array(column, pa.float32() if at == 2 else None) for at, column in enumerate(values)
    ]
    columns = {
        name: column.cast(type_) for name, column, type_ in zip(names, narrow, types, strict=True)
    }
    return pa.table({"day": days, **columns})


def write(warehouse: Warehouse, rows: pa.Table, record: str) -> TableLog:
    """Commits rows as all of the table; returns its log by the new declaration."""
    write_deltalake(
        warehouse.uri(OLD),
        rows,
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=["day"],
        commit_properties=CommitProperties(custom_metadata={"userMetadata": record}),
    )
    return read_log(warehouse, NEW)


def publish(warehouse: Warehouse, run_id: str = "run-1") -> TableLog:
    """Publishes the days by the old declaration."""
    rows = build_rows(migrated=False)
    write_deltalake(warehouse.uri(OLD), rows, mode="overwrite", partition_by=["day"])
    partitions = build_partitions(OLD, DAYS)
    contents = read_back(read_log(warehouse, OLD), partitions)
    record = build_record(
        OLD,
        partitions,
        run_id=run_id,
        code_version="code",
        input_versions={},
        rows={key: found.rows for key, found in contents.items()},
        checksums={key: found.checksum for key, found in contents.items()},
        profiles={
            key: PartitionProfile(2, {"litres": 1}, {"litres/1": (1, 1)}).to_json() for key in DAYS
        },
    )
    return write(warehouse, rows, record.to_json())


def migrate(warehouse: Warehouse, log: TableLog) -> TableLog:
    """Commits what a migration commits."""
    contents = read_back(log, log.list_held_partitions())
    record = MigrationRecord(
        migrated=tuple(map(str, find_changes(log))),
        run_id="migration",
        asset_key=NEW.key,
        based_on=log.version,
        rows={key: found.rows for key, found in contents.items()},
        checksums={key: found.checksum for key, found in contents.items()},
    )
    return write(warehouse, build_rows(migrated=True), record.to_json())


@pytest.mark.parametrize(
    ("stored", "declared", "widens"),
    [
        ("TINYINT", "BIGINT", True),
        ("INT", "BIGINT", True),
        ("FLOAT", "DOUBLE", True),
        ("DECIMAL(10,2)", "DECIMAL(18,2)", True),
        ("DECIMAL(19,2)", "DECIMAL(38,2)", True),
        ("DECIMAL(10,2)", "DECIMAL(19,2)", False),
        ("DECIMAL(10,2)", "DECIMAL(12,3)", False),
        ("BIGINT", "INT", False),
        ("INT", "INT", False),
        ("INT", "DOUBLE", False),
        ("DATE", "TIMESTAMP_NTZ", False),
        ("INT", "STRING", False),
        ("void", "STRING", False),
    ],
)
def test_a_type_widens_where_each_value_keeps_its_checksum(
    stored: str, declared: str, *, widens: bool
) -> None:
    assert is_widening(stored, declared) is widens


def test_wider_types_and_new_names_are_found_and_a_run_before_it_is_sent_to_the_command(
    warehouse: Warehouse,
) -> None:
    log = publish(warehouse)
    assert list(map(str, find_changes(log))) == [
        "`meter`: INT becomes BIGINT",
        "`litres` becomes `volume`, INT becomes BIGINT",
        "`flow`: FLOAT becomes DOUBLE",
    ]
    assert find_changes(replace(log, table=OLD)) == []
    cure = "run `backfill-assets migrate gold/meters`; nothing was written"
    for check in (check_stored, check_readable):
        with pytest.raises(TableError, match=cure):
            check(log)
        renamed = replace(
            OLD, columns=(*COLUMNS[:2], Column("volume", "INT", formerly=("litres",)))
        )
        with pytest.raises(TableError, match=f"by its former name `litres`: {cure}"):
            check(replace(log, table=renamed))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (Column("litres", "SMALLINT"), "as INT, and SMALLINT is declared: declare it as it is sto"),
        (Column("litres", "STRING"), "as INT, and STRING is declared: declare it as it is stored"),
        (required("date", "DATE", formerly=("day",)), "`day` becomes `date`, by which the table"),
    ],
)
def test_what_cannot_be_migrated_is_refused_in_a_line(
    warehouse: Warehouse, column: Column, message: str
) -> None:
    log = publish(warehouse)
    place = [kept.name for kept in COLUMNS].index((column.formerly or (column.name,))[0])
    columns = [*COLUMNS]
    columns[place] = column
    by = "date" if column.formerly else "day"
    with pytest.raises(TableError, match=message) as refused:
        find_changes(replace(log, table=replace(OLD, columns=tuple(columns), partition_by=by)))
    assert str(refused.value).endswith(NOTHING)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((Column("volume", "INT", formerly="litres"),), r'a tuple of names: write \("litres",\)'),  # type: ignore[arg-type]
        ((Column("volume", "INT", formerly=("meter",)),), "called `meter` before, and there is a"),
        (
            tuple(Column(name, "INT", formerly=("litres",)) for name in ("volume", "amount")),
            "`amount` was called `litres` before",
        ),
    ],
)
def test_a_former_name_that_cannot_be_is_refused(columns: Sequence[Column], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        replace(OLD, columns=(*COLUMNS[:2], *columns))


def test_an_inferring_table_does_not_take_a_former_name_for_a_column_of_its_own(
    warehouse: Warehouse,
) -> None:
    publish(warehouse)
    table = replace(OLD, columns=(COLUMNS[0], NEW.columns[2]), infers=True)
    assert read_log(warehouse, table).table.column_names == ("day", "volume", "meter", "flow")


def test_a_former_name_is_no_part_of_the_code_version() -> None:
    assert repr(Column("a", "INT", formerly=("b",))) == repr(Column("a", "INT"))


def test_a_migration_changes_no_partition_and_all_that_was_published_stays(
    warehouse: Warehouse,
) -> None:
    before = publish(warehouse)
    after = migrate(warehouse, before)
    assert find_changes(after) == []
    check_stored(after)
    (commit, *_) = after.commits
    assert (commit.operation, commit.record, commit.foreign) == (MIGRATE, None, ())
    assert CommitRecord.from_json(json.dumps({"migrated": []})) is None
    assert after.foreign_changes == {}
    assert {key: found.version for key, found in after.publishes.items()} == dict.fromkeys(DAYS, 1)
    assert after.checksums == before.checksums
    partitions = build_partitions(NEW, DAYS)
    contents = [read_back(after.as_of(version), partitions) for version in (1, 2)]
    assert contents[0] == contents[1]
    assert {key: found.checksum for key, found in contents[1].items()} == after.checksums
    assert prove_untouched(after, DAYS[:1], versions=(2,)).holds
    profiles, _ = find_profiles(after)
    assert profiles[DAYS[0]].nulls == {"volume": 1}
    assert profiles[DAYS[0]].histograms == {"volume/1": (1, 1)}


def test_a_column_that_was_added_is_in_no_checksum_of_before_though_the_log_lost_its_commit(
    warehouse: Warehouse,
) -> None:
    publish(warehouse)
    DeltaTable(warehouse.uri(OLD)).alter.set_table_properties({"delta.checkpointInterval": "30"})
    log = read_log(warehouse, OLD).keep_publishes()
    log.open_snapshot().create_checkpoint()
    gas = Column("gas", "STRING")
    DeltaTable(log.uri).alter.add_columns([Field("gas", PrimitiveType("string"))])
    table = replace(OLD, columns=(*COLUMNS, gas))
    partitions = build_partitions(table, DAYS)
    for lost in ((), (0, 1)):
        for version in lost:
            (local_path(log.uri) / "_delta_log" / f"{version:020}.json").unlink()
        log = read_log(warehouse, table)
        assert (log.begins_with, log.version) == (2 if lost else 0, 3)
        assert log.with_columns_of(1).table.column_names == OLD.column_names
        found = IN_THIS_PROCESS.read_published(log, partitions)
        assert all(found[key].agrees_with(publish) for key, publish in log.publishes.items())
        assert not read_back(log, partitions)[DAYS[0]].agrees_with(log.publishes[DAYS[0]])


def test_a_run_that_was_at_work_meanwhile_writes_nothing(warehouse: Warehouse) -> None:
    before = publish(warehouse)
    migrate(warehouse, before)
    with (
        pytest.raises(TableError, match="were migrated while the run was at work: run these"),
        hold_partitions(before, DAYS[:1], run_id="run-2"),
    ):
        pass


def test_a_rollback_over_a_renaming_needs_the_former_name(warehouse: Warehouse) -> None:
    after = migrate(warehouse, publish(warehouse))
    rows = build_rows(migrated=True)
    record = build_record(
        NEW,
        partitions := build_partitions(NEW, DAYS),
        run_id="run-2",
        code_version="code",
        input_versions={},
        rows=dict.fromkeys(DAYS, 2),
        checksums=dict.fromkeys(DAYS, "0"),
    )
    after = write(warehouse, rows, record.to_json())
    now = dt.datetime.now(dt.UTC)
    assert plan_rollback(after, partitions, to_version=1, now=now).to_version == 1
    forgotten = replace(NEW.columns[2], formerly=())
    table = replace(NEW, columns=(*NEW.columns[:2], forgotten, NEW.columns[3]))
    with pytest.raises(RollbackError, match=r'declare the column with formerly=\("litres",\)'):
        plan_rollback(replace(after, table=table), partitions, to_version=1, now=now)
