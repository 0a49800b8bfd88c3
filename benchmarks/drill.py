"""A drill: what a backfill stands on breaks at random, and is put right by the documented steps.

On a scratch folder, with a webserver and a daemon on loopback. In each round the source is mended,
a backfill in chunks is launched over three layers, and one thing breaks while it works: its run is
killed, or the daemon, or the code server, or a landed day is spoiled. Then whoever has the watch
does what the pages say: starts what is down, lands again what is spoiled, and runs what
`backfill watch` ends with. A round is over once all is published, and all partitions must
hold then what an undisturbed run makes of the same source, by checksum.
"""

import argparse
import json
import random
import shlex
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from backfill_engine_tests.commands import Project
from backfill_engine_tests.pipeline.commanding import launch, read_lines, watch
from backfill_engine_tests.pipeline.landing_zone import LandingZone, build_landed
from backfill_engine_tests.servers import Dagster, wait_for

_TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
_DAYS = [f"2013-01-{day:02}" for day in range(1, 4)]
_MOST_SECONDS = 1800.0
_SPOILED = "a landed day"
_RUN, _DAEMON, _CODE_SERVER = "the run", "the daemon", "the code server"
_PROCESSES = {
    _RUN: "multiprocessing.spawn",
    _DAEMON: "dagster._daemon",
    _CODE_SERVER: "dagster api grpc",
}
"""What of a command line tells each process that is killed."""
FAULTS = (*_PROCESSES, _SPOILED)


@dataclass
class Round:
    """What became of one round.

    Attributes:
        broken: what broke.
        moment: how many seconds after the backfill's first run began.
        seconds: from then until all was published.
        seen: what whoever has the watch saw, in order.
        typed: what they typed, or had others do.
        is_exact: whether all partitions hold what they are to in the end.
    """

    broken: str
    moment: float
    seconds: float = 0.0
    seen: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    is_exact: bool = False


@dataclass
class Drill:
    """The servers, and the folder that they work on."""

    root: Path
    moments: random.Random
    served: list[Dagster] = field(default_factory=list)

    @property
    def project(self) -> Project:
        """The one that is broken."""
        return Project(self.root / "drilled", self.root / "landing")

    def run(self, number: int, broken: str) -> Round:
        """Runs a round; the servers are up before, and after."""
        self._land(number, *_DAYS)
        begun = time.monotonic()
        expected = self._read_expected()
        lasts = time.monotonic() - begun
        ends = ("--from", _DAYS[0], "--to", _DAYS[-1])
        backfill = launch(self.project, "--select", ",".join(_TABLES), *ends, "--chunk", "days=1")
        wait_for(lambda: bool(self._find(_PROCESSES[_RUN])), seconds=300, look_every=0.2)
        # Landed days are read first, and one that is spoiled later does no harm.
        found = Round(broken, self.moments.uniform(0, lasts / 3 if broken == _SPOILED else lasts))
        time.sleep(found.moment)
        begun = time.monotonic()
        spoiled = self._break(found)
        self._put_right(found, backfill, number, spoiled)
        found.seconds = time.monotonic() - begun
        found.is_exact = self.project.read_checksums() == expected
        return found

    def start(self) -> None:
        """Starts webserver and daemon."""
        self.served.append(Dagster(self.project))
        self.served[-1].wait_until_ready()

    def stop(self) -> None:
        """Stops all that was ever started."""
        for server in self.served:
            server.stop()

    def _read_expected(self) -> dict[tuple[str, str], str]:
        undisturbed = Project(self.root / "undisturbed", self.root / "landing")
        run = undisturbed.materialize(*_TABLES, partitions=f"{_DAYS[0]}...{_DAYS[-1]}")
        if run.returncode != 0:
            sys.exit(run.stdout + run.stderr)
        return undisturbed.read_checksums()

    def _land(self, number: int, *days: str) -> None:
        """Lands days with some more flights than in the rounds before."""
        zone = LandingZone(self.root / "landing")
        for day in days:
            flight = build_landed(day)[5]
            more = [{**flight, "flight": 9000 + offset} for offset in range(number + 1)]
            zone.add_lines(day, *map(json.dumps, more))

    def _find(self, words: str) -> list[psutil.Process]:
        """Finds processes below the servers that are up, by what their command line says."""
        found: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.served[-1].process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # it has just ended
                    if words in " ".join(process.cmdline()):
                        found.append(process)
        return found

    def _break(self, found: Round) -> str | None:
        """Breaks it; returns the day that was spoiled, if any."""
        if found.broken == _SPOILED:
            day = self.moments.choice(_DAYS)
            LandingZone(self.root / "landing").truncate(day)
            return day
        processes = self._find(_PROCESSES[found.broken])
        for process in processes:
            process.kill()
        if not processes:
            found.seen.append("it had ended already")
        return None

    def _put_right(self, found: Round, backfill: str, number: int, spoiled: str | None) -> None:
        deadline = time.monotonic() + _MOST_SECONDS
        while backfill:
            _check_in_time(found, deadline)
            outcome = self._watch(found, backfill, deadline)
            found.seen.append(_describe(outcome))
            if spoiled:
                self._land(number, spoiled)
                found.typed.append(f"(the source lands {spoiled} again)")
            if outcome["outcome"] == "published" and not spoiled:
                self._start_what_is_down(found)
                return
            spoiled = None
            command = f"backfill-assets backfill retry {backfill} --yes"
            found.typed.append(command)
            resumed = self.project.run(*shlex.split(command), "--json")
            if resumed.returncode != 0:
                sys.exit(resumed.stderr)
            backfill = json.loads(resumed.stdout)["backfill_id"]
        found.seen.append("nothing is left to resume")

    def _watch(self, found: Round, backfill: str, deadline: float) -> dict[str, Any]:
        """Watches until the backfill is over, and starts meanwhile what is down."""
        found.typed.append(f"backfill-assets backfill watch {backfill}")
        with watch(self.project, backfill) as watching:
            while watching.poll() is None:
                _check_in_time(found, deadline)
                self._start_what_is_down(found)
                time.sleep(1)
        return dict(read_lines(self.project, backfill)[-1])

    def _start_what_is_down(self, found: Round) -> None:
        """Starts what `dagster dev` doesn't: itself, once its daemon ended; a code server."""
        if not self._find(_PROCESSES[_DAEMON]):
            found.seen.append(f"{_DAEMON} not running")
            found.typed.append("dagster dev")
            self.start()
        elif not self._find(_PROCESSES[_CODE_SERVER]):
            found.seen.append("the UI can't load the code location")
            found.typed.append("(Reload, on the UI's Deployment page)")
            self.served[-1].reload()


def _check_in_time(found: Round, deadline: float) -> None:
    if time.monotonic() > deadline:
        sys.exit(f"error: {found} was not put right in {_MOST_SECONDS:.0f} s")


def _describe(outcome: dict[str, Any]) -> str:
    held_back = [
        f"{entry['table']} {', '.join(entry['ranges'])} {entry['status']}"
        for entry in outcome["held_back"]
    ]
    return "; ".join([outcome["outcome"], *held_back])


def write_report(rounds: list[Round], *, seed: int) -> str:
    """Writes what broke, how long it took to be right again, and what a person did, in Markdown."""
    lines = [
        f"# Drill, seed {seed}",
        "",
        f"{len(_DAYS)} days, {len(_TABLES)} layers, chunks of a day; one fault a round.",
        "",
        "| broken | after | right again after | seen | typed | contents |",
        "|---|---|---|---|---|---|",
    ]
    for finished in rounds:
        typed = "<br>".join(f"`{text}`" if text[0] != "(" else text for text in finished.typed)
        exact = "exact" if finished.is_exact else "**not exact**"
        lines.append(
            f"| {finished.broken} | {finished.moment:.0f} s | {finished.seconds:.0f} s "
            f"| {'<br>'.join(finished.seen)} | {typed} | {exact} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs the rounds, prints and writes the report; exits with 1 if anything isn't exact."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="another one breaks at other moments")
    parser.add_argument("--rounds", type=int, default=len(FAULTS), help="faults, each kind in turn")
    parser.add_argument("--report", type=Path, default=Path("drill.md"), help="where it is written")
    options = parser.parse_args()
    moments = random.Random(options.seed)
    faults: list[str] = []
    while len(faults) < options.rounds:
        faults += moments.sample(FAULTS, len(FAULTS))
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="drill-") as root:
        drill = Drill(Path(root), moments)
        try:
            drill.start()
            for number, broken in enumerate(faults[: options.rounds]):
                rounds.append(drill.run(number, broken))
                print(write_report(rounds[-1:], seed=options.seed).splitlines()[-1], flush=True)
        finally:
            drill.stop()
    report = write_report(rounds, seed=options.seed)
    options.report.write_text(report)
    print(f"\n{report}\nwritten to {options.report}")
    if not all(finished.is_exact for finished in rounds):
        sys.exit("error: not all partitions hold what an undisturbed run makes of the same source")


if __name__ == "__main__":
    main()
