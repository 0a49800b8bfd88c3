"""Safe partition backfills on Dagster, Spark and Delta Lake."""

import atexit
import gc
import warnings

# What this project stands on is beta or preview in Dagster, and pinned by the lock. Without this,
# every command opens with a screen of warnings that a user can do nothing about.
warnings.filterwarnings(
    "ignore",
    message="Parameter `(allow_nonexistent_upstream_partitions|backfill_policy)` of .* in beta",
)
warnings.filterwarnings(
    "ignore", message="Specifying a partitions_def on an AssetCheckSpec is currently in preview"
)

# A process that ends needs no search for what it no longer needs: among all that Dagster loads that
# takes most of a second.
atexit.register(gc.freeze)
