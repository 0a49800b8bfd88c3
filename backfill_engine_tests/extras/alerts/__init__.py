"""Tests of `backfill_engine.extras.alerts`."""
