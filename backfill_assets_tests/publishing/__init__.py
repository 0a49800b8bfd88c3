"""Tests of `backfill_assets.publishing`."""
