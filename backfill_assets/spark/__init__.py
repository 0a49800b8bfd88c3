"""The Spark session: its settings, and what a machine needs to have one."""
