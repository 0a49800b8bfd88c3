"""What each partition holds, and what became of the last attempt at it.

Here belongs what is read of tables and runs together, without Spark.
"""
