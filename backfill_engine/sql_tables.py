"""Tables declared by a SELECT in Spark SQL, checked before any run.

    zone_days = sql_table(
        "features/zone_days",
        partition_by="day",
        inputs={"trips": staging_trips},
        sql="SELECT day, zone, count(*) AS trips FROM trips GROUP BY day, zone",
    )

Its text, without comments and layout, is part of the code version.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlglot
from pyspark.sql import DataFrame
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from backfill_engine.errors import DeclarationError
from backfill_engine.table_assets import TableAsset
from backfill_engine.table_functions import Input, table


def sql_table(
    key: str, *, partition_by: str, inputs: Mapping[str, Input], sql: str | Path, **declaration: Any
) -> TableAsset:
    """Declares a table that a SELECT computes.

    Args:
        key: `layer/name` of the table.
        partition_by: the column whose values decide the partition, which the SELECT must have.
        inputs: what each name in its FROM and JOINs is read from, as for `@table`.
        sql: one SELECT in Spark SQL, or the file that holds it.
        declaration: what else `@table` takes.

    Raises:
        DeclarationError: if it is no SELECT, reads what isn't among the inputs, or none of an
            input, or lacks a column that is declared.
    """
    text = sql.read_text(encoding="utf-8") if isinstance(sql, Path) else sql
    try:
        (query,) = sqlglot.parse(text, dialect="spark")
        if not isinstance(query, exp.Query):
            raise ValueError("no SELECT")
        read = _find_tables(query)
        names = query.named_selects
    except (SqlglotError, ValueError) as error:
        raise DeclarationError(f"{key}: its SQL is no SELECT that can be read: {error}") from error
    if unknown := sorted({_spell(found) for found in read} - inputs.keys()):
        raise DeclarationError(
            f"{key}: its SQL reads {', '.join(unknown)}, which `inputs` lacks: name it there"
        )
    if unused := sorted(inputs.keys() - {found.name for found in read}):
        raise DeclarationError(f"{key}: its SQL doesn't read the input {', '.join(unused)}")
    declared = [partition_by, *(column.name for column in declaration.get("columns", ()))]
    lacking = [name for name in declared if name not in names and "*" not in names]
    if lacking:
        raise DeclarationError(f"{key}: its SQL has no column {', '.join(lacking)}: select it")
    plain = query.sql(dialect="spark", comments=False)
    function = _Select(_mark_inputs(text, read), plain)
    return table(key, partition_by=partition_by, inputs=inputs, **declaration)(function)


def _find_tables(query: exp.Query) -> list[exp.Table]:
    """Finds what a query reads, and none of the queries that it names itself."""
    return [
        source
        for scope in traverse_scope(query)
        for _, source in scope.references
        if isinstance(source, exp.Table) and source.name not in scope.cte_sources
    ]


def _mark_inputs(text: str, read: list[exp.Table]) -> str:
    """Writes each table as `{name}`, for which Spark puts the frame."""
    pieces, end = list[str](), 0
    for found in sorted(read, key=lambda found: found.this.meta["start"]):
        place, alias = found.this.meta, "" if found.alias else f" AS `{found.name}`"
        pieces += [_escape(text[end : place["start"]]), f"{{{found.name}}}{alias}"]
        end = place["end"] + 1
    return "".join((*pieces, _escape(text[end:])))


def _spell(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@dataclass(frozen=True)
class _Select:
    """Computes a table by SQL: the text as Spark takes it, and without comments and layout."""

    text: str = field(repr=False)
    plain: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.plain)

    def __call__(self, **frames: DataFrame) -> DataFrame:
        spark = next(iter(frames.values())).sparkSession
        return spark.sql(self.text, None, **frames)
