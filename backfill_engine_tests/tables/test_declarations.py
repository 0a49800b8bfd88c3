"""Table declarations, and the DDL made from them."""

import pytest
from pyspark.sql.types import DateType, StringType, StructType

from backfill_engine.errors import DeclarationError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.dates import DAYS
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.tables.declarations import Column, Table, build_ddl, required
from backfill_engine_tests.project import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS

DAY = required("day", "DATE", "Day")
VALUE = Column("value", "STRING", "It's a \\ value")


def test_key_and_column_names_follow_the_declaration() -> None:
    table = Table("raw", "readings", "day", (DAY, VALUE))
    assert table.key == "raw/readings"
    assert table.column_names == ("day", "value")


@pytest.mark.parametrize(
    ("partition_by", "natural_key"),
    [("value", ()), ("month", ()), ("day", ("day", "value")), ("day", ("id",))],
    ids=["nullable partition", "undeclared partition", "nullable key", "undeclared key"],
)
def test_partition_and_key_columns_must_be_declared_and_required(
    partition_by: str, natural_key: tuple[str, ...]
) -> None:
    with pytest.raises(DeclarationError, match=r"raw/readings: .* be a declared, required col"):
        Table("raw", "readings", partition_by, (DAY, VALUE), natural_key=natural_key)


def test_ddl_without_constraints_has_names_and_types_only() -> None:
    assert build_ddl((DAY, VALUE), constraints=False) == "`day` DATE, `value` STRING"


@pytest.mark.only_spark
@pytest.mark.usefixtures("spark")
def test_spark_reads_types_constraints_and_comments_from_the_ddl() -> None:
    schema = StructType.fromDDL(build_ddl((DAY, VALUE)))
    assert isinstance(schema, StructType)
    day, value = schema.fields
    assert (day.name, day.dataType, day.nullable) == ("day", DateType(), False)
    assert (value.name, value.dataType, value.nullable) == ("value", StringType(), True)
    assert value.metadata["comment"] == VALUE.comment


@pytest.mark.parametrize("table", [RAW_FLIGHTS, STAGING_FLIGHTS, CARRIER_DELAYS])
def test_declared_columns_are_unique_and_described(table: Table) -> None:
    assert len(set(table.column_names)) == len(table.columns)
    assert all(column.comment for column in table.columns)


COLUMNS = (
    required("day", "DATE", "Day"),
    required("hour", "TIMESTAMP", "Hour"),
    required("id", "BIGINT", "Number"),
    required("small", "INT", "Number that is never large"),
    required("name", "STRING", "Name"),
    Column("maybe", "DATE", "Day, if known"),
)


def declare(partition_by: str, grain: Grain, folder_by: str | None = None) -> Table:
    return Table("raw", "readings", partition_by, COLUMNS, grain=grain, folder_by=folder_by)


@pytest.mark.parametrize(
    ("partition_by", "grain", "folder_by", "folder_column"),
    [
        ("day", DAYS, None, "day"),
        ("hour", HOURS, "day", "day"),
        ("id", Buckets(10, 100), None, "id"),
        ("small", Buckets(10, 100), None, "small"),
    ],
)
def test_folders_are_of_the_partition_column_but_for_hours(
    partition_by: str, grain: Grain, folder_by: str | None, folder_column: str
) -> None:
    assert declare(partition_by, grain, folder_by).folder_column == folder_column


@pytest.mark.parametrize(
    ("partition_by", "grain", "folder_by", "message"),
    [
        ("hour", DAYS, None, "`hour` must be DATE, to be partitioned by days"),
        ("id", DAYS, None, "`id` must be DATE, to be partitioned by days"),
        ("day", HOURS, "day", "`day` must be TIMESTAMP, to be partitioned by hours"),
        ("name", Buckets(9, 90), None, "`name` must be BIGINT, to be partitioned by buckets of 9"),
        ("day", Buckets(9, 90), None, "`day` must be BIGINT, to be partitioned by buckets of 9"),
    ],
)
def test_partition_column_of_another_type_than_the_grains_is_refused(
    partition_by: str, grain: Grain, folder_by: str | None, message: str
) -> None:
    with pytest.raises(DeclarationError, match=f"^raw/readings: {message}$"):
        declare(partition_by, grain, folder_by)


@pytest.mark.parametrize(
    ("partition_by", "grain", "folder_by"),
    [
        ("hour", HOURS, None),
        ("hour", HOURS, "hour"),
        ("hour", HOURS, "name"),
        ("day", DAYS, "day"),
        ("id", Buckets(10, 100), "day"),
    ],
    ids=["hours without", "not a date", "text", "days with", "buckets with"],
)
def test_folders_of_a_day_are_of_tables_with_several_partitions_a_day_only(
    partition_by: str, grain: Grain, folder_by: str | None
) -> None:
    with pytest.raises(DeclarationError, match="`folder_by` is the DATE column of a table"):
        declare(partition_by, grain, folder_by)


@pytest.mark.parametrize("folder_by", ["maybe", "month"])
def test_folder_column_must_be_declared_and_required(folder_by: str) -> None:
    with pytest.raises(DeclarationError, match=f"`{folder_by}` must be a declared, requ"):
        declare("hour", HOURS, folder_by)
