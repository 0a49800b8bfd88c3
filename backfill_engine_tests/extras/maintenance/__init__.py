"""Tests of `backfill_engine.extras.maintenance`."""
