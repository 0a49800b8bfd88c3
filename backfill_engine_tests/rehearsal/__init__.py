"""Tests of `backfill_engine.rehearsal`."""
