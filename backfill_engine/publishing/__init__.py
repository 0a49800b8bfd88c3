"""A run's work on one table: pinned inputs, transform, audit, one commit, read-back.

Here belongs what decides what is published: write modes, verdicts turned into commits, what is
kept aside, and what puts an earlier version back. What only looks (certificates, differences,
reconciliation) is in `proof`; what is recorded where is Dagster's side, in `orchestration`.
"""
