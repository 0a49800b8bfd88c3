"""A campaign of random faults over a small pipeline, and the checker that judges what is left.

What belongs here: ways to disturb the pipeline, a model of what its tables are to hold, and the
checker. Model and checker share no code with the project: they read landed files by the standard
library and tables by delta-rs.
"""
