"""Readings of meters, daily."""
