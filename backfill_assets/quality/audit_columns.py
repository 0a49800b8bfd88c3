"""Columns that a transform may add for the audit; they are measured and never stored."""

REJECT_REASON = "_reject_reason"
"""STRING: why a source record can't become a row; null for a good one."""

UNKNOWN_FIELDS = "_unknown_fields"
"""ARRAY<STRING>: fields of the source record that no schema declares."""
