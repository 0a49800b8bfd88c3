"""Tests of `backfill_engine.lake`."""
