"""The pipelines, a module each: which window an asset reads, and which transform it applies.

Here belongs the wiring of one pipeline, mappings between its partitions included. Columns and
rules are declared in `tables`, rows are computed in `transforms`.
"""
