"""Tests of `backfill_assets.ops`."""
