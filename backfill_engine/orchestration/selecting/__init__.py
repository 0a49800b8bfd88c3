"""Which tables and partitions are meant: selections, keys and bounds.

Here belongs what a person types and what it comes to; not what becomes of it.
"""
