"""Tests of `backfill_engine.extras.rehearsal`."""
