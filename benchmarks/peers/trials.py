"""Tries what a backfill must not do to readers, with each contestant: five days, run again.

`python -m benchmarks.peers.trials` fills five days with each, changes what landed, runs the days
again, and writes down what the tables hold then. Nothing is timed.
"""

import argparse
import datetime as dt
import gzip
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backfill_assets.samples.flights import land_flights
from backfill_engine.spark.session import check_prerequisites
from backfill_engine_tests.project import RAW_FLIGHTS, STAGING_FLIGHTS
from benchmarks.machine import describe_machine
from benchmarks.peers.contents import count_versions_without, read_published
from benchmarks.peers.contestants import (
    DATACOOLIE_RANGE,
    PROJECT,
    SQLMESH_DUCKDB,
    SQLMESH_SPARK,
    Contestant,
    prepare_contestant,
    prepare_rerun,
)
from benchmarks.peers.environments import ensure_environment, find_default_cache
from benchmarks.peers.report import TRIALS, write_peers_report
from benchmarks.peers.results import describe_measurement
from benchmarks.report import DEFAULT_FOLDER
from benchmarks.variants import Command

_CONTESTANTS = (PROJECT, SQLMESH_DUCKDB, SQLMESH_SPARK, DATACOOLIE_RANGE)
_FIRST = dt.date(2013, 1, 1)
_LOST, _BAD, _CORRECTED, _LAST = (_FIRST + dt.timedelta(days=number) for number in range(1, 5))
_MARK = "N0MARK"


@dataclass(frozen=True)
class Outcome:
    """How a process ended, and all that it printed."""

    exit_code: int
    output: str

    def names(self, day: dt.date) -> bool:
        """Whether the output has the day; not only the range, of which it is no end."""
        return str(day) in self.output


class Trial:
    """One contestant, its tables filled with the five days, and a landing zone to change."""

    def __init__(
        self, contestant: Contestant, programs: Path | None, sample: Path, folder: Path
    ) -> None:
        self._programs = programs
        self._sample = sample
        self._landing = folder / "landing"
        self._scratch = folder / contestant.name
        self._scratch.mkdir(parents=True)
        self._contestant = contestant
        self._land_again()
        self._command = prepare_contestant(
            contestant,
            programs=programs,
            days=(_LAST - _FIRST).days + 1,
            landing=self._landing,
            scratch=self._scratch,
        )
        (filled,) = _run([self._command])
        if filled.exit_code:
            raise RuntimeError(f"{contestant.name} can't fill the days: {filled.output[-2000:]}")

    def try_bad_day(self) -> dict[str, str]:
        """One day lands without a distance in any row, and another day is corrected."""
        self._change(_BAD, lambda records: [{**record, "distance": None} for record in records])
        self._change(_CORRECTED, lambda records: [{**records[0], "tailnum": _MARK}, *records[1:]])
        (outcome,) = self._rerun((_FIRST, _LAST))
        bad = [row["distance"] is None for row in self._read(_BAD)]
        corrected = any(row["tailnum"] == _MARK for row in self._read(_CORRECTED))
        # Of whichever day: what landed on one may have flown on the day before.
        downstream = any(row["tailnum"] == _MARK for row in self._read(staging=True))
        whole = "A re-run of five days, one of them bad"
        return {
            f"{whole}: readers see of the bad day": (
                "the bad rows" if all(bad) and bad else "the rows from before"
            ),
            f"{whole}: a corrected day": "published" if corrected else "not published",
            f"{whole}: it downstream, in the same run": (
                "published" if downstream else "not published"
            ),
            f"{whole}: exit code": str(outcome.exit_code),
            f"{whole}: the output names the day": "yes" if outcome.names(_BAD) else "no",
        }

    def try_lost_day(self) -> dict[str, str]:
        """The folder of a published day is empty in the landing zone; all else is right again."""
        self._land_again()
        self._find_file(_LOST).unlink()
        before = len(self._read(_LOST))
        (outcome,) = self._rerun((_FIRST, _LAST))
        left = len(self._read(_LOST))
        rows = "its rows stay" if left == before else f"{left} of its {before} rows stay"
        named = "named" if outcome.names(_LOST) else "not named"
        self._land_again()
        self._rerun((_FIRST, _LAST))
        return {
            "A published day whose folder is empty now, run again": (
                f"{rows}; exit code {outcome.exit_code}, {named}"
            )
        }

    def try_two_at_once(self) -> dict[str, str]:
        """Two processes run separate days again at once; then both the same days."""
        answers = {}
        separate = [(_FIRST, _LOST), (_CORRECTED, _LAST)]
        for question, ranges in (
            ("Two runs at once, of separate days", separate),
            ("Two runs at once, of the same days", [(_FIRST, _LAST)] * 2),
        ):
            before = len(self._read())
            outcomes = self._rerun(*ranges)
            after = len(self._read())
            rows = "rows as before" if after == before else f"{after} rows instead of {before}"
            codes = " and ".join(str(outcome.exit_code) for outcome in outcomes)
            answers[question] = f"exit codes {codes}; {rows}"
        return answers

    def try_reading_between(self) -> dict[str, str]:
        """Whether a version that a reader could have had lacks a day that had been published."""
        found = count_versions_without(self._scratch, RAW_FLIGHTS, str(_BAD))
        answer = "has no versions" if found is None else f"{found[0]} of {found[1]}"
        return {"Versions of `raw/flights` that lack a day published before": answer}

    def _rerun(self, *ranges: tuple[dt.date, dt.date]) -> list[Outcome]:
        return _run(
            [
                prepare_rerun(self._contestant, self._command, self._programs, first, last)
                for first, last in ranges
            ]
        )

    def _read(self, day: dt.date | None = None, *, staging: bool = False) -> list[dict]:
        table = STAGING_FLIGHTS if staging else RAW_FLIGHTS
        rows = read_published(self._scratch, table, self._programs).to_pylist()
        return [row for row in rows if day is None or row[table.partition_by] == day]

    def _find_file(self, day: dt.date) -> Path:
        below = f"flights/year={day:%Y}/month={day:%m}/day={day:%d}/flights.json.gz"
        return self._landing / below

    def _land_again(self) -> None:
        for number in range((_LAST - _FIRST).days + 1):
            file = self._find_file(_FIRST + dt.timedelta(days=number))
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self._sample / file.relative_to(self._landing), file)

    def _change(self, day: dt.date, change: Callable[[list[dict]], list[dict]]) -> None:
        file = self._find_file(day)
        records = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        lines = "".join(json.dumps(record) + "\n" for record in change(records))
        file.write_bytes(gzip.compress(lines.encode(), mtime=0))


def _run(commands: Sequence[Command]) -> list[Outcome]:
    """Starts all processes at once, and waits for all."""
    processes = [
        subprocess.Popen(
            command.arguments,
            cwd=command.folder,
            env=dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]
    outputs = [process.communicate()[0] for process in processes]
    return [
        Outcome(process.returncode, output)
        for process, output in zip(processes, outputs, strict=True)
    ]


def try_contestant(
    contestant: Contestant, programs: Path | None, sample: Path, folder: Path
) -> Mapping[str, str]:
    """Fills the tables, and goes through all trials in an order in which none spoils the next."""
    trial = Trial(contestant, programs, sample, folder)
    return {
        **trial.try_bad_day(),
        **trial.try_lost_day(),
        **trial.try_two_at_once(),
        **trial.try_reading_between(),
    }


def main() -> None:
    """Goes through the trials with each contestant and writes the page's section."""
    names = [contestant.name for contestant in _CONTESTANTS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.trials", description=__doc__)
    parser.add_argument("--contestants", nargs="+", default=names, choices=names)
    parser.add_argument("--cache", type=Path, default=find_default_cache())
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="default: docs/benchmarks")
    options = parser.parse_args()
    chosen = [contestant for contestant in _CONTESTANTS if contestant.name in options.contestants]
    check_prerequisites(remote=None, jars=None)
    answers: dict[str, Mapping[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="peer-trials-") as temporary:
        sample = Path(temporary, "sample")
        land_flights(str(sample))
        for contestant in chosen:
            programs = (
                ensure_environment(contestant.environment, options.cache.resolve())
                if contestant.environment
                else None
            )
            answers[contestant.name] = try_contestant(
                contestant, programs, sample, Path(temporary, contestant.name)
            )
            print(json.dumps({contestant.name: answers[contestant.name]}, indent=2), flush=True)
    today = dt.datetime.now(tz=dt.UTC).date()
    results = {
        **describe_measurement(describe_machine(), chosen, date=today),
        "questions": list(
            dict.fromkeys(question for found in answers.values() for question in found)
        ),
        "answers": answers,
    }
    write_peers_report(TRIALS, results, options.out.resolve())


if __name__ == "__main__":
    main()
