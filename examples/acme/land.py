"""Lands ten days of readings, `python land.py data/landing`; on one a meter ran backwards."""

import datetime as dt
import json
import sys
from pathlib import Path


def land(root: Path) -> None:
    """Lands them below a folder."""
    for number in range(1, 11):
        day = dt.date(2024, 1, number)
        folder = root / "readings" / f"year={day:%Y}" / f"month={day:%m}" / f"day={day:%d}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            {
                "meter": meter,
                "read_at": f"{day}T0{meter}:30:00Z",
                "litres": -1.0 if (number, meter) == (4, 2) else meter * 10 + 0.5,
            }
            for meter in (1, 2, 3)
        ]
        (folder / "readings.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    land(Path(sys.argv[1]))
