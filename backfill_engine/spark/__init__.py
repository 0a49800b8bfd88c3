"""The Spark session: its settings, and what a machine needs to have one.

Here belong Java, Delta's jars and the session's configuration; not what is done with a session.
"""
