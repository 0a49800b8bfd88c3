"""Delta tables that somebody else writes, as inputs."""

import re
from dataclasses import dataclass, field
from typing import ClassVar

from backfill_engine.errors import DeclarationError
from backfill_engine.tables.declarations import Table

_CATALOG_NAME = re.compile(r"[\w-]+(\.[\w-]+){1,2}")


@dataclass(frozen=True)
class ExternalDelta(Table):
    """A Delta table that somebody else writes, in place, at its `location`.

    It is declared as other tables are: the columns that are read, its grain, and the column that it
    is partitioned by in storage; without `partition_by` it is read whole, whatever its folders. Who
    reads it pins a version. A partition counts as changed when a commit changed its data, whoever
    made the commit; commits that only rewrite files don't count.

    Attributes:
        catalog_name: what Spark's catalog calls it, such as `main.sales.prices`: a step that reads
            it then asks the catalog whether it is still at its `location`. Plans and sensors, which
            start no Spark, go by the `location` alone.

    Raises:
        DeclarationError: also if it has no location.
    """

    is_published: ClassVar[bool] = False

    catalog_name: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.catalog_name and not _CATALOG_NAME.fullmatch(self.catalog_name):
            raise DeclarationError(
                f"{self.key}: `{self.catalog_name}` is no name of a catalog: write "
                "schema.table, or catalog.schema.table"
            )
        if self.location is None:
            asked = f", which DESCRIBE DETAIL {self.catalog_name} says in Spark"
            raise DeclarationError(
                f"{self.key} is written by somebody else: say where, by `location=`"
                f"{asked if self.catalog_name else ''}; plans and sensors read its log there"
            )

    @property
    def cure_absence(self) -> str:
        """What to do where the table isn't there."""
        return "correct its `location`, or let its writer make it"
