"""Tests of `backfill_engine.cli`."""
