"""Measures what was computed, in one grouped pass, and judges it partition by partition.

Here belong Spark's measuring and the fold over partitions with their baseline. What a rule asks
and how it judges is in `rules`; what becomes of a verdict, in `publishing`.
"""
