"""What the two implementations of the checksum share: its constants and its spelling.

The formula is described in `contents.checksums`. No Spark here: `contents.read_back` runs without.
"""

SEED = 42
FLOAT_SCALE = 6
NULL = 0x6E756C6C
NULL_STRING = SEED  # Spark's hash of a null is the seed, not null
NOT_A_NUMBER, INFINITY, MINUS_INFINITY = 0x6E616E, 0x696E66, 0x2D696E66

IS_NULL, IS_VALUE, IS_CONSTANT = 0, 1, 2
"""Marks of what stands inside of another value: null, and what isn't a finite number."""


def format_checksum(upper: int | None, lower: int | None) -> str:
    """Writes a checksum as 16 hexadecimal digits; all zero for a partition without rows."""
    return f"{(((upper or 0) << 32) + (lower or 0)) % 2**64:016x}"
