"""A source that is declared outside of the engine: passed to an asset, and registered nowhere."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from dagster import AssetKey

from backfill_engine import (
    Calendar,
    Column,
    CsvFiles,
    DeclarationError,
    HistoricalLoad,
    Listing,
    Settings,
    Source,
    Table,
    build_defs,
    required,
    table_asset,
)
from backfill_engine.errors import LandingNotFoundError
from backfill_engine.lake.partitions import Partition, build_partitions
from backfill_engine.publishing.inputs import list_landing
from backfill_engine.publishing.recipes import Recipe

NOTES = Table("raw", "notes", "day", (required("day", "DATE", "Day."),))


@dataclass(frozen=True)
class Pigeons(Source):
    """Notes that pigeons bring; none has come yet."""

    dataset: str = "pigeons"
    fields: tuple[Column, ...] = ()

    @property
    def record_fields(self) -> tuple[Column, ...]:  # type: ignore[override]
        """What a note holds."""
        return self.fields

    def refuse_table(self, table: Table) -> None:
        """Refuses what is no table of notes."""
        if table.name != "notes":
            raise DeclarationError(f"{table.key}: pigeons bring notes alone")

    def describe_place(self, table: Table) -> tuple[str, str]:
        """Describes a note."""
        return "note", "*.note"

    def list_files(self, root: str, table: Table, partitions: Iterable[Partition]) -> Listing:
        """Finds nothing."""
        raise LandingNotFoundError(f"no pigeon at {root} for {len(list(partitions))} days")


@dataclass(frozen=True)
class LinesOfPigeons(Pigeons):
    """Notes of which each is a line of JSON."""

    reads_lines: ClassVar[bool] = True


def test_it_shows_as_an_asset_and_is_listed_by_itself() -> None:
    asset = table_asset(NOTES, landing=Pigeons())(lambda window: window.read_landing())
    defs = build_defs(
        [asset],
        lakehouse=Settings(landing="/zone", warehouse="/lake"),
        calendar=Calendar(dt.date(2024, 1, 1), dt.date(2024, 1, 3)),
    )
    node = defs.resolve_asset_graph().get(AssetKey(["landing", "notes"]))
    assert (node.kinds, node.metadata["dagster/uri"]) == ({"note"}, "/zone/pigeons")
    recipe = Recipe(NOTES, asset.compute, landing=Pigeons())
    with pytest.raises(LandingNotFoundError, match="no pigeon at /zone for 2 days"):
        list_landing(recipe, "/zone", build_partitions(NOTES, ["2024-01-01", "2024-01-02"]))


def test_it_refuses_what_it_cannot_feed_and_names_that_are_taken() -> None:
    birds = Table("raw", "birds", "day", NOTES.columns)
    with pytest.raises(DeclarationError, match="raw/birds: pigeons bring notes alone"):
        table_asset(birds, landing=Pigeons())
    day = Pigeons(fields=(required("day", "DATE", "Day."),))
    with pytest.raises(DeclarationError, match="`day` is a column that tells where a record land"):
        table_asset(NOTES, landing=day)


def test_it_has_a_history_if_it_says_that_it_reads_lines() -> None:
    (text,) = fields = (required("text", "STRING", "What it says."),)
    flow = HistoricalLoad(
        name="old",
        files=CsvFiles("old/{partition}.csv", where="on", origins=((text.name, "text"),)),
        begin=dt.date(2023, 1, 1),
        end=dt.date(2024, 1, 1),
    )
    notes = replace(NOTES, columns=(*NOTES.columns, text))
    assert table_asset(notes, landing=LinesOfPigeons(fields=fields), history=[flow])
    with pytest.raises(DeclarationError, match="or a Source with `reads_lines` and `record_fi"):
        table_asset(notes, landing=Pigeons(fields=fields), history=[flow])
    other = LinesOfPigeons(fields=(required("page", "INT", "Its number."),))
    with pytest.raises(DeclarationError, match="no record has a field `text`: choose of page"):
        table_asset(notes, landing=other, history=[flow])
