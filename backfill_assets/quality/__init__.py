"""Measures and judges partitions before they are published; it knows nothing of Dagster."""
