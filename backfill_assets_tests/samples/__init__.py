"""Tests of `backfill_assets.samples`."""
