"""Tests of `backfill_assets.filters`."""
