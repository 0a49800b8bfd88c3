"""Declarations of the project's tables, one module a pipeline. Pure data: no Spark, no Dagster."""
