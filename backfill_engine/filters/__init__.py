"""Row filters: conditions in Spark SQL, checked against a table and rebuilt from allowed parts.

The way in is `row_filters`: its texts go through `grammar` (what their tokens tell), sqlglot's
parser, and `conditions` (what its tree tells, and the columns to be built). No text reaches Spark,
and nothing here needs Spark before a column is built.
"""
