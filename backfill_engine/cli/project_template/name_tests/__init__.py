"""Tests of {{name}}."""
