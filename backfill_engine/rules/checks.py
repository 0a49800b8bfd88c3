"""Names the checks of a partition."""

from enum import StrEnum


class Check(StrEnum):
    """Names the checks of a partition; each answers a question."""

    COMPLETE = "partition_is_complete"
    VALID = "partition_is_valid"
    STABLE = "partition_is_stable"
    READABLE = "partition_is_readable"
