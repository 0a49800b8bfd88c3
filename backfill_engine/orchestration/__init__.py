"""Dagster's side of a run: what may go, what is recorded, what goes on after a failure.

Here belongs what needs the Dagster instance or its events. How assets, checks, jobs and sensors
are made of it is in the modules beside this room; how a table is published, in `publishing`. What
is in it has rooms of its own, each with its line in CONTRIBUTING.md; `steps.py` and `rollbacks.py`
are where they come together: what a run does, from its claim to its last event.
"""
