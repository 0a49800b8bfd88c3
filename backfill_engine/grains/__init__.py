"""Grains: which values of a partition column make one partition. One module each, pure."""

from backfill_engine.grains.buckets import Buckets as Buckets
from backfill_engine.grains.days import DAYS as DAYS
from backfill_engine.grains.hours import HOURS as HOURS
from backfill_engine.grains.minutes import Minutes as Minutes
from backfill_engine.grains.months import MONTHS as MONTHS
from backfill_engine.grains.weeks import WEEKS as WEEKS
