"""Dagster's side of a run: what may go, what is recorded, what goes on after a failure."""
