"""Tests of `backfill_assets.cli`."""
