"""Tests of `backfill_engine.extras.comparison`."""
