"""Tests of `backfill_engine.rules`."""
