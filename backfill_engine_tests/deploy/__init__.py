"""Tests of what `deploy/` has."""
