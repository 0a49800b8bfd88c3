"""What is declared of the tables: columns, keys, and the rules that a partition must meet."""

from backfill_engine import Column, Table, required
from backfill_engine.rules import Reconciled, Rejects, RowCount, Values

READING_FIELDS = (
    required("meter", "INT", "Number of the meter"),
    required("read_at", "TIMESTAMP", "When it was read, an instant"),
    Column("litres", "DOUBLE", "Litres since the reading before; null if it was not legible"),
)

BRONZE_READINGS = Table(
    layer="bronze",
    name="readings",
    partition_by="landing_date",
    columns=(
        required("landing_date", "DATE", "Day on which the reading landed"),
        *READING_FIELDS,
        required("source_file", "STRING", "Landing file, below the landing root"),
    ),
    rules=(RowCount(), Reconciled(), Rejects(at_most=0.01)),
)

SILVER_READINGS = Table(
    layer="silver",
    name="readings",
    partition_by="landing_date",
    columns=(
        required("landing_date", "DATE", "Day"),
        required("meter", "INT", "Number of the meter"),
        required("read_at", "TIMESTAMP", "When it was read, an instant"),
        required("litres", "DOUBLE", "Litres since the reading before; 0 if it was not legible"),
    ),
    natural_key=("meter", "read_at"),
    rules=(RowCount(), Reconciled(), Values("litres", 0, 1_000)),
)

METER_DAYS = Table(
    layer="gold",
    name="meter_days",
    partition_by="landing_date",
    columns=(
        required("landing_date", "DATE", "Day"),
        required("meter", "INT", "Number of the meter"),
        required("readings", "BIGINT", "Readings of the day"),
        required("litres", "DOUBLE", "Litres that they add up to"),
    ),
    natural_key=("landing_date", "meter"),
    rules=(RowCount(), Reconciled(total_of="readings")),
)
