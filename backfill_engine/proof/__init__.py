"""What was done, what changed, that nothing else did, and whether all that still holds.

Here belongs whatever a sceptic asks after a publish: certificates, row differences, comparison
with a golden data set or with the source. Nothing here writes a table; only `reconciliation`
computes with Spark, the rest reads by itself (`contents`).
"""
