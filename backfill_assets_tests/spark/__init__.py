"""Tests of `backfill_assets.spark`."""
