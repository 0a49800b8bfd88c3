"""Tests of `backfill_assets.contents`."""
