"""Tests of `backfill_engine.publishing`."""
