"""Tests of `backfill_engine.health`."""
