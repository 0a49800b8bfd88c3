"""What partitions hold, and its checksum, by a reader of its own: Arrow and numpy.

Here belong rows as canonical words, their hashes, and counts by partition; not what two of them
differ in, which is `proof`'s, nor what a partition must meet, which is `rules`'. Two parts know
Spark: `checksums`, the same formula for what Spark is about to write, and `task_read_back`, which
has the reader run in Spark's tasks.
"""
