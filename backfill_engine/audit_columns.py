"""Columns that are the engine's own: no column of a table, and no landed field, has their names.

A transform may add audit columns; they are measured and never stored. All else that the engine puts
beside a table's columns has a name that begins with `ENGINE_PREFIX`.
"""

REJECT_REASON = "_reject_reason"
"""STRING: why a source record can't become a row; null for a good one."""

BEFORE_FIRST_PARTITION = "belongs to an earlier partition than the first: "
"""How the reason of a reject begins that is due: no fault of its source."""

REJECTED_LINE = "_rejected_line"
"""STRING: the source record as it came, of a rejected one; null for a good one."""

FIELDS_SEEN = "_fields_seen"
"""STRING: the fields that the source record has, joined by `FIELD_SEPARATOR`."""

FIELD_SEPARATOR = "\x1f"
"""The unit separator of ASCII: no sane field name has it."""

DUPLICATES = "_duplicates"
"""BIGINT: source records of the same natural key that this row replaced."""

IDENTICAL = "_identical"
"""BIGINT: of these, the ones that say the same as the record after them."""

KEPT = "_kept"
"""BOOLEAN: true for a row that was published before and stays; null for a computed one."""

FILTERED_OUT = "_filtered_out"
"""BOOLEAN: true for a row that a filter leaves out: counted, not published; else null."""

AUDIT_COLUMNS = (
    *(REJECT_REASON, REJECTED_LINE, FIELDS_SEEN, DUPLICATES, IDENTICAL, KEPT, FILTERED_OUT),
)
"""All of them."""

ENGINE_PREFIX = "_backfill_"
"""How the names of the engine's other columns begin; in small letters, as Spark takes either."""

LANDED_LINE, LANDED_FILE = "value", "source_file"
"""STRING columns of landed lines, beside the partition that they landed in: the line, its file."""

REJECTED_FILE = f"{ENGINE_PREFIX}file"
"""STRING: the landing file of a rejected record, in a frame without `source_file`."""

LANDED_ELSEWHERE = f"{ENGINE_PREFIX}elsewhere"
"""BOOLEAN beside a landed line: whether its record says no partition of its file."""

ELSEWHERE = "says no partition that its file holds"
"""The reason why such a record is rejected, in the first partition of its file."""

REJECT_COLUMNS = ("rejected_on", "run_id", LANDED_FILE, "reason", "line")
"""Columns of rejected records, beside the partition that they are of."""


def is_reserved(name: str) -> bool:
    """Tells whether a name is one of the engine's, in upper or lower case."""
    return name.lower() in AUDIT_COLUMNS or name.lower().startswith(ENGINE_PREFIX)
