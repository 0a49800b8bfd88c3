"""Tests of `backfill_assets.proof`."""
