"""Tests of `backfill_engine.proof`."""
