"""What partitions are measured by before they are published. Knows nothing of Dagster."""
