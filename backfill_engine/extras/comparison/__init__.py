"""Comparison: a table next to another version, a golden, its source, or the tables that it is of.

Only `reconciliation` computes with Spark, the rest reads by itself (`contents`). Nothing here
writes a table.
"""
