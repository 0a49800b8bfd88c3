"""Versions of a served table: how one differs from another, promotion, and retirement.

Which version a table serves, and that no run mixes two, is the core's: `publishing.serving`.
"""
