"""Sales that a nightly job kept until now, and where: gold/sales, as `adopt` took it over."""

from pathlib import Path

from pyspark.sql import DataFrame

from backfill_engine import CsvFiles, required, table

FIELDS = (required("shop", "STRING"), required("amount", "DOUBLE"))


@table(
    "gold/sales",
    partition_by="day",
    inputs={"sales": CsvFiles("sales/{partition}.csv", fields=FIELDS)},
    columns=FIELDS,
    location=str(Path(__file__).parents[1] / "data" / "nightly" / "sales"),
)
def sales(sales: DataFrame) -> DataFrame:
    """One row per day and shop."""
    return sales.drop("source_file")
