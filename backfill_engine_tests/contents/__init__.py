"""Tests of `backfill_engine.contents`."""
