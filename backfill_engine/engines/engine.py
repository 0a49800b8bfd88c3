"""The protocol of an engine, and what it is handed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from backfill_engine.audit_columns import ENGINE_PREFIX

if TYPE_CHECKING:  # What reads declarations alone loads no Spark.
    from pyspark.sql import DataFrame, SparkSession

FILE_PATH = f"{ENGINE_PREFIX}file_path"
"""STRING column of a landed record: the path of its file, percent-encoded."""

NOT_UTF8 = "\ufffe"
"""How a landed line begins that was not UTF-8, where texts can't hold what it was."""


@dataclass(frozen=True)
class LandedFiles:
    """Landed files that are read together.

    Attributes:
        root: of the landing zone.
        uris: of the files, which are beside the root or below it; at least one.
        format: `text` has a row a line, in a column `value` STRING.
        schema: DDL of the columns to read; None for those of the first file.
        options: of Spark's reader for the format.
    """

    root: str
    uris: tuple[str, ...]
    format: Literal["text", "csv", "parquet"]
    schema: str | None = None
    options: Mapping[str, str | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class NewTable:
    """A Delta table to create.

    Attributes:
        uri: where.
        columns: their DDL.
        folder: the column that files are in folders by; None for none.
        properties: of the table.
    """

    uri: str
    columns: str
    folder: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def build_statement(self, table: str, *, location: str = "") -> str:
        """Builds the statement that creates it, unless it is there.

        Args:
            table: its name, or its path as the engine spells one.
            location: where it is, if that is no path.
        """
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in self.properties.items())
        clauses = (
            f"CREATE TABLE IF NOT EXISTS {table} ({self.columns}) USING DELTA",
            f"PARTITIONED BY (`{self.folder}`)" if self.folder else "",
            f"LOCATION '{location}'" if location else "",
            f"TBLPROPERTIES ({listed})" if listed else "",
        )
        return " ".join(clause for clause in clauses if clause)


class Engine(Protocol):
    """What runs a session's frames and statements.

    Attributes:
        tells_mistyped_json: whether `from_json` tells a value of another type, or a key that is
            there twice, from a null.
    """

    tells_mistyped_json: bool

    def read_files(self, spark: "SparkSession", files: LandedFiles) -> "DataFrame":
        """Reads landed files; returns their columns, and `FILE_PATH`.

        Raises:
            EngineError: if it can't read the format.
        """
        ...

    def keep(self, frame: "DataFrame") -> "DataFrame":
        """Keeps the rows of a frame, so that what is measured is what is published.

        Returns:
            A frame of these rows, to be handed to `release` in the end.
        """
        ...

    def release(self, kept: "DataFrame") -> None:
        """Lets go of what `keep` returned."""
        ...

    def create_table(self, spark: "SparkSession", table: NewTable) -> None:
        """Creates a table, empty, unless it is there."""
        ...

    def append(self, frame: "DataFrame", uri: str) -> None:
        """Appends rows to the table at `uri`, and adds columns that the table lacks."""
        ...

    def add_columns(self, spark: "SparkSession", uri: str, columns: str) -> None:
        """Adds the columns of a DDL, which may be null, to the table at `uri`."""
        ...

    def run_statement(
        self, spark: "SparkSession", uri: str, statement: str, **frames: "DataFrame"
    ) -> None:
        """Runs a statement on the table at `uri`, which it calls `{table}`.

        Args:
            spark: the session.
            uri: of the table.
            statement: the statement.
            frames: that the statement names, in braces too.
        """
        ...

    def read_ahead(self, spark: "SparkSession", uri: str) -> None:
        """Reads the log at `uri`, if whoever comes next then finds it read."""
        ...

    def overwrite(
        self,
        frame: "DataFrame",
        uri: str,
        predicate: str | None,
        *,
        user_metadata: str = "",
        transaction: str | None = None,
    ) -> None:
        """Replaces rows of the table at `uri` in one commit, which is made whatever the rows are.

        Args:
            frame: the rows.
            uri: of the table.
            predicate: of the rows that are replaced; None to write a commit without rows.
            user_metadata: what the commit carries.
            transaction: application id of Delta's transaction identifier, by which it is made once
                at most; None for none.

        Raises:
            EngineError: if it can't make a commit once.
            TableError, or Delta's own error: if a row is outside of the predicate.
        """
        ...

    def vacuum(self, spark: "SparkSession", uri: str) -> None:
        """Removes the files that no version within the retention of the table at `uri` needs."""
        ...

    def require(self, ability: str) -> None:
        """Refuses what only Spark can do.

        Args:
            ability: in words, such as `migrate`.

        Raises:
            EngineError: on another engine.
        """
        ...
