"""Tests of `backfill_engine.orchestration`."""
