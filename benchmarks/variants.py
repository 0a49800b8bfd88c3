"""What is compared: the commands, and the empty homes that each of them starts from."""

import datetime as dt
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backfill_engine_tests.project import CARRIER_DELAYS, RAW_FLIGHTS, STAGING_FLIGHTS

REPOSITORY = Path(__file__).parents[1]
FIRST_DAY = dt.date(2013, 1, 1)
TABLES = (RAW_FLIGHTS, STAGING_FLIGHTS, CARRIER_DELAYS)

_DAGSTER = str(Path(sys.executable).with_name("dagster"))
# A setting of the caller's shell must not reach only some of the processes.
_FOREIGN_PREFIXES = ("BACKFILL_", "DAGSTER_", "SPARK_", "PYSPARK_")


@dataclass(frozen=True)
class Variant:
    """One way to fill the days.

    Attributes:
        letter: how the report refers to it.
        name: how it is chosen on the command line, and found in the results.
        label: what it is, for a reader.
        writes_tables: whether it fills the three tables.
        longest_days: no range above this many days is run; 0 means any.
    """

    letter: str
    name: str
    label: str
    writes_tables: bool = True
    longest_days: int = 0


BARE_RANGE = Variant("a", "bare-range", "bare PySpark, the range in one write a layer")
DAGSTER_RANGE = Variant("b", "dagster-range", "backfill_assets, one range run")
SAIL_RANGE = Variant("f", "sail-range", "backfill_assets on Sail, one range run")
BARE_DAILY = Variant("c", "bare-daily", "bare PySpark, one write a day and layer", longest_days=31)
DAGSTER_EMPTY = Variant(
    "d", "dagster-empty", "Dagster alone, a range run of empty assets", writes_tables=False
)
DAGSTER_CHECKED = Variant(
    "e", "dagster-checked", "as d, with the project's events", writes_tables=False
)

VARIANTS = (BARE_RANGE, DAGSTER_RANGE, SAIL_RANGE, DAGSTER_EMPTY, DAGSTER_CHECKED, BARE_DAILY)
"""In the order in which they take turns."""


@dataclass(frozen=True)
class Command:
    """A process to time: its arguments, its whole environment, and where it is started."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path = REPOSITORY


def prepare_command(variant: Variant, *, days: int, landing: Path, scratch: Path) -> Command:
    """Makes what the process needs before it starts; `scratch` must be empty.

    Args:
        variant: what to run.
        days: length of the range, which begins on `FIRST_DAY`.
        landing: the landing zone, filled.
        scratch: where the process may write; `find_warehouse` says where its tables will be.
    """
    last_day = FIRST_DAY + dt.timedelta(days=days - 1)
    warehouse = find_warehouse(scratch)
    if variant in (BARE_RANGE, BARE_DAILY):
        arguments = [
            *(sys.executable, "-m", "benchmarks.bare_script", str(FIRST_DAY), str(last_day)),
            *("--landing", str(landing), "--warehouse", str(warehouse)),
            *(["--day-by-day"] if variant is BARE_DAILY else []),
        ]
        return Command(arguments, _build_environment({}))
    home = scratch / "dagster_home"
    prepare_home(home)
    if variant in (DAGSTER_RANGE, SAIL_RANGE):
        module = "backfill_assets.definitions"
        selection = ",".join(f'key:"{table.key}"' for table in TABLES)
    else:
        checked = variant is DAGSTER_CHECKED
        module = "benchmarks.checked_assets" if checked else "benchmarks.empty_assets"
        selection = "*"
    arguments = [
        *(_DAGSTER, "asset", "materialize", "-m", module),
        *("--select", selection, "--partition-range", f"{FIRST_DAY}...{last_day}"),
    ]
    settings = {
        "DAGSTER_HOME": str(home),
        "BACKFILL_LANDING": str(landing),
        "BACKFILL_WAREHOUSE": str(warehouse),
        **({"BACKFILL_ENGINE": "sail"} if variant is SAIL_RANGE else {}),
    }
    return Command(arguments, _build_environment(settings))


def prepare_home(home: Path) -> None:
    """Makes a Dagster home with the project's settings, unless it is there."""
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(REPOSITORY / "dagster.yaml", home)


def find_warehouse(scratch: Path) -> Path:
    """Where a process with this scratch folder makes its tables; absent until then."""
    return scratch / "warehouse"


def _build_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without settings of the programs measured, and `settings`."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN_PREFIXES)
    }
    return {**kept, **settings}
