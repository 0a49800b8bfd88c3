"""Rehearsals: what a run would publish, computed, audited and compared, and not published.

Here belongs what computes into a scratch warehouse, shows the difference, and keeps what was shown;
so do the figures and the page that show how one version of a table differs from another.
Which partitions, and what Dagster hears of it, is in `orchestration/rehearsing.py`.
"""
