"""Extras: features beside the core, which never imports them.

`building` and `cli` put both together. Each folder or module is one feature: rehearsals, versions
of a served table, comparisons of rows, assets about how the tables are doing, alerts, observations
of the landing zone, and maintenance. `pages` is what they share.
"""
