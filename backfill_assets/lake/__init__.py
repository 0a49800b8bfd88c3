"""Delta tables: their declarations, writes, reads and log. Knows nothing of Dagster."""
