"""Somebody else's project: the wheel in an empty environment, and what acme does with it."""

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable
from packaging.requirements import Requirement

from backfill_engine_tests.commands import PROJECT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TABLES = ("bronze/readings", "silver/readings", "gold/meter_days")
BAD_DAY = "2024-01-04"
COMPONENT = """type: backfill_engine.BackfillTablesComponent
attributes:
  module: acme.lake
  landing: data/landing
  warehouse: data/warehouse
  begin: "2024-01-01"
  end: "2024-02-01"
  tables:
    - key: gold/read_meters
      partition_by: landing_date
      inputs: {readings: silver/readings}
      file: read_meters.sql
"""


@dataclass(frozen=True)
class Environment:
    """Where the wheel is installed: its programs, and the engine that they run on."""

    bin: Path
    engine: str


@dataclass(frozen=True)
class Acme:
    """A copy of Acme's project, and the environment in which the wheel is installed."""

    root: Path
    environment: Environment

    def run(self, program: str, *arguments: str, cwd: Path | None = None) -> "Ended":
        """A program of the environment, in the project's folder."""
        own = ("BACKFILL_", "SPARK_REMOTE", "DAGSTER_", "PYTHONPATH", "VIRTUAL_ENV")
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(own)}
        given = {
            "PATH": f"{self.environment.bin}{os.pathsep}{os.environ['PATH']}",
            "DAGSTER_HOME": str(self.root),
            "BACKFILL_ENGINE": self.environment.engine,
        }
        return subprocess.run(
            [str(self.environment.bin / program), *arguments],
            env={**inherited, **given},
            cwd=cwd or self.root,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def command(self, *arguments: str) -> str:
        """A `backfill-assets` command that has to succeed; what it says."""
        ended = self.run("backfill-assets", *arguments)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def read_statuses(self) -> dict[str, dict[str, str]]:
        """By table, the status of each of the ten days."""
        found: dict[str, dict[str, str]] = {}
        listed = self.command("status", "--from", "2024-01-01", "--to", "2024-01-10", "--json")
        for row in json.loads(listed):
            found.setdefault(row["table"], {})[row["partition"]] = row["status"]
        return found


Ended = subprocess.CompletedProcess[str]


def list_lowest() -> list[str]:
    """Each dependency at the lower bound that pyproject.toml has for it."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    required = [Requirement(text) for text in project["dependencies"]]
    lowest = [
        f"{requirement.name}=={bound.version}"
        for requirement in required
        for bound in requirement.specifier
        if bound.operator in (">=", "==")
    ]
    assert len(lowest) == len(required)
    return lowest


@pytest.fixture(scope="module", params=["locked"])
def environment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """An empty virtual environment, with the wheel and what it depends on.

    Its parameter says in which versions: locked, the lowest, or the newest that the bounds allow.
    These two have the same Spark as the lock has, and run on Sail.
    """
    root = tmp_path_factory.mktemp("environment")
    build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    subprocess.run(
        [sys.executable, *build, "--wheel-dir", str(root), str(PROJECT)], check=True, timeout=300
    )
    (wheel,) = root.glob("*.whl")
    assert "backfill_engine" in wheel.name
    subprocess.run([sys.executable, "-m", "venv", str(root / "venv")], check=True, timeout=300)
    python = str(root / "venv" / "bin" / "python")
    (root / "lowest.txt").write_text("\n".join(list_lowest()))
    lock = ("--no-deps", "--require-hashes", "--requirement", str(PROJECT / "requirements.lock"))
    installs = {
        "locked": (lock, ("--no-deps", str(wheel))),
        "lowest": (("--constraint", str(root / "lowest.txt"), f"{wheel}[sail]"),),
        "newest": ((f"{wheel}[sail]",),),
    }
    for what in installs[request.param]:
        # What is imported is compiled then, which is a small part of it.
        install = (python, "-m", "pip", "install", "--quiet", "--no-compile", *what)
        subprocess.run(install, check=True, timeout=900)
    return Environment(root / "venv" / "bin", "spark" if request.param == "locked" else "sail")


@pytest.fixture(scope="module")
def acme(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Acme:
    """Acme after a range over its three layers, with a day that isn't as it should be."""
    root = tmp_path_factory.mktemp("somewhere") / "acme"
    shutil.copytree(PROJECT / "examples" / "acme", root)
    acme = Acme(root, environment)
    assert acme.run("python", "land.py", "data").returncode == 0
    acme.command("check")
    select = ",".join(f'key:"{table}"' for table in TABLES)
    ranged = ("--select", select, "--partition-range", "2024-01-01...2024-01-10")
    run = acme.run("dagster", "asset", "materialize", "-m", "acme.definitions", *ranged)
    assert run.returncode != 0
    assert "silver/readings: withheld 1 of 10 partitions" in run.stdout + run.stderr
    return acme


@pytest.mark.parametrize("environment", ["locked", "lowest", "newest"], indirect=True)
def test_a_bad_day_is_withheld_alone_and_the_rest_goes_on(acme: Acme) -> None:
    statuses = acme.read_statuses()
    assert set(statuses["bronze/readings"].values()) == {"materialized"}
    assert statuses["silver/readings"].pop(BAD_DAY) == "failed"
    day = ("--from", BAD_DAY, "--to", BAD_DAY)
    assert "withheld/silver_readings" in acme.command(
        "status", "--withheld", "--select", "silver/readings", *day
    )
    assert set(statuses["silver/readings"].values()) == {"materialized"}
    ended = acme.run(
        *("backfill-assets", "run", "--select", "gold/meter_days", "--yes"),
        *("--from", "2024-01-01", "--to", "2024-01-10"),
    )
    assert ended.returncode in (1, 3), ended.stdout + ended.stderr
    gold = acme.read_statuses()["gold/meter_days"]
    assert gold.pop(BAD_DAY) != "materialized"
    assert set(gold.values()) == {"materialized"}


def test_a_month_of_trips_becomes_days_and_weeks(acme: Acme) -> None:
    days = ("--from", "2024-01-01", "--to", "2024-01-31")
    tables = "staging/trips,features/zone_weeks,features/borough_days"
    acme.command("run", "--select", tables, *days, "--yes")
    warehouse = acme.root / "data" / "warehouse"
    trips = DeltaTable(str(warehouse / "staging/trips")).to_pyarrow_table()
    assert trips.num_rows == 31 * 24
    rejected = DeltaTable(str(warehouse / "quarantine/staging_trips")).to_pyarrow_table()
    assert rejected.column("reason").to_pylist() == ["says no partition that its file holds"] * 4
    weeks = DeltaTable(str(warehouse / "features/zone_weeks")).to_pyarrow_table().to_pylist()
    trips_of_day = {(str(row["day"]), row["zone"]): row["trips"] for row in weeks}
    assert len(trips_of_day) == 31 * 3
    assert trips_of_day["2024-01-31", 0] == 7 * 24 // 3
    boroughs = DeltaTable(str(warehouse / "features/borough_days")).to_pyarrow_table().to_pylist()
    assert sorted((row["borough"], row["trips"]) for row in boroughs) == [
        *[("Bronx", 16)] * 31,
        *[("Queens", 8)] * 31,
    ]
    stale = ("plan", *days, "--select", tables, "--only", "stale", "--json")
    assert [table["partitions"] for table in json.loads(acme.command(*stale))["tables"]] == [0] * 3
    # Their zones change: what reads them is stale, and nothing else.
    DeltaTable(str(acme.root / "data" / "zones")).delete("zone = 2")
    stale_now = {
        table["table"]: table["partitions"] for table in json.loads(acme.command(*stale))["tables"]
    }
    assert stale_now == {"staging/trips": 0, "features/zone_weeks": 0, "features/borough_days": 31}


def test_a_table_that_exists_is_taken_over(acme: Acme) -> None:
    sales = acme.root / "data" / "nightly" / "sales"
    before = DeltaTable(str(sales)).file_uris()
    day = ("--select", "gold/sales", "--from", "2024-01-20", "--to", "2024-01-20")
    # The source has three of eight rows: it is no repair, before it is adopted and after.
    for adopted in ("", "20 partitions (2024-01-01 … 2024-01-20) are accepted as another writer"):
        if adopted:
            assert adopted in acme.command("adopt", "gold/sales")
        repaired = acme.run("backfill-assets", "run", *day, "--yes")
        assert repaired.returncode != 0
        assert "shrink" in repaired.stdout + repaired.stderr
        assert sorted(DeltaTable(str(sales)).file_uris()) == sorted(before)
    others = ("--select", "gold/sales", "--from", "2024-01-01", "--to", "2024-01-19")
    assert not acme.command("status", *others, "--missing").strip()
    next_day = ("--from", "2024-01-21", "--to", "2024-01-21")
    acme.command("run", "--select", "gold/sales", *next_day, "--yes")
    assert DeltaTable(str(sales)).to_pyarrow_table().num_rows == 21 * 8
    (newest, adoption, *_) = json.loads(acme.command("history", "gold/sales", "--json"))
    assert newest["run_id"] != adoption["run_id"]
    acme.command("proof", "certificate", adoption["run_id"], "--verify")


@pytest.mark.parametrize("environment", ["locked", "lowest", "newest"], indirect=True)
def test_commands_plan_prove_and_undo_it(acme: Acme) -> None:
    plan = acme.command("plan", "--from", "2024-01-01", "--to", "2024-01-03")
    assert "dagster asset materialize -m acme.definitions" in plan
    changes = json.loads(acme.command("history", "silver/readings", "--json"))
    run_id = changes[0]["run_id"]
    acme.command("proof", "certificate", run_id, "--verify")
    day = ("--from", "2024-01-02", "--to", "2024-01-02")
    acme.command("run", "--select", "silver/readings", *day, "--yes")
    undone = json.loads(acme.command("history", "silver/readings", "--json"))[0]["run_id"]
    assert undone != run_id
    acme.command("rollback", "silver/readings", *day, "--before", undone, "--yes")
    assert acme.read_statuses()["silver/readings"]["2024-01-02"] == "materialized"


def test_dagster_finds_the_definitions_and_the_component(acme: Acme, tmp_path: Path) -> None:
    checked = acme.run("dg", "check", "defs")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    listed = acme.run("dg", "list", "components")
    assert "backfill_engine.BackfillTablesComponent" in listed.stdout, listed.stderr
    other = tmp_path / "acme"
    shutil.copytree(PROJECT / "examples" / "acme", other)
    (other / "acme" / "defs" / "lake").mkdir(parents=True)
    (other / "acme" / "defs" / "__init__.py").write_text("")
    (other / "acme" / "defs" / "lake" / "defs.yaml").write_text(COMPONENT)
    (other / "acme" / "defs" / "lake" / "read_meters.sql").write_text(
        "SELECT DISTINCT landing_date, meter FROM readings"
    )
    (other / "acme" / "definitions.py").write_text(
        "from pathlib import Path\n\nfrom dagster import definitions, load_from_defs_folder\n\n\n"
        "@definitions\ndef defs():\n"
        "    return load_from_defs_folder(path_within_project=Path(__file__).parent)\n"
    )
    for check in (("check", "yaml"), ("check", "defs")):
        ended = acme.run("dg", *check, cwd=other)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    missing = acme.run(
        *("backfill-assets", "status", "--missing", "--from", "2024-01-01", "--to", "2024-01-02"),
        cwd=other,
    )
    assert missing.returncode == 1, missing.stderr
    assert missing.stdout.splitlines() == [
        f"{table}\t2024-01-01...2024-01-02" for table in (*TABLES, "gold/read_meters")
    ]


def test_what_acme_has_beside_the_lake_works_as_before(acme: Acme) -> None:
    module = ("-m", "acme.definitions")
    asset = acme.run("dagster", "asset", "materialize", *module, "--select", "price_list")
    assert asset.returncode == 0, asset.stderr
    job = acme.run("dagster", "job", "execute", *module, "-j", "tidy")
    assert job.returncode == 0, job.stderr


def test_a_silent_run_of_another_location_is_nobodys_affair(acme: Acme) -> None:
    """The engine looks for dead runs with every step; this run is none of its own."""
    code = (
        "import datetime as dt\n"
        "from dagster import DagsterInstance, DagsterRunStatus\n"
        "from acme.reports import tidy\n"
        "with DagsterInstance.get() as instance:\n"
        "    run = instance.create_run_for_job(tidy, status=DagsterRunStatus.STARTED)\n"
        "    print(run.run_id)\n"
    )
    made = acme.run("python", "-c", code)
    assert made.returncode == 0, made.stderr
    run_id = made.stdout.split()[-1]
    time.sleep(1)
    acme.command("recover")
    read = (
        "from dagster import DagsterInstance\n"
        "with DagsterInstance.get() as instance:\n"
        f"    run = instance.get_run_by_id({run_id!r})\n"
        "    print(run.status.value, sorted(run.tags))\n"
    )
    assert acme.run("python", "-c", read).stdout.split()[-2:] == ["STARTED", "[]"]
