"""Runs the real assets in this process, on small landing zones of the tests' own."""
