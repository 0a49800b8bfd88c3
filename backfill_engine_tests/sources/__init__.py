"""Tests of `backfill_engine.sources`."""
