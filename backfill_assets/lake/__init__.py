"""Delta tables: what they are, how they are written, read and looked up. Knows nothing of Dagster."""
