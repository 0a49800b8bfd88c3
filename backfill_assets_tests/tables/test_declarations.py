"""Table declarations, and the DDL made from them."""

import pytest
from pyspark.sql.types import DateType, StringType, StructType

from backfill_assets.tables.declarations import Column, Table, build_ddl, required
from backfill_assets.tables.flights import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS

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
    with pytest.raises(ValueError, match=r"raw/readings: .* must be a declared, required column"):
        Table("raw", "readings", partition_by, (DAY, VALUE), natural_key=natural_key)


def test_ddl_without_constraints_has_names_and_types_only() -> None:
    assert build_ddl((DAY, VALUE), constraints=False) == "`day` DATE, `value` STRING"


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
