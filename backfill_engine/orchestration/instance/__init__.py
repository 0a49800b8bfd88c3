"""The Dagster instance: what of it is private, how its events are stored, who is alive.

Here belongs what is asked of Dagster by all other rooms; nothing that knows what a run is for.
"""
