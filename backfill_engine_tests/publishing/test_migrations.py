"""Columns of a table that exists become wider, and get other names, by the job of `migrate`."""

import datetime as dt
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import AssetKey, DagsterInstance, ExecuteInProcessResult
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine import (
    Calendar,
    Column,
    ExternalDelta,
    InputWindow,
    Settings,
    Table,
    Upstream,
    build_defs,
    required,
    table_asset,
)
from backfill_engine.asset_definitions import find_catalogs
from backfill_engine.contents.partition_contents import (
    IN_THIS_PROCESS,
    PartitionReader,
    ReadBack,
    read_back,
)
from backfill_engine.errors import TableError
from backfill_engine.lake.commit_files import read_commit_infos
from backfill_engine.lake.commits import MIGRATE, MigrationRecord
from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.lake.side_tables import build_withheld_table
from backfill_engine.lake.stored_declarations import (
    STATISTICS,
    check_stored,
    find_changes,
    find_uncompared,
)
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.runs.run_tags import RANGE_END_TAG, RANGE_START_TAG
from backfill_engine.proof.verification import verify_run
from backfill_engine.publishing.migrating import migrate_columns
from backfill_engine.rules import Values
from backfill_engine.tables.protected import Protected
from backfill_engine_tests.pipeline.publishing import Lake

pytestmark = [pytest.mark.spark, pytest.mark.only_spark]  # The rewrite of a schema.

DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
THEIRS = (
    required("day", "DATE"),
    required("meter", "INT"),
    Column("litres", "INT"),
    Column("flow", "FLOAT"),
    Column("price", "DECIMAL(6,2)"),
    Column("note", "VARCHAR(5)"),
)
WIDER = (
    required("day", "DATE"),
    required("meter", "BIGINT"),
    Column("litres", "BIGINT"),
    Column("flow", "DOUBLE"),
    Column("price", "DECIMAL(12,2)"),
    THEIRS[-1],
)
RENAMED = (
    WIDER[0],
    required("sensor", "BIGINT", formerly=("meter",)),
    Column("volume", "BIGINT", formerly=("litres",)),
    *WIDER[3:],
)


@dataclass(frozen=True)
class Meters:
    """A table of ours by one declaration; others of it work on the same warehouse and instance."""

    root: Path
    instance: DagsterInstance
    table: Table
    run: Callable[..., ExecuteInProcessResult]
    do: Callable[..., ExecuteInProcessResult]

    @property
    def log(self) -> TableLog:
        """Its log."""
        return read_log(Warehouse(f"{self.root}/warehouse"), self.table)

    @property
    def contents(self) -> dict[str, ReadBack]:
        """What delta-rs reads in its days."""
        return read_back(self.log, build_partitions(self.table, DAYS))

    def migrate(self, **config: Any) -> str:
        """Runs the job of `migrate`; returns what it says, also why it failed."""
        config = {"table": "gold/meters", **config}
        result = self.do("migrate_columns", {"migrate_table": {"config": config}})
        if result.success:
            return result.output_for_node("migrate_table")
        return str(self.instance.all_logs(result.run_id))

    def verify(self, run_id: str) -> list[tuple[bool | None, str]]:
        """Verifies the certificate of a run."""
        lines = [line for found in verify_run([self.log], run_id).values() for line in found]
        assert lines
        return [(line.holds, line.found) for line in lines]


def write_theirs(root: Path, *litres: int | None) -> None:
    """Writes two rows a day, by another program."""
    days = [dt.date.fromisoformat(day) for day in DAYS for _ in range(2)]
    rows = {
        "day": days,
        "meter": pa.array([1, 2] * 3, pa.int32()),
        "litres": pa.array(litres, pa.int32()),
        "flow": pa.array([0.1, None, -2.5, 1e30, 1 / 3, 7], pa.float32()),
        "price": pa.array(["1.10", "-9999.99", None, "0.00", "12.34", "5.00"]).cast(
            pa.decimal128(6, 2)
        ),
        "note": ["a", None, "abcde", "", "ü", "x"],
    }
    write_deltalake(root / "theirs", pa.table(rows), mode="overwrite", partition_by=["day"])


LITRES = (1, 2, 3, None, 5, 6)


def declare(
    root: Path, instance: DagsterInstance, columns: Sequence[Column], **options: Any
) -> Meters:
    """Builds the code location with the table of these columns."""
    theirs = ExternalDelta("theirs", "meters", "day", THEIRS, location=str(root / "theirs"))
    table = Table("gold", "meters", "day", tuple(columns), **options)

    @table_asset(table, inputs=[Upstream(theirs)])
    def gold_meters(window: InputWindow) -> DataFrame:
        """One row per row of theirs."""
        rows = window.read(theirs, column="day")
        return rows.select(
            *(
                (F.col(source.name) if source else F.lit("new"))
                .cast(column.parsed_type.of_values)
                .alias(column.name)
                for source, column in zip_longest(THEIRS, columns)
            )
        )

    defs = build_defs(
        [gold_meters],
        lakehouse=Settings(landing=f"{root}/landing", warehouse=f"{root}/warehouse"),
        calendar=Calendar(dt.date(2024, 1, 1), dt.date(2024, 1, 4)),
    )
    (catalog,) = find_catalogs(defs.get_repository_def().asset_graph)
    job = defs.resolve_implicit_global_asset_job_def()
    return Meters(
        root,
        instance,
        catalog.find_table("gold/meters"),
        lambda first=DAYS[0], last=DAYS[-1]: job.execute_in_process(
            instance=instance,
            asset_selection=[AssetKey(["gold", "meters"])],
            tags={RANGE_START_TAG: first, RANGE_END_TAG: last},
            raise_on_error=False,
        ),
        lambda name, ops: (
            defs.get_repository_def()
            .get_job(name)
            .execute_in_process(instance=instance, run_config={"ops": ops}, raise_on_error=False)
        ),
    )


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Path:
    write_theirs(tmp_path, *LITRES)
    return tmp_path


@pytest.mark.parametrize("columns", [WIDER, RENAMED], ids=["wider", "renamed"])
def test_names_and_types_change_and_nothing_else(
    root: Path, instance: DagsterInstance, spark: SparkSession, columns: Sequence[Column]
) -> None:
    old = declare(root, instance, THEIRS, natural_key=("day", "meter"))
    run = old.run()
    before, contents = old.log, old.contents
    new = declare(root, instance, columns, natural_key=("day", columns[1].name))
    assert "run `backfill-assets migrate gold/meters`" in str(
        instance.all_logs(new.run().run_id)
    ), "a run with the new declaration writes nothing"
    assert new.log.version == before.version
    message = new.migrate()
    assert "its 6 rows have the same checksums as before" in message
    log = new.log
    check_stored(log)
    stored = {field.name: str(field.type.type) for field in log.open_snapshot().schema().fields}
    types = ("date", "long", "long", "double", "decimal(12,2)", "string")
    assert stored == dict(zip((column.name for column in columns), types, strict=True))
    assert new.contents == contents
    assert log.publishes.keys() == {*DAYS}
    assert {key: found.version for key, found in log.publishes.items()} == {
        key: found.version for key, found in before.publishes.items()
    }
    assert log.foreign_changes == {}
    assert log.properties[STATISTICS] == ",".join(f"`{name}`" for name in new.table.natural_key[1:])
    infos = read_commit_infos(log.uri, after=before.version, up_to=log.version)
    records = [MigrationRecord.from_json(info.get("userMetadata")) for _, info in infos]
    (record,) = filter(None, records)
    assert record.checksums == {key: found.checksum for key, found in contents.items()}
    assert len(record.migrated) == 4
    verified = new.verify(run.run_id)
    assert {holds for holds, _ in verified} == {True}
    assert sum("which migrated columns" in found for _, found in verified) == len(DAYS)

    version = log.version
    assert new.migrate() == "gold/meters: nothing to migrate: it is stored as declared"
    assert new.log.version == version, "a repeated command does nothing"

    write_theirs(root, *LITRES[:2], 30, 40, *LITRES[4:])
    assert new.run(DAYS[1], DAYS[1]).success
    assert new.contents[DAYS[1]] != contents[DAYS[1]]
    (day,) = build_partitions(new.table, DAYS[1:2])
    lake = Lake(spark, new.log.warehouse)
    lake.roll_back(new.table, [day], to_version=before.version, run_id="undo")
    assert new.contents == contents, "a rollback goes back over the migration"
    assert {holds for holds, _ in new.verify(run.run_id)} == {True}


GAS = Column("gas", "STRING")


@pytest.mark.parametrize("columns", [THEIRS, WIDER], ids=["as they were", "wider"])
def test_what_was_published_before_a_column_was_added_still_is_what_was_certified(
    root: Path, instance: DagsterInstance, columns: Sequence[Column]
) -> None:
    run = declare(root, instance, THEIRS).run()
    new = declare(root, instance, (*columns, GAS))
    assert {holds for holds, _ in new.verify(run.run_id)} == {True}, "it is only declared"
    new.migrate()
    assert new.run(DAYS[0], DAYS[0]).success
    assert new.log.open_snapshot().schema().fields[-1].name == GAS.name
    assert {holds for holds, _ in new.verify(run.run_id)} == {True}
    log, contents = new.log, new.contents
    found = IN_THIS_PROCESS.read_published(log, build_partitions(new.table, DAYS))
    assert all(found[key].agrees_with(log.publishes[key]) for key in DAYS)
    assert [key for key in DAYS if contents[key].agrees_with(log.publishes[key])] == [DAYS[0]]


def test_a_required_column_stays_required_by_a_condition_that_delta_demands(
    root: Path, instance: DagsterInstance, spark: SparkSession
) -> None:
    declare(root, instance, THEIRS).run()
    new = declare(root, instance, RENAMED)
    new.migrate()
    with pytest.raises(Exception, match=r"(?s)sensor.*IS NOT NULL"):
        spark.sql(
            f"INSERT INTO delta.`{new.log.uri}` (day, sensor, volume, flow, price, note) "
            "VALUES (DATE'2024-01-03', NULL, 1, 1.0, 1.0, 'a')"
        )
    with pytest.raises(Exception, match=r"(?i)length|exceed"):
        spark.sql(
            f"INSERT INTO delta.`{new.log.uri}` (day, sensor, volume, flow, price, note) "
            "VALUES (DATE'2024-01-03', 1, 1, 1.0, 1.0, 'abcdef')"
        )
    twice = declare(
        root,
        instance,
        (*RENAMED[:1], required("device", "BIGINT", formerly=("sensor", "meter")), *RENAMED[2:]),
    )
    assert "`sensor` becomes `device`" in twice.migrate()
    assert twice.run().success


def test_a_name_that_a_constraint_has_is_not_changed(
    root: Path, instance: DagsterInstance, spark: SparkSession
) -> None:
    old = declare(root, instance, THEIRS)
    old.run()
    where = f"ALTER TABLE delta.`{old.log.uri}`"
    spark.sql(f"{where} ADD CONSTRAINT known CHECK (litres IS NULL OR litres != 9)")
    before, contents = old.log, old.contents
    new = declare(root, instance, RENAMED)
    assert "DROP CONSTRAINT known" in new.migrate()
    assert (new.log.version, old.contents) == (before.version, contents)
    assert old.run().success
    assert "same checksums" in declare(root, instance, WIDER).migrate(), "no name changes"
    spark.sql(f"{where} DROP CONSTRAINT known")
    assert "same checksums" in new.migrate()
    assert new.contents == contents


@dataclass(frozen=True)
class Meanwhile(PartitionReader):
    """Reads partitions; at the first time another program deletes rows after that.

    Attributes:
        deletes: deletes them.
        calls: the readings so far.
    """

    deletes: Callable[[], object] = print
    calls: tuple[list[int], ...] = ()

    def read_back(self, log: TableLog, partitions: Sequence[Partition]) -> dict[str, ReadBack]:
        """Reads them."""
        found = read_back(log, partitions)
        if not self.calls[0]:
            self.calls[0].append(log.version)
            self.deletes()
        return found


def test_what_another_program_writes_meanwhile_is_not_lost(
    root: Path, instance: DagsterInstance, spark: SparkSession
) -> None:
    old = declare(root, instance, THEIRS)
    old.run()
    log = declare(root, instance, WIDER).log
    deletion = f"DELETE FROM delta.`{log.uri}` WHERE day = DATE'2024-01-02'"
    reader = Meanwhile(deletes=lambda: spark.sql(deletion), calls=([],))
    with pytest.raises(TableError, match="another program wrote meanwhile, so the migration was"):
        migrate_columns(spark, log, run_id="run", reader=reader, overrides={})
    assert old.log.count_rows() == {DAYS[0]: 2, DAYS[2]: 2}
    check_stored(old.log)
    assert old.log.foreign_changes.keys() == {DAYS[1]}


@pytest.mark.parametrize("reading", [1, 2], ids=["before its commit", "before it is compared"])
def test_a_killed_migration_is_finished_by_the_next_one(
    root: Path, instance: DagsterInstance, reading: int
) -> None:
    old = declare(root, instance, THEIRS, natural_key=("day", "meter"))
    old.run()
    before, contents = old.log, old.contents
    assert before.properties[STATISTICS] == "`meter`"
    new = declare(root, instance, RENAMED, natural_key=("day", "sensor"))
    kill_migration(new, reading)
    log = new.log
    assert log.version > before.version
    assert STATISTICS not in log.properties
    made = [commit.version for commit in log.list_commits_after(before.version)]
    if reading == 1:
        assert (old.contents, find_uncompared(log)) == (contents, None)
        assert find_changes(log)
    else:
        assert not find_changes(log)
        (found, _) = find_uncompared(log) or (None, None)
        assert found == made[0] == log.version
    message = new.migrate()
    assert ("is compared now, and has the same" in message) is (reading == 2)
    assert ("rows have the same checksums as before" in message) is (reading == 1)
    assert "statistics are of `sensor`" in message
    assert (new.contents, new.log.properties[STATISTICS]) == (contents, "`sensor`")
    version = new.log.version
    assert new.migrate() == "gold/meters: nothing to migrate: it is stored as declared"
    assert new.log.version == version


def test_a_killed_migration_that_wrote_other_rows_is_taken_back_unless_others_wrote_since(
    root: Path, instance: DagsterInstance
) -> None:
    old = declare(root, instance, THEIRS)
    old.run()
    contents = old.contents
    new = declare(root, instance, WIDER)
    kill_migration(new, 2, loses=True)
    assert not find_changes(new.log)
    assert "so the migration was taken back" in new.migrate()
    assert old.contents == contents
    assert find_changes(new.log)
    kill_migration(new, 2, loses=True)
    assert new.run(DAYS[0], DAYS[0]).success
    message = new.migrate()
    assert f"others have written since, so it stays: run {DAYS[1]}, {DAYS[2]} again" in message
    assert new.run(DAYS[1], DAYS[2]).success
    assert "is compared now" in new.migrate()
    assert new.contents == contents


def kill_migration(meters: Meters, reading: int, *, loses: bool = False) -> None:
    """Migrates in a process of its own, which is killed at one of its two readings."""
    module = "backfill_engine_tests.publishing.migrating_process"
    killed = subprocess.run(
        [sys.executable, "-m", module, meters.log.warehouse.root, str(reading), str(loses)],
        input=pickle.dumps(meters.table),
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL


def test_protected_partitions_are_rewritten_only_with_a_reason(
    root: Path, instance: DagsterInstance
) -> None:
    declare(root, instance, THEIRS).run()
    protected = (Protected(reason="reported", last=DAYS[0]),)
    new = declare(root, instance, WIDER, protected=protected)
    version = new.log.version
    assert "reported" in new.migrate()
    assert new.log.version == version
    assert "same checksums" in new.migrate(override_protection="the meters count further")
    settled, commit = new.log.list_commits_after(version)
    assert (settled.operation, commit.operation) == ("SET TBLPROPERTIES", MIGRATE)
    (_, info), *_ = read_commit_infos(new.log.uri, after=version, up_to=version + 1)
    record = MigrationRecord.from_json(info["userMetadata"])
    assert record is not None
    assert "the meters count further" in record.overrides[DAYS[0]]


def test_rows_that_are_withheld_before_and_after_it_are_kept_in_one_table(
    root: Path, instance: DagsterInstance
) -> None:
    strict = {"rules": (Values("litres", low=0, high=5),)}
    declare(root, instance, THEIRS, **strict).run()
    new = declare(root, instance, WIDER, **strict)
    aside = build_withheld_table(new.table)
    warehouse = new.log.warehouse
    assert read_log(warehouse, aside).count_rows()
    assert "same checksums" in new.migrate()
    assert not new.run().success
    kept = warehouse.open(aside).to_pyarrow_table()
    assert kept.schema.field("litres").type == pa.int64()
    assert kept.num_rows == 4
