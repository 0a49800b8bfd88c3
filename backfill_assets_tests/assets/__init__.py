"""Tests of `backfill_assets.assets`: whole pipelines, against other computations of the same."""
