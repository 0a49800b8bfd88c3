"""Does what `docs/your-own-pipeline.md` says, in a copy of the project."""

import ast
import os
import shutil
from pathlib import Path

import pytest

from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.tables.declarations import Table, required
from backfill_assets_tests.commands import PROJECT
from backfill_assets_tests.pages import find_modules, read_page, run_page

pytestmark = pytest.mark.slow

PAGE = "your-own-pipeline.md"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("own") / "project"
    root.mkdir()
    for name in ("dagster.yaml", "pyproject.toml", "workspace.yaml", "requirements.lock"):
        shutil.copy(PROJECT / name, root)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PROJECT / "backfill_assets", root / "backfill_assets", ignore=ignored)
    return root


@pytest.fixture(scope="module")
def outputs(copy: Path) -> list[str]:
    modules = find_modules(PAGE)
    assert len(modules) == 2
    for path, text in modules.items():
        assert not (copy / path).exists()
        (copy / path).write_text(text)
    own = ("BACKFILL_", "SPARK_REMOTE", "DAGSTER_HOME")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    return run_page(PAGE, cwd=copy, environment={**inherited, "PYTHONPATH": str(copy)})


def test_the_new_pipeline_is_published_and_agrees_with_its_source(
    copy: Path, outputs: list[str]
) -> None:
    assert outputs[-1].count("materialized") == 6
    days = Table(
        "features", "meter_days", "landing_date", (required("landing_date", "DATE", "Day"),)
    )
    rows = Warehouse(str(copy / "data" / "warehouse")).open(days).to_pyarrow_table().to_pylist()
    assert sorted((str(row["landing_date"]), row["meter"], row["litres"]) for row in rows) == [
        (f"2013-01-0{day}", meter, 10 * meter + 0.5) for day in (1, 2, 3) for meter in (1, 2, 3)
    ]


def test_its_checks_and_commands_came_by_themselves(outputs: list[str]) -> None:
    rows = [line.split("│") for line in outputs[-1].splitlines() if "2013-01-0" in line]
    agree = [[cell.strip() for cell in row][-2] for row in rows if len(row) > 8]
    assert agree == ["yes"] * 6


def test_the_page_counts_the_lines_of_the_weather_pipeline_right() -> None:
    text = " ".join(read_page(PAGE).split())
    wiring = count_statements(PROJECT / "backfill_assets" / "assets" / "weather.py")
    declared = count_statements(PROJECT / "backfill_assets" / "tables" / "weather.py")
    assert f"took {wiring} lines of wiring beside its transforms and {declared} of" in text


def count_statements(path: Path) -> int:
    """Lines that are neither blank, comments nor documentation."""
    source = path.read_text()
    documented: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in documented
        for number, line in enumerate(source.splitlines(), 1)
    )
