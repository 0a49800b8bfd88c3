"""A step of the campaign: disturb, run, look, mend, run once more, and check each time."""

import random
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from backfill_engine_tests.commands import find_program
from benchmarks.campaign import foreign_commits
from benchmarks.campaign.checker import Violation
from benchmarks.campaign.disturbances import DAYS, Disturbances, Pipeline
from benchmarks.campaign.interruptions import FinishedRun, draw_interruption, interrupt, run
from benchmarks.campaign.model import (
    FEATURES,
    RAW,
    TABLES,
    Landed,
    Tables,
    read_landing,
    read_tables,
)
from benchmarks.campaign.project_views import Answer, add_dagster, ask, read_view, select

_ENDINGS = {0: "published", 1: "held back", 3: "waits", 130: "cancelled", None: "ended by force"}
_OTHER_COMMANDS = (
    *(
        (
            "protect",
            "--list",
        ),
        (
            "status",
            "--watermark",
        ),
        (
            "backfill",
            "list",
        ),
        ("history", RAW),
        ("history", FEATURES),
    ),
    ("status", "--withheld", "--select", RAW, "--from", DAYS[0], "--to", DAYS[-1]),
)
"""Which may refuse, but not with a trace."""


@dataclass
class Step(Disturbances):
    """One step.

    Attributes:
        outcome: what the disturbed run came to.
        landings: landed states that the run of now could read.
        is_exact: whether all was right in the end.
    """

    outcome: str = ""
    landings: list[Mapping[str, Landed]] = field(default_factory=list)
    is_exact: bool = False

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """How often each kind of action came to which outcome."""
        return Counter((kind, self.outcome) for kind in self.actions)

    def take(self) -> None:
        """Takes the step."""
        self.pipeline.checker.begin()
        for _ in range(self.moments.choice((0, 1, 1, 2, 2, 3))):
            self.disturb(foreign=list(foreign_commits.KINDS))
        if self.actions and self.moments.random() < 0.5:
            self._look(has_run=False)
        self.keep_copies()
        finished, is_calm = self._run_disturbed()
        self.outcome = _ENDINGS.get(finished.code, f"exit {finished.code}")
        self.pipeline.say(f"run: {self.outcome} after {finished.seconds:.0f} s")
        self._observe()
        self.expect_no_trace(ask(self.project, "recover"))
        has_run = is_calm and (finished.code == 0 or "withheld" in finished.output)
        self._look(has_run=has_run, with_dagster=True)
        self.run_once_more("one more run")

    def run_once_more(self, what: str, command: list[str] | None = None) -> None:
        """Mends what is to be mended, runs all, and checks that all is exact then."""
        for mend in reversed(self.mends):
            mend()
        self.pipeline.checker.protected.clear()
        self.pipeline.zone.mend()
        self.landings = [read_landing(self.pipeline.zone.root, DAYS)]
        finished = run(self.project, command or self._command("run", DAYS))
        if finished.code != 0:
            lines = [line.strip() for line in finished.output.splitlines() if line.strip()]
            errors = [line for line in lines if line.startswith("error")] or lines[-1:]
            seen = f"exit {finished.code}: {' / '.join(errors)}"
            self.add(Violation("one more run fails", None, seen))
        else:
            self.pipeline.typical_seconds = finished.seconds
        self._expect_no_orphans(finished)
        self._observe()
        view, answers = read_view(self.project, DAYS)
        self.expect_no_trace(*answers)
        view = add_dagster(view, self.project, DAYS)
        tables = read_tables(self.project.warehouse)
        inexact = self.pipeline.checker.find_inexact(tables, self.landings[-1], view)
        self.add(*inexact)
        self.is_exact = finished.code == 0 and not inexact
        self.pipeline.say(f"{what}: {'exact' if self.is_exact else 'NOT EXACT'}")

    def _run_disturbed(self) -> tuple[FinishedRun, bool]:
        """Runs, with what happens meanwhile; tells whether nothing did, and it was of all days."""
        self.landings = [read_landing(self.pipeline.zone.root, DAYS)]
        first = self.moments.choice((0, 0, 0, 1, 2))
        days = DAYS[first : self.moments.choice((5, 5, 5, first + 1, first + 2))]
        command = self._command(self.moments.choice(("run", "run", "run", "materialize")), days)
        events: list[tuple[float, Callable[[subprocess.Popen[bytes]], None]]] = []
        longest = self.pipeline.typical_seconds
        if self.moments.random() < 0.65:
            events.append((self.moments.uniform(0.3, longest), self._interrupt))
        if self.moments.random() < 0.3:
            events.append((self.moments.uniform(2, longest), self._disturb_meanwhile))
        before = len(self.actions)
        finished = run(self.project, command, events)
        self._expect_no_orphans(finished)
        is_calm = len(self.actions) == before
        if is_calm and "run" in command:  # Dagster's own command prints the traces of steps
            self.expect_no_trace(Answer("backfill-assets run", 0, "", finished.output))
        return finished, is_calm and days == DAYS

    def _command(self, how: str, days: list[str]) -> list[str]:
        if how == "materialize":
            ends = f"{days[0]}...{days[-1]}"
            return self.project.materialize_command(*TABLES, partitions=ends)
        return [find_program("backfill-assets"), "run", *select(days), "--yes"]

    def _interrupt(self, process: subprocess.Popen[bytes]) -> None:
        what = draw_interruption(self.moments)
        reached = interrupt(self.project, process, what)
        self.note(f"run: {what}" if reached else "run: nobody to interrupt")

    def _disturb_meanwhile(self, process: subprocess.Popen[bytes]) -> None:
        self._observe()
        self.disturb(foreign=list(foreign_commits.WHILE_A_RUN_WRITES), meanwhile=", meanwhile")
        self.landings.append(read_landing(self.pipeline.zone.root, DAYS))

    def _observe(self) -> None:
        tables = read_tables(self.project.warehouse)
        self.add(*self.pipeline.checker.find_torn(tables, self.landings))

    def _look(self, *, has_run: bool, with_dagster: bool = False) -> None:
        """Asks the project what it says, and holds that against what is so."""
        checker, zone = self.pipeline.checker, self.pipeline.zone
        view, answers = read_view(self.project, DAYS)
        self.expect_no_trace(*answers, ask(self.project, *self.moments.choice(_OTHER_COMMANDS)))
        tables, landing = read_tables(self.project.warehouse), read_landing(zone.root, DAYS)
        self.add(*checker.find_falsely_green(tables, landing, view, has_run=has_run))
        if with_dagster:
            view = add_dagster(view, self.project, DAYS)
            self.add(*checker.find_disagreements(view))
        else:
            self._ask_for_proof(tables)

    def _ask_for_proof(self, tables: Tables) -> None:
        """Asks what vouches for contents; it may not vouch for what somebody else has written."""
        spoiled = self.pipeline.checker.find_spoiled(tables)
        # What others were computed from.
        inputs = [partition for partition in spoiled if partition[0] != FEATURES]
        certificates = self.project.warehouse.glob("certificates/*")
        newest = max(certificates, key=lambda file: file.stat().st_mtime, default=None)
        for changed, command in (
            (inputs, ("history", "--consistent", "--select", ",".join(TABLES))),
            (spoiled, ("proof", "certificate", newest.name if newest else "none", "--verify")),
        ):
            answer = ask(self.project, *command)
            self.expect_no_trace(answer)
            if changed and answer.code == 0:
                self.add(Violation("falsely vouched for", changed[0], f"by `{command[0]}`"))

    def _expect_no_orphans(self, finished: FinishedRun) -> None:
        if finished.code is None:
            self.add(Violation("it hangs", None, f"ended after {finished.seconds:.0f} s"))
        if finished.orphans:
            self.add(Violation("left behind", None, ", ".join(finished.orphans)))


def prepare(pipeline: Pipeline) -> Step:
    """Lands all days and publishes them undisturbed; the watermarks go along."""
    for day in DAYS:
        pipeline.zone.land(day)
    step = Step(pipeline, random.Random(0))
    command = pipeline.project.materialize_command(
        *TABLES, partitions=f"{DAYS[0]}...{DAYS[-1]}", config={"save_watermark": True}
    )
    step.run_once_more("the first run", command)
    return step
