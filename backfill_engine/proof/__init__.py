"""What was done, that nothing else was, and whether all that still holds.

Here belongs whatever a sceptic asks after a publish: certificates, their verification, the history
of a table. Nothing here writes a table or computes with Spark; rows are compared with others by
`extras.comparison`.
"""
