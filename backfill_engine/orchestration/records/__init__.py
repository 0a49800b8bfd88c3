"""What a run leaves in Dagster: events, checks, certificates, messages.

Here belongs what is said of partitions once they are published or withheld.
"""
