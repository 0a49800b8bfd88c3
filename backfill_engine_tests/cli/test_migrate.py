"""`migrate` says first what it would change. It needs no Spark until it changes it."""

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from typer.testing import CliRunner

from backfill_engine.cli import app
from backfill_engine.contents.canonical_words import find_arrow_type
from backfill_engine.lake.commits import MigrationRecord
from backfill_engine.lake.origins import Origin
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.columns import Column
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.project import RAW_FLIGHTS

RAW = RAW_FLIGHTS.key


def write_flights(warehouse: Warehouse, *, record: str = "", **types: pa.DataType) -> None:
    """Writes a day of nulls, as declared but for the types of some columns."""
    columns = {
        column.name: pa.nulls(3, types.get(column.name, find_arrow_type(column)))
        for column in RAW_FLIGHTS.columns
    }
    days = pa.array(["2013-01-05"] * 3).cast(pa.date32())
    rows = pa.table({**columns, RAW_FLIGHTS.partition_by: days})
    write_deltalake(
        warehouse.uri(RAW_FLIGHTS),
        rows,
        mode="overwrite",
        partition_by=[RAW_FLIGHTS.partition_by],
        commit_properties=CommitProperties(custom_metadata={"userMetadata": record}),
    )


@pytest.mark.parametrize("types", [{"hour": pa.int16()}, {"hour": pa.int8(), "minute": pa.int16()}])
def test_a_dry_run_says_what_would_change_and_changes_nothing(
    installation: LandingZone, warehouse: Warehouse, types: dict[str, pa.DataType]
) -> None:
    write_flights(warehouse, **types)
    shown = CliRunner().invoke(app, ["migrate", RAW, "--dry-run"])
    names = {pa.int8(): "TINYINT", pa.int16(): "SMALLINT"}
    changed = [f"{RAW}: `{name}`: {names[type_]} becomes INT" for name, type_ in types.items()]
    *listed, size = shown.output.splitlines()
    assert sorted(listed) == sorted(changed)
    assert size.startswith(f"{RAW}: 3 rows (")
    assert warehouse.open(RAW_FLIGHTS).version() == 0


def test_a_table_as_declared_is_left_alone(installation: LandingZone, warehouse: Warehouse) -> None:
    write_flights(warehouse)
    shown = CliRunner().invoke(app, ["migrate", RAW])
    assert shown.output == f"{RAW}: nothing to migrate: it is stored as declared\n"
    assert warehouse.open(RAW_FLIGHTS).version() == 0


def test_a_migration_that_was_stopped_before_it_was_compared_is_told(
    installation: LandingZone, warehouse: Warehouse
) -> None:
    record = MigrationRecord(
        migrated=("`hour`: SMALLINT becomes INT",),
        run_id="killed",
        asset_key=RAW,
        based_on=0,
        rows={"2013-01-05": 3},
        checksums={"2013-01-05": "0"},
        features=Origin("migration", "ann", "hours pass 23").describe(),
    )
    write_flights(warehouse)
    write_flights(warehouse, record=record.to_json())
    shown = CliRunner().invoke(app, ["migrate", RAW, "--dry-run"])
    assert shown.output == f"{RAW}: the migration of version 1 was stopped, and is compared first\n"
    words = CliRunner().invoke(app, ["history", RAW]).output.split()
    assert {"migration", "killed", "ann:", "hours", "pass", "23"} <= {*words}


def test_a_narrower_type_is_refused(installation: LandingZone, warehouse: Warehouse) -> None:
    write_flights(warehouse, hour=find_arrow_type(Column("hour", "BIGINT")))
    shown = CliRunner().invoke(app, ["migrate", RAW])
    assert shown.exit_code == 1
    assert "has `hour` as BIGINT, and INT is declared: declare it as it is" in str(shown.exception)
