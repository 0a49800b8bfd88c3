"""What a range backfill costs, next to bare PySpark and to an empty Dagster run."""
