"""Each module of a rule declares it, says how it is measured, and judges partitions by it.

Partitions must meet the rules to be published. Each rule belongs to one check, which answers one
question:

- `partition_is_complete`: RowCount, Reconciled; and of every table, Emptied, Shrink, LandedFiles
- `partition_is_valid`: Rejects, Nulls, Values, Agreement, Variation; and of every table,
  RequiredColumns, UniqueKeys, DeclaredFields
- `partition_is_stable`: Drift

A failed rule that blocks withholds the partition; one that doesn't is a warning. All that they may
find is listed in `finding_names`, with what to do then. No Spark, no Delta and no Dagster here:
what is to be measured is SQL text, and what was measured is plain data.
"""
