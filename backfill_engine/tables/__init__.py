"""Declarations: tables with their columns, grain and rules, and what lands. Pure data.

Here belongs what is true of a table before anything runs. Nothing here reads the environment, a
file or a table; Spark and Dagster are not imported.
"""
