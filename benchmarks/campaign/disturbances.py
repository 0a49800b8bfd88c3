"""What happens to the pipeline that no run of it did, drawn at random."""

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from backfill_engine_tests.commands import Project
from benchmarks.campaign import foreign_commits, side_files
from benchmarks.campaign.checker import Checker, Violation
from benchmarks.campaign.landing_faults import LandingZone, spoil
from benchmarks.campaign.model import TABLES, read_tables
from benchmarks.campaign.project_views import Answer, ask

DAYS = [f"2013-01-{day:02}" for day in range(1, 6)]
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


@dataclass
class Disturbances:
    """Disturbs a pipeline, and notes what was done and what did not hold.

    Attributes:
        pipeline: what is disturbed.
        moments: decides all that is random.
        actions: kinds of what was done.
        violations: what did not hold.
        mends: what a person does before the run that is to be exact.
    """

    pipeline: Pipeline
    moments: random.Random
    actions: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    mends: list[Callable[[], None]] = field(default_factory=list)

    @property
    def project(self) -> Project:
        """The pipeline's."""
        return self.pipeline.project

    def disturb(self, *, foreign: list[str], meanwhile: str = "") -> None:
        """Does one thing that nobody should, or that the source may."""
        kinds = ["landing"] * 3 + ["commit"] * 3
        if not meanwhile:
            kinds += ["side", "side", "dagster", "protect"]
        match self.moments.choice(kinds):
            case "landing":
                kind, day = spoil(self.pipeline.zone, self.moments, DAYS)
                self.note(f"landing: {kind}{meanwhile}", day)
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
            self.mends.append(folder.move_away_without_log)
        if day is not None:
            self.pipeline.checker.disturb(read_tables(warehouse))
            self.note(f"commit: {kind}{meanwhile}", f"{table} {day}")

    def _damage_side_file(self, kind: str = "") -> None:
        kind = kind or self.moments.choice(list(side_files.SIDE_FILES))
        damaged = side_files.damage(self.project, kind, self.moments)
        if damaged is not None:
            how, path, content = damaged
            self.mends.append(lambda: side_files.mend(kind, path, content))
            self.note(f"side file: {kind} {how}", path.name)

    def _protect(self) -> None:
        """Protects a partition until the run that is to be exact; the table may be damaged then."""
        table, day = self.moments.choice(TABLES), self.moments.choice(DAYS)
        named = [table, "--from", day, "--to", day, "--reason", "campaign"]
        answer = ask(self.project, "protect", *named)
        self.expect_no_trace(answer)
        if answer.code != 0:  # refused, as what is damaged can't take it
            return
        self.mends.append(
            lambda: self.expect_no_trace(ask(self.project, "protect", "--lift", *named))
        )
        self.pipeline.checker.protected.add((table, day))
        self.note("protect", f"{table} {day}")
        if self.moments.random() < 0.5:
            self._damage_side_file("protections")

    def _lose_dagster(self) -> None:
        if self.moments.random() < 0.5 and side_files.lose_dagster_index(self.project):
            self.note("Dagster: index.db lost")
        else:
            side_files.wipe_assets(self.project)
            self.note("Dagster: assets wiped")

    def keep_copies(self) -> None:
        """Keeps a copy of each table, now and then, to be put back later."""
        for table in TABLES:
            source, copy = self.project.warehouse / table, self.project.root / "copies" / table
            if source.is_dir() and self.moments.random() < 0.3:
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(source, copy)

    def expect_no_trace(self, *answers: Answer) -> None:
        """Checks that each command ended in time, and with words for people."""
        for answer in answers:
            self.add(*answer.find_violations())

    def note(self, kind: str, where: str = "") -> None:
        """Notes what was done."""
        self.actions.append(kind)
        self.pipeline.say(f"{kind} {where}".rstrip())

    def add(self, *violations: Violation) -> None:
        """Adds what did not hold; at the first of it, all is kept as it is."""
        if violations and not self.violations:
            kept = self.project.root.parent / f"{self.project.root.name}-{len(self.pipeline.kept)}"
            with suppress(shutil.Error):  # of what a run takes away meanwhile
                shutil.copytree(self.project.root, kept, symlinks=True)
            self.pipeline.kept.append(kept)
        self.violations.extend(violations)
        for violation in violations:
            self.pipeline.say(f"VIOLATION {violation}")


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
