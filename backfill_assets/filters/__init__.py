"""Row filters: conditions in Spark SQL, checked against a table and rebuilt from allowed parts."""
