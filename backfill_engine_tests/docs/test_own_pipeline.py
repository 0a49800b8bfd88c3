"""Does what `docs/your-own-pipeline.md` says, in an empty folder."""

from pathlib import Path

import pytest

from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.tables.declarations import Table, required
from backfill_engine_tests.pages import ACTIVATED, find_modules, run_page

pytestmark = pytest.mark.slow

PAGE = "your-own-pipeline.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def outputs(folder: Path) -> list[str]:
    return run_page(PAGE, cwd=folder, environment=ACTIVATED, modules=find_modules(PAGE))


def test_the_new_project_is_published_over_all_layers(outputs: list[str]) -> None:
    assert outputs[0].count("materialized") == 15


def test_the_new_table_is_published_and_agrees_with_its_source(
    folder: Path, outputs: list[str]
) -> None:
    assert outputs[-1].count("materialized") == 10
    days = Table("gold", "dry_meters", "landing_date", (required("landing_date", "DATE", "Day"),))
    warehouse = Warehouse(str(folder / "waterworks" / "data" / "warehouse"))
    rows = warehouse.open(days).to_pyarrow_table().to_pylist()
    assert sorted((str(row["landing_date"]), row["meter"], row["litres"]) for row in rows) == [
        (f"2024-01-0{day}", 1, 10.5) for day in range(1, 6)
    ]


def test_its_checks_and_commands_came_by_themselves(outputs: list[str]) -> None:
    rows = [line.split("│") for line in outputs[-1].splitlines() if "2024-01-0" in line]
    agree = [[cell.strip() for cell in row][-2] for row in rows if len(row) > 8]
    assert agree == ["yes"] * 5
