"""The page of a change of versions says what was decided, and plots just what moved."""

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from backfill_engine.extras.comparison.diffs import compare_partitions
from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.extras.versions.column_shifts import ColumnShift
from backfill_engine.extras.versions.drift_page import (
    Distributions,
    JudgedGate,
    VersionChange,
    build_drift_page,
    find_most_drifted,
    read_distributions,
)
from backfill_engine.extras.versions.drift_plots import plot_distributions, plot_lines
from backfill_engine.grains.buckets import Buckets
from backfill_engine.grains.dates import DAYS
from backfill_engine.grains.grain import Grain
from backfill_engine.grains.timestamps import HOURS
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.rules.drift import Drift
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine_tests.contents.written_rows import (
    FLIGHTS,
    MILES,
    WEEK,
    build_flights,
    write_rows,
)
from backfill_engine_tests.shared_fixtures import build_days

CHANGE = VersionChange(
    table="serving/carrier_delays",
    before="v1",
    after="v2",
    by="ada",
    at=dt.datetime(2014, 1, 3, 9, 30, tzinfo=dt.UTC),
    reason="INC-12",
    verdict="refused",
    gates=(
        JudgedGate("every partition is there", "365 of 365", "holds"),
        JudgedGate("drift", "2013-01-05: PSI of miles is 0.900", "refused"),
    ),
)
SHIFTS = [
    ColumnShift("2013-01-01", "delay", 4.0, 5.0, 0.0, 0.0, 1.0),
    ColumnShift("2013-01-02", "delay", 4.0, 6.0, 0.0, 0.0, 1.0),
    ColumnShift("2013-01-01", "gate", None, None, 0.0, 0.0),
    ColumnShift("2013-01-01", "departed", None, None, 0.1, 0.3),
    ColumnShift("2013-01-01", "miles", 7.0, 7.0, 0.0, 0.0, 1.0),
]
DIFFS = {
    "2013-01-01": PartitionDiff(200, 201, added=1, changed=3, psi={"miles": 0.2}),
    "2013-01-02": PartitionDiff(200, 198, removed=2, psi={"miles": 0.9}),
    "2013-01-03": PartitionDiff(200, 200),
}


def read_texts(page: str) -> str:
    """All that a person reads of a page or a plot, tags taken out."""
    return " ".join(re.sub(r"<[^>]*>", "\n", page).split())


def read_sections(page: str) -> dict[str, str]:
    """What stands below each heading."""
    _, *parts = page.split("<h2>")
    return dict(part.split("</h2>", 1) for part in parts)


def test_its_head_says_what_was_decided_and_why() -> None:
    page = read_texts(build_drift_page(FLIGHTS, CHANGE, SHIFTS, DIFFS, None))
    for words in (
        "serving/carrier_delays: from v1 to v2",
        "Asked for by ada on 2014-01-03 at 09:30 UTC. Reason: INC-12",
        "Verdict: refused",
        "every partition is there 365 of 365 holds",
        "drift 2013-01-05: PSI of miles is 0.900 refused",
        "2 of 3 partitions: 1 rows added, 2 removed, 3 changed.",
        "delay 0.500 (2013-01-02) none not measured",
        "departed not measured 20.0% (2013-01-01) not measured",
        "miles none none 0.900 (2013-01-02)",
    ):
        assert words in page


def test_the_first_version_and_one_without_a_reason() -> None:
    change = replace(CHANGE, before="", reason="")
    new = [ColumnShift("2013-01-01", "delay", None, 4.0, 0.0, 0.0)]
    diffs = {"2013-01-01": PartitionDiff(0, 9, added=9)}
    page = read_texts(build_drift_page(FLIGHTS, change, new, diffs, None))
    assert "from nothing to v2" in page
    assert "No reason was given." in page
    assert "before (nothing)" in page


def test_each_column_that_moved_has_plots_of_what_it_has_figures_of() -> None:
    sections = read_sections(build_drift_page(FLIGHTS, CHANGE, SHIFTS, DIFFS, None))
    assert list(sections) == ["Verdict: refused", "What differs", "delay", "departed", "miles"]
    titles = {
        name: [*re.findall(r">(mean|rows without a value|PSI[^<]*)<", plots)]
        for name, plots in sections.items()
    }
    assert titles["delay"] == ["mean"]
    assert titles["departed"] == ["rows without a value"]
    assert titles["miles"] == ["mean", "PSI (dashed: 0.25)"]
    assert "before (v1)" in sections["delay"]
    assert "after (v2)" in sections["delay"]
    bounded = build_drift_page(FLIGHTS, CHANGE, SHIFTS, DIFFS, None, max_psi=0.05)
    assert "PSI (dashed: 0.05)" in read_sections(bounded)["miles"]


def test_nothing_measured_is_a_page_too() -> None:
    page = read_texts(build_drift_page(FLIGHTS, CHANGE, [], {}, None))
    assert "0 of 0 partitions" in page


def test_what_people_wrote_is_escaped() -> None:
    evil = "</text></title><script>alert('x')</script><img src=//evil.test>&amp;"
    change = VersionChange(
        evil, evil, evil, evil, CHANGE.at, evil, evil, (JudgedGate(evil, evil, evil),)
    )
    gate = Drift("gate", (evil, "b"))
    table = replace(
        FLIGHTS,
        columns=tuple(replace(column, comment=evil) for column in FLIGHTS.columns),
        rules=(gate,),
    )
    distributions = Distributions(
        evil, {gate.histogram: [60, 60, 0, 0]}, {gate.histogram: [120, 5, 0, 0]}
    )
    page = build_drift_page(table, change, SHIFTS, DIFFS, distributions)
    assert not re.search(r"<(script|img)", page)
    assert page.count("&lt;script&gt;") >= 12
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(svg)


def test_a_year_of_five_columns_is_below_a_megabyte_and_stands_alone() -> None:
    columns = [f"feature_{at}" for at in range(5)]
    rules = tuple(Drift(name, (10.0, 20.0, 30.0)) for name in columns)
    table = Table(
        layer="features",
        name="waves",
        partition_by="day",
        columns=(required("day", "DATE", "Day"), *(Column(name, "DOUBLE", "") for name in columns)),
        rules=rules,
    )
    days = build_days("2013-01-01", 365)
    shifts = [
        ColumnShift(
            day.key,
            name,
            20 + 9 * math.sin(at / 50 + number),
            21 + 9 * math.sin(at / 49 + number),
            (at % 7) / 100,
            (at % 11) / 100,
            3.0,
        )
        for at, day in enumerate(days)
        for number, name in enumerate(columns)
    ]
    diffs = {
        day.key: PartitionDiff(900, 900, changed=5, psi={name: (at % 13) / 40 for name in columns})
        for at, day in enumerate(days)
    }
    counts = {rule.histogram: [100, 200, 300, 400, 5] for rule in rules}
    distributions = Distributions(days[0].key, counts, counts)
    page = build_drift_page(table, CHANGE, shifts, diffs, distributions)
    assert len(page.encode()) < 1_000_000
    assert page.count("<svg") == 5 * 3 + 5
    assert not re.search(r"<(script|link|img|iframe|image)|url\((?!#)|@import|href", page)


def find_marks(plot: str, kind: str) -> list[str]:
    """The outlines of a plot's own marks of a kind, `line` or `symbol`: not those of its legend."""
    found: list[str] = []
    for group in ElementTree.fromstring(plot).iter("{http://www.w3.org/2000/svg}g"):
        if {f"mark-{kind}", "role-mark"} <= {*group.get("class", "").split()}:
            found += [str(path.get("d")) for path in group]
    return found


def plot(grain: Grain[Any], **lines: Mapping[str, float]) -> str:
    return plot_lines(grain, lines, "mean")


def test_a_line_breaks_where_partitions_are_missing() -> None:
    keys = [f"2013-01-{day:02}" for day in (1, 2, 3, 6, 7, 10)]
    figures = {key: float(at) for at, key in enumerate(keys)}
    whole = plot(DAYS, a=dict.fromkeys([day.key for day in WEEK], 1.0), b={keys[0]: 1.0})
    assert [path.count("L") for path in find_marks(whole, "line")] == [6, 0]
    broken = plot(DAYS, a=figures)
    assert [path.count("L") for path in find_marks(broken, "line")] == [2, 1, 0]
    assert len(find_marks(broken, "symbol")) == 1, "what has no neighbour would not be seen"


@pytest.mark.parametrize(
    ("grain", "keys", "labels"),
    [
        (Buckets(100_000, 1_000_000), ["0100000", "0300000"], "100,000"),
        (HOURS, ["2013-01-01-05:00", "2013-01-01-06:00"], "01-01 05:00"),
    ],
    ids=["buckets", "hours"],
)
def test_partitions_of_other_grains_are_where_they_begin(
    grain: Grain[Any], keys: Sequence[str], labels: str
) -> None:
    found = plot(grain, a={key: float(at) for at, key in enumerate(keys)})
    assert labels in read_texts(found)


def test_distributions_are_shares_by_the_bins_of_the_rules() -> None:
    named = Drift("gate", ("a", "b"))
    table = replace(FLIGHTS, rules=(MILES, named))
    distributions = Distributions(
        "2013-01-02",
        {MILES.histogram: [150, 50, 0, 9], named.histogram: [1, 2, 3, 0]},
        {MILES.histogram: [50, 50, 100, 0], named.histogram: [1, 2, 3, 0]},
    )
    page = build_drift_page(table, CHANGE, SHIFTS, DIFFS, distributions)
    section = read_sections(page)["Distributions in 2013-01-02"]
    text = read_texts(section)
    assert f"miles, PSI {MILES.compare([50, 50, 100, 0], [150, 50, 0, 9]):.3f}" in text
    assert "gate, too few values for a PSI" in text
    assert "below 500 500 to 1000 from 1000" in text
    assert "a b others" in text
    assert find_shares(section)[:6] == [
        ("below 500", "75", "before (v1)"),
        ("500 to 1000", "25", "before (v1)"),
        ("from 1000", "0", "before (v1)"),
        ("below 500", "25", "after (v2)"),
        ("500 to 1000", "25", "after (v2)"),
        ("from 1000", "50", "after (v2)"),
    ]


def test_a_side_without_values_has_no_bars() -> None:
    bars = plot_distributions("miles", ["x", "y"], {"one": [150, 50], "other": [0, 0]})
    assert find_shares(bars) == [("x", "75", "one"), ("y", "25", "one")]


def find_shares(plots: str) -> list[tuple[str, str, str]]:
    """The bars of plots: bin, share in percent, side."""
    return re.findall(r'"bin: ([^;]*); share of values: (\d+)[.0]*%; line: ([^"]*)"', plots)


def test_the_partition_that_drifted_most_and_how_it_is_distributed(warehouse: Warehouse) -> None:
    before, after = build_flights(WEEK[:3], count=120), build_flights(WEEK[:3], count=120)
    for one in after:
        if one["day"] == WEEK[1].slice.start:
            one["miles"] //= 10
        if one["day"] == WEEK[2].slice.start:
            one["miles"] += 30
    versions = [write_rows(warehouse, FLIGHTS, rows) for rows in (before, after)]
    older, newer = (read_log(warehouse, FLIGHTS, version=version) for version in versions)
    assert find_most_drifted(compare_partitions(older, newer, WEEK[:3])) == WEEK[1].key
    assert read_distributions(older, newer, WEEK[1]) == Distributions(
        WEEK[1].key, {MILES.histogram: [5, 5, 110, 0]}, {MILES.histogram: [50, 50, 20, 0]}
    )
    absent = read_log(warehouse, replace(FLIGHTS, name="flights_v0"))
    assert read_distributions(absent, newer, WEEK[1]).before == {}


def test_without_a_psi_no_partition_drifted_most() -> None:
    assert find_most_drifted({"2013-01-01": PartitionDiff(9, 9, psi={"miles": None})}) is None
