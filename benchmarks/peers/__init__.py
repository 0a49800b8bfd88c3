"""Other programs that backfill, measured beside this one: SQLMesh and DataCoolie.

Each peer runs in a virtual environment of its own, from `requirements/`, on a project written as
its users write one, in `projects/`. Nothing here is imported by a peer or imports one.
"""
