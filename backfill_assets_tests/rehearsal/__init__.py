"""Tests of `backfill_assets.rehearsal`."""
