"""Rehearsals: what a run would publish, computed, audited and compared, and not published.

Here belongs what computes into a scratch warehouse, shows the difference and keeps what was shown;
and the hook that holds a run to it.
"""
