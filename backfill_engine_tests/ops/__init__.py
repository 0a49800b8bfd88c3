"""Tests of `backfill_engine.ops`."""
