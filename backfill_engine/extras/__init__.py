"""Extras: features beside the core, which never imports them.

`building` and `cli` put both together. Each folder is one feature: rehearsals, versions of a served
table, comparisons of rows, pages about how the tables are doing, and alerts.
"""
