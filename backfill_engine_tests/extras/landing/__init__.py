"""Tests of `backfill_engine.extras.landing`."""
