"""Acme's data platform."""
