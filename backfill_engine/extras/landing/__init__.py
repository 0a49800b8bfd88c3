"""Observations of the landing zone: what landed when, in Dagster's catalog.

The external assets that tables depend on are the core's: `asset_definitions`.
"""
