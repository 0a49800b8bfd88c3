"""Backfills as a whole: how they stand, how they end, what cancels and resumes them.

Here belongs what looks at all runs of a backfill, or goes through them in the foreground.
"""
