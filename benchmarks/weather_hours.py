"""A year of hours in one range run, next to the same rows as days; then the whole pipeline.

`raw/weather` by hours is the project's. By days it is that of `daily_weather`, from a landing zone
with the same lines. Both go on with `staging/weather` and `features/departure_conditions`, which
are daily. They take turns, each from a copy of a warehouse and a Dagster home that have the year's
flights and nothing of weather; after each round the rows of all three tables are compared.
"""

import argparse
import datetime as dt
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from backfill_assets.samples.flights import land_flights
from backfill_assets.samples.weather import land_weather
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.spark.session import check_prerequisites
from backfill_engine.tables.declarations import Table
from backfill_engine_tests.project import (
    DEPARTURE_CONDITIONS,
    RAW_FLIGHTS,
    RAW_WEATHER,
    STAGING_FLIGHTS,
    STAGING_WEATHER,
)
from benchmarks.contents import check_same_contents
from benchmarks.daily_weather import DAILY_WEATHER
from benchmarks.machine import describe_machine
from benchmarks.materializing import PROJECT, prepare_range
from benchmarks.processes import time_command
from benchmarks.report import DEFAULT_FOLDER
from benchmarks.run_metadata import Metadata, measure_metadata
from benchmarks.variants import FIRST_DAY, find_warehouse
from benchmarks.watching import watch_command
from benchmarks.weather_days import land_days
from benchmarks.weather_report import (
    DAYS,
    HOURS,
    PartSample,
    PipelineSample,
    read_results,
    write_weather_report,
)

_LAST_DAY = dt.date(2013, 12, 31)
_LAST_LANDING_OF_FLIGHTS = dt.date(2014, 1, 1)
_TABLES = (RAW_WEATHER, STAGING_WEATHER, DEPARTURE_CONDITIONS)
_COMPARED = replace(
    DAILY_WEATHER,
    # Which file a row is from differs, as it should.
    columns=tuple(column for column in DAILY_WEATHER.columns if column.name != "source_file"),
)


@dataclass(frozen=True)
class Variant:
    """One way to publish `raw/weather`: by whose definitions, from where, over which keys."""

    grain: str
    module: str
    table: Table
    landing: Path
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Year:
    """So many days from the first of 2013 on.

    On the last day of the year nothing was reported, so that its hours are published empty, and its
    day is withheld after `raw`: the tables that follow end a day earlier.
    """

    days: int

    @property
    def raw_days(self) -> tuple[str, ...]:
        """Keys of `raw/weather` by days."""
        return tuple(str(FIRST_DAY + dt.timedelta(days=day)) for day in range(self.days))

    @property
    def hours(self) -> tuple[str, ...]:
        """Keys of `raw/weather` by hours."""
        return tuple(f"{day}-{hour:02}:00" for day in self.raw_days for hour in range(24))

    @property
    def other_days(self) -> tuple[str, ...]:
        """Keys of the other tables."""
        return tuple(day for day in self.raw_days if day != str(_LAST_DAY))


def main() -> None:
    """Runs the comparison and writes the report, or only its section from the JSON."""
    options = _parse_arguments()
    folder: Path = options.out.resolve()
    if options.from_json:
        write_weather_report(read_results(folder), folder)
        return
    check_prerequisites(remote=None, jars=None)
    year, samples = Year(options.days), list[PipelineSample]()
    with tempfile.TemporaryDirectory(prefix="weather-", dir=options.scratch) as temporary:
        scratch = Path(temporary)
        variants = land(year, scratch)
        base = scratch / "base"
        publish_flights(year, scratch, base)
        for number in range(1, options.repeats + 1):
            with tempfile.TemporaryDirectory(dir=scratch) as round_folder:
                samples += run_round(variants, year, base, Path(round_folder))
            for sample in samples[-len(variants) :]:
                print(f"{number}: {asdict(sample)}", flush=True)
    results = {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "machine": asdict(describe_machine()),
        "samples": [asdict(sample) for sample in samples],
    }
    write_weather_report(results, folder)


def land(year: Year, scratch: Path) -> list[Variant]:
    """Lands the samples' whole year: by hours with flights, by days without."""
    hourly, daily = scratch / "hourly", scratch / "daily"
    land_flights(str(hourly))
    land_weather(str(hourly))
    land_days(hourly, daily)
    return [
        Variant(HOURS, PROJECT, RAW_WEATHER, hourly, year.hours),
        Variant(DAYS, "benchmarks.daily_weather", DAILY_WEATHER, daily, year.raw_days),
    ]


def publish_flights(year: Year, scratch: Path, base: Path) -> None:
    """Publishes what `features/departure_conditions` reads of flights; untimed, and a warm-up."""
    base.mkdir()
    last = dt.date.fromisoformat(year.other_days[-1])
    landed = min(last + dt.timedelta(days=2), _LAST_LANDING_OF_FLIGHTS)
    for table, end in ((RAW_FLIGHTS, landed), (STAGING_FLIGHTS, last)):
        command = prepare_range(
            [table], str(FIRST_DAY), str(end), landing=scratch / "hourly", scratch=base
        )
        time_command(command, scratch=base, name=table.key)


def run_round(
    variants: Sequence[Variant], year: Year, base: Path, folder: Path
) -> list[PipelineSample]:
    """Runs the pipeline by hours, then by days, and compares what they published.

    Raises:
        DifferentContentsError: if these are different rows.
    """
    samples = list[PipelineSample]()
    for variant in variants:
        scratch = folder / variant.grain
        shutil.copytree(base, scratch)
        samples.append(
            PipelineSample(
                variant.grain,
                _run_part(variant, [variant.table], variant.keys, scratch),
                _run_part(variant, _TABLES[1:], year.other_days, scratch),
            )
        )
    hourly, daily = (find_warehouse(folder / variant.grain) for variant in variants)
    # A day without rows has no folder.
    check_same_contents([_COMPARED, *_TABLES[1:]], hourly, daily, days=len(year.other_days))
    return samples


def _run_part(
    variant: Variant, tables: Sequence[Table], keys: Sequence[str], scratch: Path
) -> PartSample:
    before = _measure_metadata(scratch)
    command = prepare_range(
        *(tables, keys[0], keys[-1]),
        landing=variant.landing,
        scratch=scratch,
        module=variant.module,
    )
    watched = watch_command(command, scratch=scratch, name=f"{variant.grain}, {tables[-1].key}")
    warehouse = Warehouse(str(find_warehouse(scratch)))
    logs = {table.key: read_log(warehouse, table) for table in tables}
    published = sum(len(log.publishes) for log in logs.values())
    if published != len(keys) * len(tables):
        sys.exit(f"error: {variant.grain}: {published} partitions published of {list(logs)}")
    return PartSample(
        partitions=published,
        commits={
            key: sum(commit.record is not None for commit in log.commits)
            for key, log in logs.items()
        },
        rows={key: sum(log.count_folder_rows().values()) for key, log in logs.items()},
        python_bytes=watched.own,
        jvm_bytes=watched.jvm,
        seconds=round(watched.seconds, 2),
        metadata=_measure_metadata(scratch).subtract(before),
    )


def _measure_metadata(scratch: Path) -> Metadata:
    return measure_metadata(scratch / "dagster_home", find_warehouse(scratch), _TABLES)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weather_hours", description=__doc__)
    parser.add_argument("--days", type=int, default=365, help="of 2013; default: 365")
    parser.add_argument("--repeats", type=int, default=3, help="default: 3")
    parser.add_argument("--scratch", type=Path, help="a folder with room; default: the system's")
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="default: docs/benchmarks")
    parser.add_argument("--from-json", action="store_true", help="only the page, runs nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
