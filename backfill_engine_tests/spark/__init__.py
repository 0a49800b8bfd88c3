"""Tests of `backfill_engine.spark`."""
