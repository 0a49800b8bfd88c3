"""Tests; the folders mirror the package. Nothing of Spark, Delta or Dagster is mocked."""
