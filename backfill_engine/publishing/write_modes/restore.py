"""`rollback` and `take_back`: what an earlier version held. No run can be told to write so."""

from backfill_engine.publishing.write_modes.mode import WriteMode
from backfill_engine.publishing.write_modes.options import TAKE_BACK


class Rollback(WriteMode):
    """A person took partitions back to an earlier version."""

    name = "rollback"
    restores = True


class TakeBack(Rollback):
    """A run took back what it had just published and could not read as it was audited."""

    name = TAKE_BACK


RESTORING = frozenset({Rollback.name, TakeBack.name})
"""Names of the modes whose commits put a version back: the one of the table among their inputs."""
