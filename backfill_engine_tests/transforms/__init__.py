"""Tests of `backfill_assets.transforms`."""
