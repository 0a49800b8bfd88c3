"""Tags by which a run says that it ended between two chunks."""

PAUSED_TAG = "backfill_assets/paused"
"""Tag of a run that ended between two chunks: `PAUSED`, or what has become of it since."""

PAUSED, WENT_ON, DROPPED = "true", "went on", "cancelled"

PAUSED_AT_TAG = "backfill_assets/paused_at"
"""Tag of such a run: the tables that it had not done with, comma-separated."""
