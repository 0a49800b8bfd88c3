"""Definitions of tables of one's own: what the arguments of `build_defs` change, and what not."""

import datetime as dt
import json
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance, Definitions
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from backfill_engine import (
    Calendar,
    Column,
    InputWindow,
    JsonLanding,
    Settings,
    Table,
    TableAsset,
    TableTranslator,
    Upstream,
    build_defs,
    build_landed_rows,
    required,
    table_asset,
)
from backfill_engine.orchestration.runs.run_tags import RANGE_END_TAG, RANGE_START_TAG

FIELDS = (Column("note", "STRING", "Note."),)
DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
JANUARY = Calendar(dt.date(2024, 1, 1), dt.date(2024, 1, 4))
KEYS = ("acme/bronze/notes", "acme/gold/notes")


class AcmeTranslator(TableTranslator):
    """Keys begin with the team's name, and all assets are in one group."""

    def get_asset_key(self, table: Table) -> AssetKey:
        """Adds the team's name."""
        return AssetKey(["acme", table.layer, table.name])

    def get_group_name(self, table: Table) -> str:
        """Names the one group."""
        return "notes"


def declare(location: Path) -> list[TableAsset]:
    """Notes as they landed, and again in a table that lies elsewhere."""
    day, file = required("day", "DATE", "Day."), required("source_file", "STRING", "File.")
    bronze = Table("bronze", "notes", "day", (day, *FIELDS, file))
    gold = Table("gold", "notes", "day", (day, *FIELDS), location=str(location))

    @table_asset(bronze, landing=JsonLanding("notes", FIELDS))
    def bronze_notes(window: InputWindow) -> DataFrame:
        """One row per landed note."""
        return build_landed_rows(window.read_landing(), bronze, FIELDS)

    @table_asset(gold, inputs=[Upstream(bronze)])
    def gold_notes(window: InputWindow) -> DataFrame:
        """One row per note."""
        return window.read(bronze, column="day").select("day", "note")

    return [bronze_notes, gold_notes]


@pytest.mark.spark
def test_a_translator_names_assets_and_a_location_says_where_the_table_lies(
    spark: SparkSession, instance: DagsterInstance, tmp_path: Path
) -> None:
    for day in DAYS:
        year, month, number = day.split("-")
        folder = tmp_path / f"landing/notes/year={year}/month={month}/day={number}"
        folder.mkdir(parents=True)
        (folder / "notes.json").write_text(json.dumps({"note": day}) + "\n", encoding="utf-8")
    defs = build_defs(
        declare(tmp_path / "elsewhere/notes"),
        lakehouse=Settings(landing=f"{tmp_path}/landing", warehouse=f"{tmp_path}/warehouse"),
        calendar=JANUARY,
        translator=AcmeTranslator(),
    )
    graph = defs.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} >= {
        *KEYS,
        "acme/landing/notes",
    }
    assert {graph.get(AssetKey.from_user_string(key)).group_name for key in KEYS} == {"notes"}
    assert materialize(defs, instance)
    gold = DeltaTable(f"{tmp_path}/elsewhere/notes").to_pyarrow_table()
    assert sorted(gold.column("note").to_pylist()) == list(DAYS)
    assert not (tmp_path / "warehouse/gold").exists()
    for key in KEYS:
        asset_key = AssetKey.from_user_string(key)
        assert instance.get_materialized_partitions(asset_key) == {*DAYS}


def materialize(defs: Definitions, instance: DagsterInstance) -> bool:
    """Materializes all days of all tables in one run."""
    job = defs.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(
        instance=instance,
        asset_selection=[AssetKey.from_user_string(key) for key in KEYS],
        tags={RANGE_START_TAG: DAYS[0], RANGE_END_TAG: DAYS[-1]},
    )
    return result.success
