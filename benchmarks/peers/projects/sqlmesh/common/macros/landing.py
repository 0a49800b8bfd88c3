"""Which landed files a run reads: those of the days asked for."""

import datetime as dt
import os
from pathlib import Path

from sqlglot import exp
from sqlmesh import macro


def list_landed_files(first: dt.date, last: dt.date) -> list[str]:
    """Lists the files of the days, both included, oldest first.

    Where none landed it is the first of all files: a reader wants one, if only for its columns.
    """
    root = Path(os.environ["PEER_LANDING"], "flights")
    days = (first + dt.timedelta(days=number) for number in range((last - first).days + 1))
    folders = (root / f"year={day:%Y}" / f"month={day:%m}" / f"day={day:%d}" for day in days)
    found = [str(path) for folder in folders for path in sorted(folder.glob("*.json.gz"))]
    return found or [str(min(root.glob("year=*/month=*/day=*/*.json.gz")))]


@macro()
def landed_files(evaluator):
    """Writes the files of the run's interval as an array of strings."""
    first, last = (evaluator.locals[name] for name in ("start_date", "end_date"))
    return exp.array(*(exp.Literal.string(path) for path in list_landed_files(first, last)))
