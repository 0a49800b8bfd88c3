"""A step of the campaign: disturb, run, look, mend, run once more, and check each time."""

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from backfill_assets_tests.commands import Project, find_program
from benchmarks.campaign import foreign_commits, side_files
from benchmarks.campaign.checker import Checker, Violation
from benchmarks.campaign.interruptions import (
    FinishedRun,
    draw_interruption,
    interrupt,
    run,
)
from benchmarks.campaign.landing_faults import LandingZone, spoil
from benchmarks.campaign.model import TABLES, Landed, read_landing, read_tables
from benchmarks.campaign.project_views import Answer, add_dagster, ask, read_view, select

DAYS = [f"2013-01-{day:02}" for day in range(1, 6)]
_ENDINGS = {0: "published", 1: "held back", 3: "waits", 130: "cancelled", None: "ended by force"}
_OLDER_COPY = "older copy put back"
_TYPICAL_SECONDS = 20.0


@dataclass
class Pipeline:
    """The pipeline that is disturbed, and what is known of it.

    Attributes:
        project: its folders and settings.
        zone: where flights land.
        checker: follows its tables.
        say: writes a line of the campaign's log.
        typical_seconds: that a run took which nothing interrupted.
        kept: copies of its folder, each made when something did not hold.
    """

    project: Project
    zone: LandingZone
    checker: Checker
    say: Callable[[str], None]
    typical_seconds: float = _TYPICAL_SECONDS
    kept: list[Path] = field(default_factory=list)

    def prepare(self) -> list[Violation]:
        """Lands all days and publishes them undisturbed; the watermarks go along."""
        for day in DAYS:
            self.zone.land(day)
        step = Step(self, random.Random(0))
        command = self.project.materialize_command(
            *TABLES, partitions=f"{DAYS[0]}...{DAYS[-1]}", config={"save_watermark": True}
        )
        step.run_once_more("the first run", command)
        return step.violations


@dataclass
class Step:
    """One step.

    Attributes:
        pipeline: what is disturbed.
        moments: decides all that is random.
        actions: kinds of what was done.
        violations: what did not hold.
        outcome: what the disturbed run came to.
        mends: what a person does before the run that is to be exact.
        landings: landed states that the run of now could read.
        is_exact: whether all was right in the end.
    """

    pipeline: Pipeline
    moments: random.Random
    actions: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    outcome: str = ""
    mends: list[Callable[[], None]] = field(default_factory=list)
    landings: list[Mapping[str, Landed]] = field(default_factory=list)
    is_exact: bool = False

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """How often each kind of action came to which outcome."""
        return Counter((kind, self.outcome) for kind in self.actions)

    def take(self) -> None:
        """Takes the step."""
        self.pipeline.checker.begin()
        for _ in range(self.moments.choice((0, 1, 1, 2))):
            self._disturb(foreign=list(foreign_commits.KINDS))
        if self.actions and self.moments.random() < 0.5:
            self._look(has_run=False)
        self._keep_copies()
        finished, is_calm = self._run_disturbed()
        self.outcome = _ENDINGS.get(finished.code, f"exit {finished.code}")
        self.say(f"run: {self.outcome} after {finished.seconds:.0f} s")
        self._observe()
        self._expect_no_trace(ask(self.project, "recover"))
        has_run = is_calm and (finished.code == 0 or "withheld" in finished.output)
        self._look(has_run=has_run, with_dagster=True)
        self.run_once_more("one more run")

    def say(self, text: str) -> None:
        """Writes a line of the log."""
        self.pipeline.say(text)

    @property
    def project(self) -> Project:
        """The pipeline's."""
        return self.pipeline.project

    def run_once_more(self, what: str, command: list[str] | None = None) -> None:
        """Mends what is to be mended, runs all, and checks that all is exact then."""
        for mend in reversed(self.mends):
            mend()
        self.pipeline.checker.protected.clear()
        self.pipeline.zone.mend()
        self.landings = [read_landing(self.pipeline.zone.root, DAYS)]
        finished = run(self.project, command or self._command("run", DAYS))
        if finished.code != 0:
            last = (finished.output.strip().splitlines() or ["not a word"])[-1]
            self._add(Violation("one more run fails", None, f"exit {finished.code}: {last}"))
        else:
            self.pipeline.typical_seconds = finished.seconds
        self._expect_no_orphans(finished)
        self._observe()
        view, answers = read_view(self.project, DAYS)
        self._expect_no_trace(*answers)
        view = add_dagster(view, self.project, DAYS)
        tables = read_tables(self.project.warehouse)
        inexact = self.pipeline.checker.find_inexact(tables, self.landings[-1], view)
        self._add(*inexact)
        self.is_exact = finished.code == 0 and not inexact
        self.say(f"{what}: {'exact' if self.is_exact else 'NOT EXACT'}")

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
        self._expect_no_trace(Answer(" ".join(command[:3]), 0, "", finished.output))
        return finished, days == DAYS and len(self.actions) == before

    def _command(self, how: str, days: list[str]) -> list[str]:
        if how == "materialize":
            ends = f"{days[0]}...{days[-1]}"
            return self.project.materialize_command(*TABLES, partitions=ends)
        return [find_program("backfill-assets"), "run", *select(days), "--yes"]

    def _interrupt(self, process: subprocess.Popen[bytes]) -> None:
        what = draw_interruption(self.moments)
        reached = interrupt(self.project, process, what)
        self._note(f"run: {what}" if reached else "run: nobody to interrupt")

    def _disturb_meanwhile(self, process: subprocess.Popen[bytes]) -> None:
        self._observe()
        self._disturb(foreign=list(foreign_commits.WHILE_A_RUN_WRITES), meanwhile=", meanwhile")
        self.landings.append(read_landing(self.pipeline.zone.root, DAYS))

    def _disturb(self, *, foreign: list[str], meanwhile: str = "") -> None:
        """Does one thing that nobody should, or that the source may."""
        kinds = ["landing"] * 3 + ["commit"] * 3
        if not meanwhile:
            kinds += ["side", "side", "dagster", "protect"]
        match self.moments.choice(kinds):
            case "landing":
                kind, day = spoil(self.pipeline.zone, self.moments, DAYS)
                self._note(f"landing: {kind}{meanwhile}", day)
            case "commit":
                self._commit([*foreign, *([] if meanwhile else [_OLDER_COPY])], meanwhile)
            case "side":
                self._damage_side_file()
            case "protect":
                self._protect()
            case _:
                self._lose_dagster()

    def _commit(self, kinds: list[str], meanwhile: str) -> None:
        kind, table = self.moments.choice(kinds), self.moments.choice(TABLES)
        warehouse = self.project.warehouse
        if kind == _OLDER_COPY:
            copy = self.project.root / "copies" / table
            if not copy.is_dir():
                return
            shutil.rmtree(warehouse / table, ignore_errors=True)
            shutil.copytree(copy, warehouse / table)
            day = ""
        else:
            folder = foreign_commits.open_folder(warehouse, table)
            day = foreign_commits.disturb(folder, kind, self.moments, DAYS)
        if day is not None:
            self.pipeline.checker.disturb(read_tables(warehouse))
            self._note(f"commit: {kind}{meanwhile}", f"{table} {day}")

    def _damage_side_file(self, kind: str = "") -> None:
        kind = kind or self.moments.choice(list(side_files.SIDE_FILES))
        damaged = side_files.damage(self.project, kind, self.moments)
        if damaged is not None:
            how, path, content = damaged
            self.mends.append(lambda: side_files.mend(kind, path, content))
            self._note(f"side file: {kind} {how}", path.name)

    def _protect(self) -> None:
        """Protects a partition until the run that is to be exact; the table may be damaged then."""
        table, day = self.moments.choice(TABLES), self.moments.choice(DAYS)
        named = [table, "--from", day, "--to", day, "--reason", "campaign"]
        self._expect_no_trace(ask(self.project, "protect", *named))
        self.mends.append(lambda: self._expect_no_trace(ask(self.project, "unprotect", *named)))
        self.pipeline.checker.protected.add((table, day))
        self._note("protect", f"{table} {day}")
        if self.moments.random() < 0.5:
            self._damage_side_file("protections")

    def _lose_dagster(self) -> None:
        if self.moments.random() < 0.5 and side_files.lose_dagster_index(self.project):
            self._note("Dagster: index.db lost")
        else:
            side_files.wipe_assets(self.project)
            self._note("Dagster: assets wiped")

    def _keep_copies(self) -> None:
        """Keeps a copy of each table, now and then, to be put back later."""
        for table in TABLES:
            source, copy = self.project.warehouse / table, self.project.root / "copies" / table
            if source.is_dir() and self.moments.random() < 0.3:
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(source, copy)

    def _observe(self) -> None:
        tables = read_tables(self.project.warehouse)
        self._add(*self.pipeline.checker.find_torn(tables, self.landings))

    def _look(self, *, has_run: bool, with_dagster: bool = False) -> None:
        """Asks the project what it says, and holds that against what is so."""
        checker, zone = self.pipeline.checker, self.pipeline.zone
        view, answers = read_view(self.project, DAYS)
        self._expect_no_trace(*answers)
        tables, landing = read_tables(self.project.warehouse), read_landing(zone.root, DAYS)
        self._add(*checker.find_falsely_green(tables, landing, view, has_run=has_run))
        if with_dagster:
            view = add_dagster(view, self.project, DAYS)
            self._add(*checker.find_disagreements(view))

    def _expect_no_trace(self, *answers: Answer) -> None:
        for answer in answers:
            self._add(*answer.find_violations())

    def _expect_no_orphans(self, finished: FinishedRun) -> None:
        if finished.code is None:
            self._add(Violation("it hangs", None, f"ended after {finished.seconds:.0f} s"))
        if finished.orphans:
            self._add(Violation("left behind", None, ", ".join(finished.orphans)))

    def _note(self, kind: str, where: str = "") -> None:
        self.actions.append(kind)
        self.say(f"{kind} {where}".rstrip())

    def _add(self, *violations: Violation) -> None:
        if violations and not self.violations:  # as it is now, to be looked at
            kept = self.project.root.parent / f"{self.project.root.name}-{len(self.pipeline.kept)}"
            with suppress(shutil.Error):  # of what a run takes away meanwhile
                shutil.copytree(self.project.root, kept, symlinks=True)
            self.pipeline.kept.append(kept)
        self.violations.extend(violations)
        for violation in violations:
            self.say(f"VIOLATION {violation}")


def open_pipeline(
    root: Path,
    settings: tuple[tuple[str, str], ...],
    dagster_yaml: Path,
    say: Callable[[str], None],
) -> Pipeline:
    """Makes a pipeline in an empty folder; nothing has landed or run yet."""
    root.mkdir(parents=True)
    own = (("BACKFILL_END", "2013-01-06"), *settings)
    project = Project(root, root / "landing", own, dagster_yaml)
    return Pipeline(project, LandingZone(root / "landing"), Checker(DAYS), say)
