"""Tests of `backfill_engine.filters`."""
