"""Runs a campaign: for so many minutes, at random by a seed; see `benchmarks.campaign`."""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from backfill_engine_tests.commands import PROJECT
from backfill_engine_tests.postgres import Postgres, serve_postgres
from benchmarks.campaign.checker import Violation
from benchmarks.campaign.disturbances import Pipeline, open_pipeline
from benchmarks.campaign.steps import Step, prepare


@dataclass
class Campaign:
    """What is done, and what came of it.

    Attributes:
        seed: decides all that is random but how long things take; each step has its own draws.
        root: a scratch folder.
        server: of Dagster's events; None for SQLite.
        number: of the step that is taken now.
        steps: how many were taken.
        counts: actions by kind and by what the run came to that they disturbed.
        violations: of each step that has some, with the folder that is kept.
    """

    seed: int
    root: Path
    server: Postgres | None = None
    number: int = 0
    steps: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    violations: list[dict[str, object]] = field(default_factory=list)

    def run(self, *, minutes: float, first: int) -> None:
        """Takes steps until the time is over; one that ends wrong is followed by a new pipeline."""
        deadline = time.monotonic() + 60 * minutes
        self.number, pipeline = first, None
        while time.monotonic() < deadline:
            if pipeline is None:
                pipeline = self._open()
                first_run = prepare(pipeline)
                self._record(pipeline, ["the first run"], first_run.violations)
                if not first_run.is_exact:  # nothing can be said of what follows
                    return
            step = Step(pipeline, random.Random(f"{self.seed}/{self.number}"))
            step.take()
            self.steps += 1
            self.counts += step.counts
            self._record(pipeline, step.actions, step.violations)
            if not step.is_exact:
                pipeline = None
            self.number += 1

    def describe(self) -> dict[str, object]:
        """Sums up what came of it."""
        by_kind: dict[str, dict[str, int]] = {}
        for (kind, outcome), count in sorted(self.counts.items()):
            by_kind.setdefault(kind, {})[outcome] = count
        return {
            "seed": self.seed,
            "store": "postgres" if self.server else "sqlite",
            "steps": self.steps,
            "actions": self.counts.total(),
            "by_kind": by_kind,
            "violations": self.violations,
        }

    def _open(self) -> Pipeline:
        root = self.root / f"from-step-{self.number}"
        if self.server is None:
            return open_pipeline(root, (), PROJECT / "dagster.yaml", self._say)
        url = self.server.create_database()
        os.environ["DAGSTER_POSTGRES_URL"] = url  # Dagster's view is read in this process
        settings = (("DAGSTER_POSTGRES_URL", url),)
        return open_pipeline(root, settings, PROJECT / "deploy" / "dagster.yaml", self._say)

    def _record(
        self, pipeline: Pipeline, actions: Sequence[str], violations: Sequence[Violation]
    ) -> None:
        if violations:
            found = {"step": self.number, "actions": list(actions)}
            seen = {"seen": list(map(str, violations)), "folder": str(pipeline.kept[-1])}
            self.violations.append({**found, **seen})

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} step {self.number}: {text}", flush=True)


@contextmanager
def _serve(store: str) -> Iterator[Postgres | None]:
    if store == "sqlite":
        yield None
        return
    with serve_postgres() as server:
        yield server


def main() -> None:
    """Runs it, prints and writes what came of it; exits with 1 on any violation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10, help="after which no step begins")
    parser.add_argument("--seed", type=int, default=0, help="another one draws other disturbances")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--first-step", type=int, default=0, help="to draw a step of before again")
    parser.add_argument("--report", type=Path, default=Path("campaign.json"))
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="campaign-"))
    with _serve(options.store) as server:
        campaign = Campaign(options.seed, root, server)
        try:
            campaign.run(minutes=options.minutes, first=options.first_step)
        finally:
            report = json.dumps(campaign.describe(), indent=1)
            options.report.write_text(report + "\n")
            print(f"{report}\nwritten to {options.report}")
    if campaign.violations:
        sys.exit(f"error: {len(campaign.violations)} steps did not hold; what they left: {root}")
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
