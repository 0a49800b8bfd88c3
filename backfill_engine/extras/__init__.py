"""Extras: features beside the core, which never imports them.

`building` and `cli` put both together. Each folder is one feature: rehearsals, versions of a served
table, pages about how the tables are doing, and alerts.
"""
