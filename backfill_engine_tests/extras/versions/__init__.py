"""Tests of `backfill_engine.extras.versions`."""
