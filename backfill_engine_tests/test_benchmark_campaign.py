"""The campaign's checker catches each of many writers that are broken, and passes right ones."""

import datetime as dt
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from benchmarks.campaign import foreign_commits
from benchmarks.campaign.checker import FAILED, IN_PROGRESS, MATERIALIZED, Checker, View
from benchmarks.campaign.landing_faults import FAULTS, LandingZone
from benchmarks.campaign.model import (
    FEATURES,
    NOTHING,
    PARTITION_COLUMNS,
    RAW,
    STAGING,
    TABLES,
    Contents,
    Partition,
    compute_tables,
    freeze,
    read_landing,
    read_tables,
    thaw,
)

DAYS = [f"2013-01-{day:02}" for day in range(1, 5)]
REVISED = DAYS[1]
"""The day that lands anew between two runs."""


@dataclass
class Publication:
    """What a writer leaves, and says.

    Attributes:
        before: what the tables held.
        tables: what they hold after it.
        statuses: what the project, and Dagster, say then.
        dagster: what Dagster alone says.
    """

    before: Mapping[Partition, Contents]
    tables: dict[Partition, Contents]
    statuses: dict[Partition, str]
    dagster: dict[Partition, str]

    def change_rows(
        self, table: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
    ) -> None:
        """Changes the rows of the revised day."""
        self.tables[table, REVISED] = freeze(change(thaw(self.tables[table, REVISED])))


Rows = list[dict[str, Any]]
Writer = Callable[[Publication], object]


def empty(table: str, day: str = REVISED) -> Writer:
    return lambda run: run.tables.update({(table, day): NOTHING})


def change(table: str, change_rows: Callable[[Rows], Rows]) -> Writer:
    return lambda run: run.change_rows(table, change_rows)


def say(status: str, table: str, day: str = REVISED, *, alone: bool = False) -> Writer:
    """What the project and Dagster say, or Dagster alone."""
    said_by = ("dagster",) if alone else ("dagster", "statuses")
    return lambda run: [getattr(run, name).update({(table, day): status}) for name in said_by]


def halve(rows: Rows) -> Rows:
    return sorted(rows, key=str)[: len(rows) // 2]


def lose_tails(rows: Rows) -> Rows:
    return [{**row, "tailnum": None} for row in rows]


def round_means(rows: Rows) -> Rows:
    return [{**row, "mean_dep_delay_7d": round(row["mean_dep_delay_7d"])} for row in rows]


def keep_a_stale_day(run: Publication) -> None:
    run.tables[RAW, REVISED] = run.before[RAW, REVISED]


def keep_stale_features(run: Publication) -> None:
    run.tables |= {
        partition: rows for partition, rows in run.before.items() if partition[0] == FEATURES
    }


def mix_two_landed_states(run: Publication) -> None:
    old = sorted(thaw(run.before[RAW, REVISED]), key=str)
    run.change_rows(RAW, lambda rows: sorted(rows, key=str)[:10] + old[10:])


def write_into_another_partition(run: Publication) -> None:
    landed = {"landing_date": dt.date.fromisoformat(REVISED)}
    run.tables[RAW, REVISED] = freeze({**row, **landed} for row in thaw(run.tables[RAW, DAYS[2]]))


def let_the_earlier_record_win(run: Publication) -> None:
    old = {row["flight"]: row for row in thaw(run.before[STAGING, REVISED])}
    run.change_rows(STAGING, lambda rows: [old[row["flight"]] for row in rows[:3]] + rows[3:])


def write_nothing(run: Publication) -> None:
    run.tables |= run.before


def write_right(run: Publication) -> None:
    """Nothing is wrong with it."""


def withhold(run: Publication) -> None:
    run.tables |= run.before
    for partition in run.tables:
        if partition[1] >= REVISED:
            run.statuses[partition] = run.dagster[partition] = FAILED


BROKEN: dict[str, tuple[Writer, str, str]] = {
    "drops a day": (empty(STAGING), "revised", "not whole"),
    "loses a neighbour": (empty(RAW, DAYS[2]), "revised", "not whole"),
    "doubles a day": (change(RAW, lambda rows: rows * 2), "revised", "not whole"),
    "writes half a day": (change(STAGING, halve), "revised", "not whole"),
    "keeps a stale day": (keep_a_stale_day, "revised", "falsely green"),
    "keeps stale features": (keep_stale_features, "revised", "falsely green"),
    "mixes two landed states": (mix_two_landed_states, "revised", "not whole"),
    "writes into another partition": (write_into_another_partition, "revised", "not whole"),
    "drops a column's values": (change(STAGING, lose_tails), "revised", "not whole"),
    "lets the earlier record win": (let_the_earlier_record_win, "revised", "not whole"),
    "keeps duplicates": (
        change(STAGING, lambda rows: [*rows, {**rows[0], "tailnum": "N9"}]),
        "revised",
        "not whole",
    ),
    "rounds a mean": (change(FEATURES, round_means), "revised", "not whole"),
    "reports green without writing": (write_nothing, "revised", "falsely green"),
    "reports failed": (say(FAILED, RAW), "revised", "failed though published"),
    "tells Dagster otherwise": (
        say(FAILED, STAGING, DAYS[3], alone=True),
        "revised",
        "Dagster disagrees",
    ),
    "stays at work": (say(IN_PROGRESS, FEATURES), "revised", "nothing is at work"),
    "publishes nothing": (empty(RAW), "folder removed", "not whole"),
    "publishes nothing of a part": (empty(RAW), "only a hidden part-file", "not whole"),
    "drops a row": (change(RAW, lambda rows: rows[:-1]), "last line broken off", "not whole"),
    "reports a cut file green": (write_nothing, "gzip cut", "falsely green"),
    "reports a doubled file green": (write_nothing, "same file twice", "falsely green"),
}


@pytest.mark.parametrize(("writer", "landed", "rule"), BROKEN.values(), ids=BROKEN)
def test_a_broken_writer_is_caught(tmp_path: Path, writer: Writer, landed: str, rule: str) -> None:
    assert rule in judge(tmp_path, writer, landed)


@pytest.mark.parametrize(
    ("writer", "landed"),
    [
        (write_right, "revised"),
        (write_right, "marked as empty"),
        (write_right, "cut in two files"),
        (withhold, "JSON broken"),
        (withhold, "dangling link beside"),
        (withhold, "folder removed"),
    ],
)
def test_a_right_writer_passes_whatever_the_order_of_its_rows(
    tmp_path: Path, writer: Writer, landed: str
) -> None:
    assert judge(tmp_path / "ordered", writer, landed) == set()
    assert judge(tmp_path / "reversed", writer, landed, in_order=False) == set()


def test_what_somebody_else_changed_may_stay_but_not_green(tmp_path: Path) -> None:
    zone, checker = LandingZone(tmp_path / "landing"), Checker(DAYS)
    tables = publish_first(zone, checker, tmp_path)
    tables[STAGING, REVISED] = NOTHING
    checker.disturb(tables)
    landing, green = read_landing(zone.root, DAYS), dict.fromkeys(tables, MATERIALIZED)
    assert not checker.find_torn(tables, [landing])
    seen = checker.find_falsely_green(tables, landing, View(green), has_run=True)
    assert [found.partition for found in seen] == [(STAGING, REVISED)]
    view = View(green, to_run=frozenset({(STAGING, REVISED)}))
    assert not checker.find_falsely_green(tables, landing, view, has_run=True)


@pytest.mark.parametrize("kind", foreign_commits.KINDS)
def test_a_foreign_commit_changes_rows_or_takes_the_table_away(tmp_path: Path, kind: str) -> None:
    zone, checker = LandingZone(tmp_path / "landing"), Checker(DAYS)
    tables = publish_first(zone, checker, tmp_path)
    write_tables(tmp_path, tables)  # a second version
    folder = foreign_commits.open_folder(tmp_path, STAGING)
    day = foreign_commits.disturb(folder, kind, random.Random(0), DAYS)
    changed = {
        partition
        for partition, rows in tables.items()
        if read_tables(tmp_path).get(partition) != rows
    }
    if kind in ("table removed", "log lost"):
        assert changed == {(STAGING, any_day) for any_day in DAYS}
    elif kind in ("OPTIMIZE", "VACUUM", "RESTORE", "newest commit lost"):
        assert not changed  # both versions hold the same
    else:
        assert changed == {(STAGING, day)}


def judge(root: Path, writer: Writer, landed: str, *, in_order: bool = True) -> set[str]:
    """Publishes two landed states, the second by the writer; returns the rules that it breaks."""
    zone, checker = LandingZone(root / "landing"), Checker(DAYS)
    before = publish_first(zone, checker, root)
    zone.revise(REVISED)
    FAULTS[landed](zone, REVISED)
    landing = read_landing(zone.root, DAYS)
    green = dict.fromkeys(before, MATERIALIZED)
    run = Publication(before, compute_tables(landing), dict(green), dict(green))
    writer(run)
    write_tables(root, run.tables, in_order=in_order)
    tables = read_tables(root)
    view = View(run.statuses, frozenset(), run.dagster)
    checker.begin()
    seen = [
        *checker.find_torn(tables, [landing]),
        *checker.find_falsely_green(tables, landing, view, has_run=True),
        *checker.find_disagreements(view),
    ]
    if writer is write_right:
        seen += checker.find_inexact(tables, landing, view)
    return {violation.rule for violation in seen}


def publish_first(zone: LandingZone, checker: Checker, root: Path) -> dict[Partition, Contents]:
    """Lands all days, and publishes them right."""
    for day in DAYS:
        zone.land(day)
    landing = read_landing(zone.root, DAYS)
    write_tables(root, compute_tables(landing))
    tables = read_tables(root)
    assert not checker.find_torn(tables, [landing])
    return tables


def write_tables(
    root: Path, tables: Mapping[Partition, Contents], *, in_order: bool = True
) -> None:
    """Writes all tables anew by delta-rs, in one order of the rows or in another."""
    for table in TABLES:
        rows = [row for day in DAYS for row in thaw(tables[table, day])]
        rows = sorted(rows, key=str, reverse=not in_order)
        write_deltalake(
            root / table,
            pa.Table.from_pylist(rows),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=[PARTITION_COLUMNS[table]],
        )
