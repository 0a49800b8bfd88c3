"""Pure functions from DataFrame to DataFrame; the final select of each is its contract.

Here belongs what rows mean. No reads, no writes, no partitions to choose: a transform gets frames
and returns one. What an asset reads for it is in `assets`.
"""
