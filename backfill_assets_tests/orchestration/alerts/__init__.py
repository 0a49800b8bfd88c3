"""Tests of `backfill_assets.orchestration`."""
