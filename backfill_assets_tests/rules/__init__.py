"""Tests of `backfill_assets.rules`."""
