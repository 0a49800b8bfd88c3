"""Flows that run once take history in at a shell, and find the tables that need it."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from backfill_assets.samples.flights_history import land_flights_history
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine_tests.commands import Project, find_program
from backfill_engine_tests.project import RAW_FLIGHTS

BAD = "2011-01-09"
_LOOK = """
from dagster import DagsterInstance, build_sensor_context
from backfill_engine_tests.project import defs
from backfill_engine_tests.project import observe_landing
from backfill_engine_tests.project import process_due_partitions
with DagsterInstance.get() as instance:
    context = build_sensor_context(instance, repository_def=defs.get_repository_def())
    for one in process_due_partitions.evaluate_tick(context).run_requests or []:
        tags = one.tags
        ends = [tags[f"dagster/asset_partition_range_{end}"] for end in ("start", "end")]
        print("due", one.asset_selection[0].to_user_string(), one.job_name, *ends)
    print(observe_landing(build_sensor_context(instance)).skip_reason.skip_message)
"""
_PARTITIONS = """
from backfill_engine_tests.project import defs
repository = defs.get_repository_def()
for key in repository.asset_graph.get_all_asset_keys():
    partitions_def = repository.asset_graph.get(key).partitions_def
    if partitions_def is not None and "landing" not in key.path:
        print(key.to_user_string(), partitions_def.get_first_partition_key())
print(*sorted(job.name for job in repository.get_all_jobs()), sep="\\n")
"""


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The synthetic flights of 2011 and 2012, landed once."""
    root = tmp_path_factory.mktemp("history")
    land_flights_history(str(root), [2011, 2012])
    return root


@pytest.fixture
def open_project(history: Path, tmp_path: Path) -> Callable[..., Project]:
    """A landing zone that has some files of the history, and nothing of the feed."""

    def open_one(*months: str, **settings: str) -> Project:
        landing = tmp_path / "landing"
        (landing / "flights").mkdir(parents=True)
        for month in months:
            name = f"flights_history/{month[:4]}/synthetic_flights_{month}.csv"
            (landing / name).parent.mkdir(parents=True, exist_ok=True)
            (landing / name).write_bytes((history / name).read_bytes())
        named = {f"BACKFILL_{name}": value for name, value in settings.items()}
        return Project(tmp_path, landing, settings=tuple(named.items()))

    return open_one


def read_raw(project: Project) -> TableLog:
    return read_log(Warehouse(str(project.warehouse)), RAW_FLIGHTS)


def run_history(project: Project, first: str, last: str, *more: str) -> CompletedProcess[str]:
    """Runs what isn't published of a range of raw/flights."""
    return project.run("backfill-assets", "run", *choose(first, last), "--yes", *more)


def choose(first: str, last: str) -> tuple[str, ...]:
    unpublished = ("--only", "missing,failed,withheld")
    return ("--select", "raw/flights", "--from", first, "--to", last, *unpublished)


def plan_history(project: Project, first: str, last: str) -> dict[str, Any]:
    planned = project.run("backfill-assets", "plan", *choose(first, last), "--json")
    assert planned.returncode == 0, planned.stderr
    (table,) = json.loads(planned.stdout)["tables"]
    return table


def count_lines(path: Path, day: str) -> int:
    return sum(line.startswith(day) for line in path.read_text().splitlines())


def look(project: Project) -> list[str]:
    looked = project.run("python", "-c", _LOOK)
    assert looked.returncode == 0, looked.stderr
    return looked.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_history_is_taken_in_once_and_what_is_computed_from_it_is_due(
    open_project: Callable[..., Project],
) -> None:
    project = open_project(
        "2011-01", BEGIN="2011-01-13", END="2011-01-15", HISTORICAL_LOADS="flights_2011"
    )
    file = project.landing / "flights_history/2011/synthetic_flights_2011-01.csv"
    good = file.read_text()
    # A year's 9 January lost its carriers.
    file.write_text(
        "\n".join(
            ";".join(
                "" if at == 5 and line.startswith(BAD) else text for at, text in enumerate(cells)
            )
            for line in good.splitlines()
            for cells in [line.split(";")]
        )
    )
    days = ("2011-01-01", "2011-01-12")
    assert plan_history(project, *days)["states"] == {"missing": 12}
    assert not [line for line in look(project) if line.startswith("due")]

    first = run_history(project, *days, "--json")
    assert first.returncode == 1, first.stderr
    (table,) = json.loads(first.stdout)["tables"]
    assert table["published_ranges"] == ["2011-01-01...2011-01-08", "2011-01-10...2011-01-12"]
    assert "rejects" in str(table["held_back"])
    left = plan_history(project, *days)
    assert (left["states"], left["ranges"]) == ({"materialized": 11, "withheld": 1}, [[BAD, BAD]])
    before = read_raw(project).publishes
    for day, publish in before.items():
        assert publish.rows == count_lines(file, day) > 0

    file.write_text(good)
    mended = run_history(project, *days)
    assert mended.returncode == 0, mended.stderr
    publishes = read_raw(project).publishes
    assert {day for day in publishes if publishes[day] != before.get(day)} == {BAD}
    assert publishes[BAD].rows == count_lines(file, BAD)

    # It is idle now, whatever becomes of its files.
    file.write_text(good + good.splitlines()[1] + "\n")
    version = read_raw(project).version
    idle = run_history(project, *days)
    assert idle.returncode == 0, idle.stderr
    assert "nothing is to be run" in idle.stdout + idle.stderr
    assert read_raw(project).version == version
    *due, observed = look(project)
    assert due == [
        "due staging/flights sensors_days_from_20110101 2011-01-01 2011-01-12",
    ]
    assert "landing/flights" not in observed

    # A day of it is mended like any other; all of it again only by a person's word.
    day = ("--from", "2011-01-02", "--to", "2011-01-02")
    repaired = project.run("backfill-assets", "run", "--select", "raw/flights", *day, "--yes")
    assert repaired.returncode == 0, repaired.stderr
    after = read_raw(project).publishes
    assert [key for key in after if after[key] != publishes[key]] == ["2011-01-02"]
    assert after["2011-01-02"].checksum == publishes["2011-01-02"].checksum
    whole = ("--select", "raw/flights", "--from", days[0], "--to", days[1])
    again = project.run("backfill-assets", "run", *whole, "--yes")
    assert again.returncode == 0, again.stderr
    refreshed = read_raw(project).publishes
    assert all(refreshed[key].version > after[key].version for key in after)
    changed = {key for key in after if refreshed[key].checksum != after[key].checksum}
    assert changed == {"2011-01-01"}


def test_tables_begin_where_the_last_of_their_inputs_does(
    open_project: Callable[..., Project],
) -> None:
    project = open_project(HISTORICAL_LOADS="all")
    listed = project.run("python", "-c", _PARTITIONS)
    assert listed.returncode == 0, listed.stderr
    firsts = dict(line.split() for line in listed.stdout.splitlines() if "/" in line)
    of_flights = ("raw/flights", "staging/flights", "features/carrier_delays")
    of_versions = (
        "features/carrier_delays_v2",
        "serving/carrier_delays",
        "serving/training_examples",
    )
    for table in (*of_flights, *of_versions):
        assert firsts.pop(table) == "2011-01-01"
    assert firsts["features/departure_conditions"] == "2013-01-01"
    assert all(not first.startswith(("2011", "2012")) for first in firsts.values())
    without = open_project_again(project, HISTORICAL_LOADS="")
    listed = without.run("python", "-c", _PARTITIONS)
    assert "2011" not in listed.stdout


def open_project_again(project: Project, **settings: str) -> Project:
    named = {f"BACKFILL_{name}": value for name, value in settings.items()}
    return Project(project.root, project.landing, settings=tuple(named.items()))


def test_a_flow_that_is_not_active_has_no_days(open_project: Callable[..., Project]) -> None:
    project = open_project("2012-01", BEGIN="2012-01-05")
    refused = run_history(project, "2012-01-01", "2012-01-04")
    assert refused.returncode == 2
    (line,) = refused.stderr.strip().splitlines()
    assert "2012-01-01" in line
    assert not read_raw(project).exists


@pytest.mark.slow
@pytest.mark.by_hand
def test_two_flows_that_were_killed_go_on(
    open_project: Callable[..., Project],
) -> None:
    months = [f"2011-{month:02}" for month in range(1, 13)]
    project = open_project(
        *months,
        "2012-01",
        BEGIN="2012-01-20",
        HISTORICAL_LOADS="all",
        CHUNK_PARTITIONS="40",
    )
    days = ("2011-01-01", "2012-01-19")
    killed = [find_program("backfill-assets"), "run", *choose(*days), "--yes"]
    project.kill(killed, when=lambda: len(read_raw(project).publishes) >= 40)
    done = read_raw(project).publishes
    assert 40 <= len(done) < 365
    ran = run_history(project, *days)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    publishes = read_raw(project).publishes
    assert {key: publishes[key] for key in done} == done
    assert sorted(publishes)[0] == "2011-01-01"
    assert len(publishes) == 365 + 19
    lines = sum(
        len(path.read_text().splitlines()) - 1
        for path in (project.landing / "flights_history/2011").glob("*.csv")
    )
    assert lines == sum(publish.rows for key, publish in publishes.items() if key < "2012")
