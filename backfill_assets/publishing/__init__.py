"""A run's work on one table: window → transform → audit → publish. Knows nothing of Dagster."""
