"""The benchmark of peers: its comparison of contents, its page, and the projects it lays out."""

import datetime as dt
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from backfill_engine_tests.benchmark_results import MACHINE
from backfill_engine_tests.project import CARRIER_DELAYS
from benchmarks.contents import DifferentContentsError
from benchmarks.peers.contents import check_same_rows
from benchmarks.peers.contestants import (
    CONTESTANTS,
    SQLMESH_SPARK,
    SQLMESH_SPARK_UNAUDITED,
    Contestant,
    prepare_contestant,
    prepare_rerun,
)
from benchmarks.peers.environments import read_versions
from benchmarks.peers.report import FLIGHTS, write_page, write_peers_report
from benchmarks.peers.results import build_flights
from benchmarks.sections import PAGE
from benchmarks.variants import REPOSITORY, Command

_DAY, _NEXT_DAY = dt.date(2013, 1, 1), dt.date(2013, 1, 2)
_MEASURED = {
    "date": "2013-01-01",
    "machine": MACHINE,
    "peers": {"sqlmesh-duckdb": {"sqlmesh": "1.2.3"}},
}


def _delays(*rows: tuple[dt.date, str, int]) -> pa.Table:
    days, carriers, flights = (list(column) for column in zip(*rows, strict=True))
    given = {"flight_date": days, "carrier": carriers, "flights_7d": flights}
    return pa.table(
        {name: given.get(name, [0] * len(rows)) for name in CARRIER_DELAYS.column_names}
    )


def test_equal_rows_in_another_order_are_the_same():
    first = _delays((_DAY, "AA", 1), (_DAY, "UA", 2), (_NEXT_DAY, "AA", 3))
    second = _delays((_NEXT_DAY, "AA", 3), (_DAY, "UA", 2), (_DAY, "AA", 1))
    check_same_rows(CARRIER_DELAYS, first, second, partitions=2, name="peer")


def test_a_day_with_fewer_rows_is_named():
    first = _delays((_DAY, "AA", 1), (_DAY, "UA", 2), (_NEXT_DAY, "AA", 3))
    second = _delays((_DAY, "AA", 1), (_NEXT_DAY, "AA", 3))
    with pytest.raises(DifferentContentsError, match=r"of peer: .* rows differ in 2013-01-01$"):
        check_same_rows(CARRIER_DELAYS, first, second, partitions=2, name="peer")


def test_missing_days_fail_even_if_both_miss_them():
    rows = _delays((_DAY, "AA", 1))
    with pytest.raises(DifferentContentsError, match="1 partitions of 2"):
        check_same_rows(CARRIER_DELAYS, rows, rows, partitions=2, name="peer")


def test_columns_with_other_values_are_named():
    first, second = _delays((_DAY, "AA", 1)), _delays((_DAY, "AA", 2))
    with pytest.raises(DifferentContentsError, match=r"other values in flights_7d$"):
        check_same_rows(CARRIER_DELAYS, first, second, partitions=1, name="peer")


def test_a_section_without_an_end_is_refused(tmp_path: Path):
    (tmp_path / PAGE).write_text("<!-- peers, flights: begin -->\nBy hand.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="peers, flights: begin --> without <!-- peers"):
        write_peers_report(FLIGHTS, {**_MEASURED, **build_flights({}, {})}, tmp_path / "benchmarks")
    assert "By hand." in (tmp_path / PAGE).read_text(encoding="utf-8")


def test_the_page_in_the_docs_says_what_its_json_says(tmp_path: Path):
    docs = REPOSITORY / "docs"
    shutil.copytree(docs / "benchmarks", tmp_path / "benchmarks")
    shutil.copy(docs / PAGE, tmp_path)
    write_page(tmp_path / "benchmarks")
    made = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert made == (docs / PAGE).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "contestant",
    [contestant for contestant in CONTESTANTS if contestant.projects],
    ids=lambda contestant: contestant.name,
)
def test_each_peer_has_pinned_requirements_and_a_project(contestant: Contestant, tmp_path: Path):
    command = _prepare(contestant, tmp_path)
    assert contestant.environment is not None
    assert all(read_versions(contestant.environment).values())
    assert any(command.folder.iterdir())


def test_audits_are_taken_out_and_nothing_else(tmp_path: Path):
    with_audits, without = (
        {
            model.name: model.read_text(encoding="utf-8")
            for model in _prepare(contestant, tmp_path / contestant.name).folder.glob(
                "models/*.sql"
            )
        }
        for contestant in (SQLMESH_SPARK, SQLMESH_SPARK_UNAUDITED)
    )
    assert with_audits.keys() == without.keys()
    for name, text in with_audits.items():
        head, _, rest = text.partition(",\n  audits (")
        assert without[name] == head + "\n);\n" + rest.partition("\n  )\n);\n")[2]


def test_a_rerun_of_sqlmesh_restates_the_days(tmp_path: Path):
    filled_by = _prepare(SQLMESH_SPARK, tmp_path)
    again = prepare_rerun(SQLMESH_SPARK, filled_by, tmp_path, _DAY, _NEXT_DAY)
    added = again.arguments[len(filled_by.arguments) :]
    assert added == [
        *("--restate-model", "raw.flights"),
        *("--start", "2013-01-01", "--end", "2013-01-02"),
    ]


def _prepare(contestant: Contestant, scratch: Path) -> Command:
    scratch.mkdir(exist_ok=True)
    return prepare_contestant(
        contestant, programs=scratch / "bin", days=2, landing=scratch / "landing", scratch=scratch
    )
