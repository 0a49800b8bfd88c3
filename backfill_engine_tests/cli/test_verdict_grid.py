"""Verdicts fit a terminal of 80 columns."""

import io

from rich.console import Console

from backfill_engine.cli.run_command import build_grid
from backfill_engine.orchestration.backfills.outcomes import TableVerdict, Verdicts

DAY = "2013-01-04"


def test_verdicts_are_whole_at_80_columns() -> None:
    why = "2013-01-05: partition_is_valid: rejects = 0.357143 (at most 0.01 of the records)"
    withheld = {"status": "withheld", "partitions": 1, "reasons": [why]}
    many = [f"2013-{month:02}-01...2013-{month:02}-20" for month in range(1, 11)]
    tables = [
        TableVerdict("features/departure_conditions", 8760, 8759, many, [withheld]),
        TableVerdict("raw/flights", 1, 0, [], [withheld]),
        TableVerdict("raw/weather", 1, 1, [DAY], [], warned={DAY: "gate is not declared"}),
    ]
    out = io.StringIO()
    found = Verdicts(run_id="run", state="held back", only_waits=False, tables=tables)
    Console(file=out, width=80).print(build_grid(found))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert rows[0][:3] == ["features/departure_conditions", "published", "8,759"]
    assert ["", "withheld", "1"] in [row[:3] for row in rows]
    assert ["", "warned", "1"] in [row[:3] for row in rows]
    assert f"{DAY}: gate is not" in [row[3] for row in rows]
    assert ["raw/flights", "withheld", "1"] in [row[:3] for row in rows]
    reasons = "".join(row[3] for row in rows).replace(" ", "")
    assert why.replace(" ", "") in reasons
    assert "and3more" in reasons
