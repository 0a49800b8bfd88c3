"""Tests of `backfill_assets.grains`."""
