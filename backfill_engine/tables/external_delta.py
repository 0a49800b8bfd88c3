"""Delta tables that somebody else writes, as inputs."""

from dataclasses import dataclass
from typing import ClassVar

from backfill_engine.errors import DeclarationError
from backfill_engine.tables.declarations import Table


@dataclass(frozen=True)
class ExternalDelta(Table):
    """A Delta table that somebody else writes, in place, at its `location`.

    It is declared as other tables are: the columns that are read, its grain, and the column that it
    is partitioned by in storage; without `partition_by` it is read whole, whatever its folders. Who
    reads it pins a version. A partition counts as changed when a commit changed its data, whoever
    made the commit; commits that only rewrite files don't count.

    Raises:
        DeclarationError: also if it has no location.
    """

    is_published: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.location is None:
            raise DeclarationError(
                f"{self.key} is written by somebody else: say where, by `location=`"
            )

    @property
    def cure_absence(self) -> str:
        """What to do where the table isn't there."""
        return "correct its `location`, or let its writer make it"
