"""Comparison: rows of a table next to another version, a golden, or what follows from the source.

Only `reconciliation` computes with Spark, the rest reads by itself (`contents`). Nothing here
writes a table.
"""
