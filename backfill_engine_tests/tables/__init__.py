"""Tests of `backfill_assets.tables`."""
