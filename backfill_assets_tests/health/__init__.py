"""Tests of `backfill_assets.health`."""
