"""The page of a change of versions says what was decided, and plots just what moved."""

import datetime as dt
import math
import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from backfill_engine.extras.comparison.diffs import compare_partitions
from backfill_engine.extras.comparison.rows import PartitionDiff
from backfill_engine.extras.versions.column_shifts import ColumnShift
from backfill_engine.extras.versions.drift_page import (
    Histograms,
    build_drift_page,
    find_most_drifted,
    read_histograms,
)
from backfill_engine.extras.versions.promotions import DriftGates, Promotion
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.rules.drift import Drift
from backfill_engine.tables.declarations import Column, Table, required
from backfill_engine_tests.contents.written_rows import (
    FLIGHTS,
    MILES,
    WEEK,
    build_flights,
    write_versions,
)
from backfill_engine_tests.shared_fixtures import build_days

PROMOTION = Promotion(
    promotion_id="run",
    table="serving/carrier_delays",
    version="v2",
    before="v1",
    at=dt.datetime(2014, 1, 3, 9, 30, tzinfo=dt.UTC),
    by="ada",
    why="INC-12",
    partitions=365,
    gates=DriftGates(),
    missing=("2013-01-04 would be withheld",),
    beyond=("2013-01-05: PSI of miles is 0.900",),
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
    """Returns the text of a page or a plot without its tags."""
    return " ".join(re.sub(r"<[^>]*>", "\n", page).split())


def read_sections(page: str) -> dict[str, str]:
    """Returns the text below each heading."""
    _, *parts = page.split("<h2>")
    return dict(part.split("</h2>", 1) for part in parts)


def find_marks(plots: str, kind: str) -> int:
    """Counts the marks of a kind in plots, without those of their legends."""
    found = 0
    for plot in re.findall(r"<svg.*?</svg>", plots, re.DOTALL):
        for group in ElementTree.fromstring(plot).iter("{http://www.w3.org/2000/svg}g"):
            if {f"mark-{kind}", "role-mark"} <= {*group.get("class", "").split()}:
                found += len(group)
    return found


def test_its_head_says_what_was_decided_and_why() -> None:
    page = read_texts(build_drift_page(PROMOTION, FLIGHTS, SHIFTS, DIFFS, None))
    for words in (
        "serving/carrier_delays: from v1 to v2",
        "Asked for by ada on 2014-01-03 at 09:30 UTC. Reason: INC-12",
        "Verdict: it is not served",
        "missing 2013-01-04 would be withheld refused",
        "drift 2013-01-05: PSI of miles is 0.900 refused",
        "2 of 3 partitions: 1 rows added, 2 removed, 3 changed.",
        "delay 0.500 (2013-01-02) none not measured",
        "departed not measured 20.0% (2013-01-01) not measured",
        "miles none none 0.900 (2013-01-02)",
    ):
        assert words in page


def test_what_is_accepted_says_so() -> None:
    accepted = replace(PROMOTION, missing=(), accepted="by design")
    page = read_texts(build_drift_page(accepted, FLIGHTS, SHIFTS, DIFFS, None))
    assert "Verdict: nothing stands against it" in page
    assert "drift 2013-01-05: PSI of miles is 0.900 accepted: by design" in page


def test_the_first_version_and_one_without_a_reason() -> None:
    first = replace(PROMOTION, before="", why="")
    new = [ColumnShift("2013-01-01", "delay", None, 4.0, 0.0, 0.0)]
    diffs = {"2013-01-01": PartitionDiff(0, 9, added=9)}
    histograms = Histograms("2013-01-01", {}, {MILES.histogram: [5, 4, 0, 0]})
    page = read_texts(build_drift_page(first, FLIGHTS, new, diffs, histograms))
    assert "from nothing to v2" in page
    assert "No reason was given." in page
    assert "before (nothing)" in page


def test_each_figure_that_moved_has_a_plot_with_a_mark_a_partition() -> None:
    page = build_drift_page(PROMOTION, FLIGHTS, SHIFTS, DIFFS, None)
    plots = read_sections(page)["What differs"].split("<table>")[0]
    texts = read_texts(plots)
    for words in ("shift of the mean", "shift of rows without a value", "PSI", "2013-01-02"):
        assert words in texts
    # Of delay two means, of departed one share, of miles three PSIs; all else is as before.
    assert (find_marks(plots, "line"), find_marks(plots, "symbol")) == (3, 6)


def test_an_infinite_shift_is_in_the_table_alone() -> None:
    shifts = [ColumnShift("2013-01-01", "delay", 0.0, 1.0, 0.0, 0.0)]
    section = read_sections(build_drift_page(PROMOTION, FLIGHTS, shifts, {}, None))["What differs"]
    assert "delay inf (2013-01-01) none not measured" in read_texts(section)
    assert find_marks(section, "symbol") == 0


def test_partitions_that_are_equal_have_not_drifted_and_small_ones_are_not_known() -> None:
    small = {"2013-01-01": PartitionDiff(0, 10, added=10, psi={"miles": None})}
    page = read_texts(build_drift_page(PROMOTION, FLIGHTS, SHIFTS[-1:], small, None))
    assert "miles none none not measured" in page
    equal = {"2013-01-01": PartitionDiff(10, 10)}
    page = read_texts(build_drift_page(PROMOTION, FLIGHTS, SHIFTS[-1:], equal, None))
    assert "miles none none none" in page


def test_nothing_measured_is_a_page_too() -> None:
    page = read_texts(build_drift_page(PROMOTION, FLIGHTS, [], {}, None))
    assert "0 of 0 partitions" in page


def test_without_what_draws_the_page_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    page = build_drift_page(PROMOTION, FLIGHTS, SHIFTS, DIFFS, None)
    assert "<svg" not in page
    assert "pip install 'backfill-engine[plots]'" in read_texts(page)
    assert "delay 0.500 (2013-01-02) none not measured" in read_texts(page)


def test_what_people_wrote_is_escaped() -> None:
    evil = "</text></title><script>alert('x')</script><img src=//evil.test>&amp;"
    promotion = replace(
        PROMOTION,
        **dict.fromkeys(("table", "version", "before", "by", "why"), evil),
        missing=(evil,),
        beyond=(evil,),
    )
    gate = Drift("gate", (evil, "b"))
    table = replace(FLIGHTS, rules=(gate,))
    histograms = Histograms(
        evil, {gate.histogram: [60, 60, 0, 0]}, {gate.histogram: [120, 5, 0, 0]}
    )
    shifts = [replace(shift, partition=evil) for shift in SHIFTS]
    page = build_drift_page(promotion, table, shifts, DIFFS, histograms)
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
    page = build_drift_page(
        PROMOTION, table, shifts, diffs, Histograms(days[0].key, counts, counts)
    )
    assert len(page.encode()) < 1_000_000
    assert page.count("<svg") == 2
    assert not re.search(r"<(script|link|img|iframe|image)|url\((?!#)|@import|href", page)


def test_distributions_are_shares_by_the_bins_of_the_rules() -> None:
    named = Drift("gate", ("a", "b"))
    table = replace(FLIGHTS, rules=(MILES, named))
    histograms = Histograms(
        "2013-01-02",
        {MILES.histogram: [150, 50, 0, 9], named.histogram: [1, 2, 3, 0]},
        {MILES.histogram: [50, 50, 100, 0], named.histogram: [0, 0, 0, 0]},
    )
    page = build_drift_page(PROMOTION, table, SHIFTS, DIFFS, histograms)
    section = read_sections(page)["Distributions in 2013-01-02"]
    text = read_texts(section)
    assert f"miles, PSI {MILES.compare([50, 50, 100, 0], [150, 50, 0, 9]):.3f}" in text
    assert "gate, too few values" in text
    assert "below 500 500 to 1000 from 1000" in text
    assert "a b others" in text
    shares = r'"bin: ([^;]*); share: ([\d.]+); side: ([^;"]*)'
    assert [each for each in re.findall(shares, section) if "0" in each[0]] == [
        ("below 500", "0.75", "before (v1)"),
        ("500 to 1000", "0.25", "before (v1)"),
        ("from 1000", "0", "before (v1)"),
        ("below 500", "0.25", "after (v2)"),
        ("500 to 1000", "0.25", "after (v2)"),
        ("from 1000", "0.5", "after (v2)"),
    ]


def test_the_partition_that_drifted_most_and_how_it_is_distributed(warehouse: Warehouse) -> None:
    before, after = build_flights(WEEK[:3], count=120), build_flights(WEEK[:3], count=120)
    for flight in after:
        if flight["day"] == WEEK[1].slice.start:
            flight["miles"] //= 10
        if flight["day"] == WEEK[2].slice.start:
            flight["miles"] += 30
    older, newer = write_versions(warehouse, FLIGHTS, before, after)
    assert find_most_drifted(compare_partitions(older, newer, WEEK[:3])) == WEEK[1].key
    assert read_histograms(older, newer, WEEK[1]) == Histograms(
        WEEK[1].key, {MILES.histogram: [5, 5, 110, 0]}, {MILES.histogram: [50, 50, 20, 0]}
    )
    absent = read_log(warehouse, replace(FLIGHTS, name="flights_v0"))
    assert read_histograms(absent, newer, WEEK[1]).before == {}


def test_without_a_psi_no_partition_drifted_most() -> None:
    assert find_most_drifted({"2013-01-01": PartitionDiff(9, 9, psi={"miles": None})}) is None
