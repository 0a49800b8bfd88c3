"""Tests of `backfill_assets.lake`."""
