"""Tests of `backfill_engine.quality`."""
