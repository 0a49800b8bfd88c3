"""The samples: a small Dagster project that uses `backfill_engine`."""
