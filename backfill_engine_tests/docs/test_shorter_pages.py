"""Runs the commands of pages that have a few, one page after the other in a clone."""

from pathlib import Path

import pytest

from backfill_engine_tests.commands import Project
from backfill_engine_tests.landing_zones import double_distances, rewrite_records
from backfill_engine_tests.pages import run_blocks, run_page

pytestmark = pytest.mark.slow

RUN = ".venv/bin/backfill-assets run --yes --select {} --from {day} --to {day}"
DELETE = """.venv/bin/python - <<'PYTHON'
from pathlib import Path
from backfill_engine.spark.sail import start_sail
table = Path("data/warehouse/raw/flights").resolve()
start_sail().sql(
    f"DELETE FROM delta.`{table}` WHERE landing_date = '2013-01-05' AND carrier = 'UA'"
)
PYTHON
"""
"""Another program deletes rows."""


def test_sail_does_the_same(clone: Path) -> None:
    (output,) = run_page("sail.md", cwd=clone)
    assert output.count(" materialized v") == 31 * 3
    assert "published: " in output


def test_late_data_is_planned_and_watched(clone: Path, project: Project) -> None:
    planned, _ = run_page("late-data.md", cwd=clone)
    assert "nothing is to be run" in planned
    pages = {page.stem for page in (project.warehouse / "ops").glob("*.html")}
    assert pages == {"late_arrivals", "backfill_health"}


def test_a_withheld_day_is_accepted_with_a_reason(clone: Path, project: Project) -> None:
    day = "2013-01-20"
    rewrite_records(project.landing, day, double_distances)
    raw, staging = (RUN.format(table, day=day) for table in ("raw/flights", "staging/flights"))
    (printed,) = run_blocks([f"{raw}\n{staging} 2>&1 || true\n"], cwd=clone)
    assert "partition_is_stable: drift(distance)" in printed
    run_page("audit.md", cwd=clone)


def test_what_another_program_changed_is_accepted(clone: Path) -> None:
    run_blocks([DELETE], cwd=clone)
    (printed,) = run_page("external-tables.md", cwd=clone)
    assert "2013-01-05" in printed
