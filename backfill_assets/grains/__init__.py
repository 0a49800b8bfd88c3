"""Grains: which values of a partition column make one partition. One module each, pure."""
