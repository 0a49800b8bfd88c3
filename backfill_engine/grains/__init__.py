"""Grains: which values of a partition column make one partition. Pure."""

from backfill_engine.grains.buckets import Buckets as Buckets
from backfill_engine.grains.dates import DAYS as DAYS
from backfill_engine.grains.dates import MONTHS as MONTHS
from backfill_engine.grains.dates import QUARTERS as QUARTERS
from backfill_engine.grains.dates import WEEKS as WEEKS
from backfill_engine.grains.dates import YEARS as YEARS
from backfill_engine.grains.dates import Days as Days
from backfill_engine.grains.names import Names as Names
from backfill_engine.grains.names import Pairs as Pairs
from backfill_engine.grains.timestamps import HOURS as HOURS
from backfill_engine.grains.timestamps import Minutes as Minutes
from backfill_engine.grains.whole import WHOLE as WHOLE
