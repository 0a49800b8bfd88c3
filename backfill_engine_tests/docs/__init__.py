"""Runs the pages of `docs/`, as a reader would."""
