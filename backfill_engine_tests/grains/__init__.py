"""Tests of `backfill_engine.grains`."""
