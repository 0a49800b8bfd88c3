"""What is compared: the commands, and the projects and empty homes that each starts from."""

import datetime as dt
import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from backfill_engine.spark.session import build_spark_conf
from benchmarks.variants import (
    BARE_RANGE,
    DAGSTER_RANGE,
    FIRST_DAY,
    SAIL_RANGE,
    Command,
    prepare_command,
)

_DAY = dt.timedelta(days=1)
_PROJECTS = Path(__file__).with_name("projects")
# A setting of the caller's shell must not reach only some of the processes.
_FOREIGN_PREFIXES = (
    "BACKFILL_",
    "DAGSTER_",
    "SPARK_",
    "PYSPARK_",
    "SQLMESH",
    "PEER_",
    "PYTHONPATH",
)


@dataclass(frozen=True)
class Contestant:
    """One program, as it is used here.

    Attributes:
        name: how it is chosen on the command line, and found in the results.
        label: what it is, for a reader.
        environment: its file in `requirements`; None for what runs in the project's environment.
        projects: folders below `projects`; laid over each other they are its project.
        chunk_days: days in one write; 0 means all.
        checks: whether it checks what it writes.
        longest_days: no range above this many days is run; 0 means any.
    """

    name: str
    label: str
    environment: str | None = None
    projects: tuple[str, ...] = ()
    chunk_days: int = 0
    checks: bool = True
    longest_days: int = 0


PROJECT = Contestant("backfill_assets", "backfill_assets, one range run")
ON_SAIL = Contestant("backfill_assets-sail", "backfill_assets on Sail, one range run")
BARE = Contestant("bare-script", "bare PySpark, one write a layer", checks=False)
SQLMESH_DUCKDB = Contestant(
    "sqlmesh-duckdb",
    "SQLMesh on DuckDB, a plan",
    environment="sqlmesh-duckdb",
    projects=("sqlmesh/common", "sqlmesh/duckdb"),
)
SQLMESH_SPARK = Contestant(
    "sqlmesh-spark",
    "SQLMesh on Spark and Delta, a plan",
    environment="sqlmesh-spark",
    projects=("sqlmesh/common", "sqlmesh/spark"),
)
SQLMESH_SPARK_UNAUDITED = Contestant(
    "sqlmesh-spark-unaudited",
    "SQLMesh on Spark and Delta, its audits taken out",
    environment="sqlmesh-spark",
    projects=("sqlmesh/common", "sqlmesh/spark"),
    checks=False,
)
DATACOOLIE_RANGE = Contestant(
    "datacoolie-range",
    "DataCoolie on Spark and Delta, a replay in one chunk",
    environment="datacoolie",
    projects=("datacoolie",),
    checks=False,
)
DATACOOLIE_DAILY = Contestant(
    "datacoolie-daily",
    "DataCoolie on Spark and Delta, a replay day by day",
    environment="datacoolie",
    projects=("datacoolie",),
    chunk_days=1,
    checks=False,
    longest_days=31,
)

SQLMESH_DUCKDB_ORDERS = Contestant(
    "sqlmesh-duckdb",
    "SQLMesh on DuckDB, a plan",
    environment="sqlmesh-duckdb",
    projects=("sqlmesh/orders",),
)

CONTESTANTS = (
    PROJECT,
    ON_SAIL,
    BARE,
    SQLMESH_DUCKDB,
    SQLMESH_SPARK,
    SQLMESH_SPARK_UNAUDITED,
    DATACOOLIE_RANGE,
    DATACOOLIE_DAILY,
)
"""In the order in which they take turns; the first has the contents that the others must have."""

_VARIANTS = {PROJECT: DAGSTER_RANGE, ON_SAIL: SAIL_RANGE, BARE: BARE_RANGE}


def prepare_contestant(
    contestant: Contestant,
    *,
    programs: Path | None,
    days: int,
    landing: Path,
    scratch: Path,
) -> Command:
    """Makes what the process needs before it starts; `scratch` must be empty.

    Args:
        contestant: what to run.
        programs: of its environment; None for what runs in the project's.
        days: length of the range, which begins on `FIRST_DAY`.
        landing: the landing zone, filled.
        scratch: where the process may write; its tables will be in `scratch/warehouse`.
    """
    if programs is None:
        return prepare_command(_VARIANTS[contestant], days=days, landing=landing, scratch=scratch)
    project = scratch / "project"
    for folder in contestant.projects:
        shutil.copytree(_PROJECTS / folder, project, dirs_exist_ok=True)
    if not contestant.checks:
        _take_out_audits(project)
    warehouse = scratch / "warehouse"
    warehouse.mkdir()
    last_day = FIRST_DAY + dt.timedelta(days=days - 1)
    return Command(
        build_arguments(contestant, programs, FIRST_DAY, last_day),
        build_environment(landing=landing, warehouse=warehouse, checks=contestant.checks),
        project,
    )


def prepare_rerun(
    contestant: Contestant,
    filled_by: Command,
    programs: Path | None,
    first: dt.date,
    last: dt.date,
) -> Command:
    """Builds the command that computes days again in the tables that another one filled.

    Args:
        contestant: what filled them.
        filled_by: its command.
        programs: of its environment; None for what runs in the project's.
        first: the first day.
        last: the last day, included.
    """
    if programs is None:
        *arguments, _ = filled_by.arguments
        return replace(filled_by, arguments=[*arguments, f"{first}...{last}"])
    if contestant.environment == "datacoolie":
        arguments = build_arguments(contestant, programs, first, last)
        return replace(filled_by, arguments=arguments)
    dates = ["--restate-model", "raw.flights", "--start", str(first), "--end", str(last)]
    return replace(filled_by, arguments=[*filled_by.arguments, *dates])


def build_arguments(
    contestant: Contestant, programs: Path, first: dt.date, last: dt.date
) -> list[str]:
    """Builds the command that fills absent tables for days `first` to `last`, both included."""
    if contestant.environment == "datacoolie":
        chunk = ["--chunk-days", str(contestant.chunk_days)] if contestant.chunk_days else []
        return [str(programs / "python"), "replay.py", str(first), str(last), *chunk]
    # The first plan of production takes no range: from where the models start to the day before.
    plan = ["plan", "--auto-apply", "--no-prompts", "--execution-time", str(last + _DAY)]
    return [str(programs / "sqlmesh"), "--log-file-dir", "../logs", *plan]


def build_environment(*, landing: Path, warehouse: Path, checks: bool = True) -> dict[str, str]:
    """This process's environment without settings of what is measured, and those of a peer."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN_PREFIXES)
    }
    spark_conf = build_spark_conf(remote=None, jars=None, overrides={})
    return {
        **kept,
        "PEER_LANDING": str(landing),
        "PEER_WAREHOUSE": str(warehouse),
        "PEER_SPARK_CONF": json.dumps(spark_conf),
        "PEER_AUDITS": "yes" if checks else "no",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _take_out_audits(project: Path) -> None:
    """Leaves the audits out of SQLMesh's models; those in Python go by the environment."""
    for model in project.glob("models/*.sql"):
        text = model.read_text(encoding="utf-8")
        head, _, rest = text.partition(",\n  audits (\n")
        _, end, query = rest.partition("\n  )\n);\n")
        if not end:
            raise ValueError(f"{model.name} has no audits to take out")
        model.write_text(f"{head}\n);\n{query}", encoding="utf-8")
