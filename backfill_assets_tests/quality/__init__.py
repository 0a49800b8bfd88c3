"""Tests of `backfill_assets.quality`."""
