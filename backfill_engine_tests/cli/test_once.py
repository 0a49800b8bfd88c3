"""`once` at a shell: history is taken in once, and what it is for is found by itself."""

import io
import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance
from rich.console import Console

from backfill_assets.samples.flights_history import land_flights_history
from backfill_engine.cli.once_command import build_grid
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.planning.once_flows import FlowState
from backfill_engine.orchestration.runs.run_tags import AT_MOST_TAG
from backfill_engine.tables.once_flows import ONCE_TAG
from backfill_engine_tests.commands import Project, deploy, find_program
from backfill_engine_tests.pipeline.commanding import command
from backfill_engine_tests.project import RAW_FLIGHTS
from backfill_engine_tests.servers import serve

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


def read_states(project: Project) -> dict[str, dict[str, Any]]:
    listed = project.run("backfill-assets", "once", "--json")
    assert listed.returncode == 0, listed.stderr
    return {one["flow"]: one for one in json.loads(listed.stdout)}


def count_lines(path: Path, day: str) -> int:
    return sum(line.startswith(day) for line in path.read_text().splitlines())


def look(project: Project) -> list[str]:
    looked = project.run("python", "-c", _LOOK)
    assert looked.returncode == 0, looked.stderr
    return looked.stdout.splitlines()


def test_a_history_is_taken_in_once_and_what_is_computed_from_it_is_due(
    open_project: Callable[..., Project],
) -> None:
    project = open_project(
        "2011-01", BEGIN="2011-01-13", END="2011-01-15", ONCE_FLOWS="flights_2011"
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
    states = read_states(project)
    assert {name: one["state"] for name, one in states.items()} == {
        "flights_2011": "pending",
        "flights_2012": "inactive",
    }
    # It ends where the feed begins.
    assert (states["flights_2011"]["last"], states["flights_2011"]["partitions"]) == (
        "2011-01-12",
        12,
    )
    assert not [line for line in look(project) if line.startswith("due")]

    first = project.run("backfill-assets", "once", "flights_2011", "--yes", "--json")
    assert first.returncode == 1, first.stderr
    (table,) = json.loads(first.stdout)["tables"]
    assert table["published_ranges"] == ["2011-01-01...2011-01-08", "2011-01-10...2011-01-12"]
    assert "rejects" in str(table["held_back"])
    state = read_states(project)["flights_2011"]
    assert (state["state"], state["missing"]) == ("partly", [BAD])
    before = read_raw(project).publishes
    for day, publish in before.items():
        assert publish.rows == count_lines(file, day) > 0

    file.write_text(good)
    mended = project.run("backfill-assets", "once", "flights_2011", "--yes")
    assert mended.returncode == 0, mended.stderr
    publishes = read_raw(project).publishes
    assert {day for day in publishes if publishes[day] != before.get(day)} == {BAD}
    assert publishes[BAD].rows == count_lines(file, BAD)

    # It is idle now, at the shell and in the UI, whatever becomes of its files.
    file.write_text(good + good.splitlines()[1] + "\n")
    version = read_raw(project).version
    for told in (
        ("backfill-assets", "once", "flights_2011"),
        (
            "dagster",
            "job",
            "execute",
            "-m",
            "backfill_assets.definitions",
            "-j",
            "once_flights_2011",
        ),
    ):
        idle = project.run(*told)
        assert idle.returncode == 0, idle.stderr
        assert "nothing to do" in idle.stdout + idle.stderr
    assert read_raw(project).version == version
    *due, observed = look(project)
    assert due == [
        "due staging/flights materialize_days_from_20110101 2011-01-01 2011-01-12",
    ]
    assert "landing/flights" not in observed

    # A day of it is mended like any other; all of it again only by a person's word.
    day = ("--from", "2011-01-02", "--to", "2011-01-02")
    repaired = project.run("backfill-assets", "run", "--select", "raw/flights", *day, "--yes")
    assert repaired.returncode == 0, repaired.stderr
    after = read_raw(project).publishes
    assert [key for key in after if after[key] != publishes[key]] == ["2011-01-02"]
    assert after["2011-01-02"].checksum == publishes["2011-01-02"].checksum
    again = project.run("backfill-assets", "once", "flights_2011", "--full-refresh", "--yes")
    assert again.returncode == 0, again.stderr
    refreshed = read_raw(project).publishes
    assert all(refreshed[key].version > after[key].version for key in after)
    changed = {key for key in after if refreshed[key].checksum != after[key].checksum}
    assert changed == {"2011-01-01"}


@pytest.mark.parametrize(("asked", "limits"), [("1", 1), ("2", 0), (None, 0)])
def test_flows_that_are_left_to_the_daemon_are_bounded_together(
    open_project: Callable[..., Project], asked: str | None, limits: int
) -> None:
    project = open_project("2011-01", "2012-01", BEGIN="2012-01-20", ONCE_FLOWS="all")
    told = ["--max-parallel", asked] if asked else []
    flows = ("flights_2011", "flights_2012")
    launched = project.run("backfill-assets", "once", *flows, "--launch", "--yes", *told)
    assert launched.returncode == 0, launched.stderr
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
        tags = [dict(one.tags) for one in instance.get_backfills()]
    assert {one[ONCE_TAG] for one in tags} == {*flows}
    # Two have places in this home anyway.
    bounds = {value for one in tags for tag, value in one.items() if tag.startswith(AT_MOST_TAG)}
    assert len(bounds) == limits
    assert all((f"{AT_MOST_TAG}1" in one) == bool(limits) for one in tags)


def test_the_list_is_whole_at_80_columns() -> None:
    ends = ("raw/flights", "2011-01-01", "2011-12-31")
    states = [
        FlowState("flights_2011", *ends, "published", partitions=365, published=365, rows=123_456),
        FlowState("flights_2012", *ends, "inactive"),
    ]
    out = io.StringIO()
    Console(file=out, width=80).print(build_grid(states))
    lines = out.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    rows = [line.split() for line in lines]
    assert ["flights_2011", *ends, "published", "365", "of", "365", "123,456"] in rows
    assert ["flights_2012", *ends, "inactive", "0", "of", "0", "0"] in rows


def test_tables_begin_where_the_last_of_their_inputs_does(
    open_project: Callable[..., Project],
) -> None:
    project = open_project(ONCE_FLOWS="all")
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
    assert {"once_flights_2011", "once_flights_2012", "flights"} <= {*listed.stdout.split()}
    without = open_project_again(project, ONCE_FLOWS="")
    listed = without.run("python", "-c", _PARTITIONS)
    assert "2011" not in listed.stdout


def open_project_again(project: Project, **settings: str) -> Project:
    named = {f"BACKFILL_{name}": value for name, value in settings.items()}
    return Project(project.root, project.landing, settings=tuple(named.items()))


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["flights_1999"], "no once-flow flights_1999: choose of flights_2011, flights_2012"),
        (
            ["flights_2011"],
            "the once-flow flights_2011 is not active here: add it to BACKFILL_ONCE",
        ),
        (["--full-refresh"], "name the once-flows that are meant"),
        (["--launch"], "name the once-flows that are meant"),
        (["--max-parallel", "1"], "name the once-flows that are meant"),
        (["flights_2012"], "run it? nobody answered: say --yes beforehand"),
    ],
)
def test_what_cannot_be_taken_in_is_said_in_a_line(
    open_project: Callable[..., Project], arguments: list[str], cure: str
) -> None:
    project = open_project("2012-01", BEGIN="2012-01-05", ONCE_FLOWS="flights_2012")
    refused = subprocess.run(
        [find_program("backfill-assets"), "once", *arguments],
        env=project.environment,
        cwd=project.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    (line,) = refused.stderr.strip().splitlines()
    assert cure in line
    assert not read_raw(project).exists


def test_an_unusable_setting_is_said_in_a_line(open_project: Callable[..., Project]) -> None:
    refused = open_project(ONCE_FLOWS="flights_2011").run("backfill-assets", "once")
    assert refused.returncode == 1
    (line,) = refused.stderr.strip().splitlines()
    assert "nothing would fill raw/flights from 2012-01-01, where flights_2011 ends" in line


def test_a_flow_is_taken_in_by_a_session_with_its_own_settings(
    open_project: Callable[..., Project],
) -> None:
    project = open_project(
        "2011-01", BEGIN="2011-01-13", END="2011-01-15", ONCE_FLOWS="flights_2011"
    )
    deployed = deploy(project.root / "deployed")
    declared = deployed / "backfill_assets" / "tables" / "flights_history.py"
    told, written = "return OnceFlow(", project.root / "event_log"
    conf = (("spark.eventLog.enabled", "true"), ("spark.eventLog.dir", f"file://{written}"))
    code = declared.read_text().replace(told, f"{told}session_conf={conf},")
    declared.write_text(code)
    written.mkdir()
    project = replace(project, settings=(*project.settings, ("PYTHONPATH", str(deployed))))
    ran = project.run("backfill-assets", "once", "flights_2011", "--yes")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert read_states(project)["flights_2011"]["state"] == "published"
    assert [*written.iterdir()], "Spark kept a log, as nothing but the flow asks for"


@pytest.mark.slow
@pytest.mark.by_hand
def test_the_daemon_takes_a_flow_in(open_project: Callable[..., Project]) -> None:
    project = open_project(
        "2011-01", BEGIN="2011-01-13", END="2011-01-15", ONCE_FLOWS="flights_2011"
    )
    flow = ("once", "flights_2011", "--launch", "--yes")
    with serve(project):
        (launched,) = json.loads(command(project, *flow, "--json"))
        command(project, "watch", launched["backfill_id"])
        assert read_states(project)["flights_2011"]["state"] == "published"
        assert "nothing to do" in command(project, *flow)


@pytest.mark.slow
@pytest.mark.by_hand
def test_two_flows_at_once_and_one_that_was_killed_goes_on(
    open_project: Callable[..., Project],
) -> None:
    months = [f"2011-{month:02}" for month in range(1, 13)]
    project = open_project(
        *months,
        "2012-01",
        BEGIN="2012-01-20",
        ONCE_FLOWS="all",
        CHUNK_PARTITIONS="40",
    )
    flow = [find_program("backfill-assets"), "once", "flights_2011", "--yes"]
    project.kill(flow, when=lambda: len(read_raw(project).publishes) >= 40)
    done = read_raw(project).publishes
    assert 40 <= len(done) < 365
    ran = project.run("backfill-assets", "once", "flights_2011", "flights_2012", "--yes")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    publishes = read_raw(project).publishes
    assert {key: publishes[key] for key in done} == done
    assert sorted(publishes)[0] == "2011-01-01"
    assert len(publishes) == 365 + 19
    states = read_states(project)
    assert {one["state"] for one in states.values()} == {"published"}
    lines = sum(
        len(path.read_text().splitlines()) - 1
        for path in (project.landing / "flights_history/2011").glob("*.csv")
    )
    assert states["flights_2011"]["rows"] == lines
    # Side by side: their runs are at work at the same time.
    both = ("flights_2011", "flights_2012", "--full-refresh", "--yes")
    again = project.run("backfill-assets", "once", *both)
    assert again.returncode == 0, again.stdout + again.stderr
    with DagsterInstance.from_config(project.environment["DAGSTER_HOME"]) as instance:
        newest = {
            one.dagster_run.tags[ONCE_TAG]: one for one in reversed(instance.get_run_records())
        }
    one, other = newest["flights_2011"], newest["flights_2012"]
    assert one.start_time is not None
    assert other.start_time is not None
    assert max(one.start_time, other.start_time) < min(one.end_time or 0, other.end_time or 0)
