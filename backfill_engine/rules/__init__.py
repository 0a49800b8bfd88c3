"""Each module of a rule declares it, says how it is measured, and judges partitions by it.

Partitions must meet the rules to be published. Each rule belongs to one check, which answers one
question:

- `partition_is_complete`: RowCount, Reconciled; and of every table, Emptied, Shrink, LandedFiles,
  LandedRecords
- `partition_is_valid`: Rejects, Nulls, Values, Agreement, Variation; and of every table,
  SomeAccepted, RequiredColumns, UniqueKeys, DeclaredFields, TextLengths, NullSpike
- `partition_is_stable`: Drift

A failed rule that blocks withholds the partition; one that doesn't is a warning. What each may
find its module names, with what to do then. No Spark, no Delta and no Dagster here:
what is to be measured is SQL text, and what was measured is plain data.
"""

from backfill_engine.rules.column_rules import Agreement as Agreement
from backfill_engine.rules.column_rules import Nulls as Nulls
from backfill_engine.rules.column_rules import NullSpike as NullSpike
from backfill_engine.rules.column_rules import Values as Values
from backfill_engine.rules.column_rules import Variation as Variation
from backfill_engine.rules.count_rules import Reconciled as Reconciled
from backfill_engine.rules.count_rules import Rejects as Rejects
from backfill_engine.rules.count_rules import RowCount as RowCount
from backfill_engine.rules.count_rules import Shrink as Shrink
from backfill_engine.rules.drift import Drift as Drift
from backfill_engine.rules.rule import Rule as Rule
from backfill_engine.rules.verdicts import Check as Check
from backfill_engine.rules.verdicts import Finding as Finding
from backfill_engine.rules.verdicts import Outcome as Outcome
from backfill_engine.rules.verdicts import Verdict as Verdict
