"""Orders and their lines as TPC-H specifies them, at a scale of one's choice.

Made by the tool of the package tpchgen-cli (Apache-2.0): the same scale gives the same bytes. Scale
factor 1 is 1.5 million orders with about 6 million lines. Keys are sparse: of each 32, the first 8
are in use, so the largest is about four times the number of orders.
"""

import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from backfill_assets.samples.files import (
    build_missing_package_error,
    find_local_root,
    move_if_different,
)
from backfill_engine import BackfillError, SettingsError

_PACKAGE = _TOOL = "tpchgen-cli"
_TABLES = ("orders", "lineitem")
_LARGEST_SCALE = 100
_PARTS_PER_SCALE, _MOST_PARTS = 4, 64


@dataclass(frozen=True)
class OrdersSampleReport:
    """What was landed: orders, lines, the largest order key, and files new or different."""

    orders: int
    lines: int
    largest_key: int
    files_written: int


def land_orders(landing_root: str, *, scale: float) -> OrdersSampleReport:
    """Writes `<root>/orders/orders/*.parquet` and `<root>/orders/lineitem/*.parquet`.

    The same bytes for the same scale; a file that has them already isn't touched. Each file is
    replaced whole, the landing as such is not: until it ends, files of an earlier landing with
    another scale lie beside the new ones. They go last, so that a failure never leaves less than
    there was.

    Args:
        landing_root: A local path.
        scale: TPC-H scale factor, above 0 and up to 100; 1 is 1.5 million orders.

    Returns:
        Counts and the largest key (0 if there are no orders) as the Parquet footers have them.

    Raises:
        BackfillError: if the scale is out of bounds, the root isn't a local path, or the tool isn't
            installed or fails; nothing is landed then.
    """
    # Put so that a NaN is refused, too.
    if not 0 < scale <= _LARGEST_SCALE:
        raise SettingsError(
            f"the scale is above 0 and up to {_LARGEST_SCALE} (1 is 1.5 million orders), "
            f"not {scale:g}"
        )
    root = find_local_root(landing_root)
    tool = _find_tool()
    root.mkdir(parents=True, exist_ok=True)
    # Below the root, so that files are moved within one file system; hidden from whoever lists it.
    with tempfile.TemporaryDirectory(prefix=".orders-", dir=root) as folder:
        made = Path(folder)
        _run_tool(tool, scale, made)
        orders, lines = (_count_rows(made / table) for table in _TABLES)
        largest_key = _find_largest_key(made / "orders")
        written = _move_tables(made, root / "orders")
    return OrdersSampleReport(orders, lines, largest_key, written)


def compute_parts(scale: float) -> int:
    """Computes the number of files that a table gets at a scale factor.

    It is four per unit, at least 1, at most 64.
    """
    return min(max(1, math.ceil(_PARTS_PER_SCALE * scale)), _MOST_PARTS)


def _find_tool() -> str:
    # An environment need not be activated, so the interpreter's own folder comes first.
    tool = shutil.which(_TOOL, path=str(Path(sys.executable).parent)) or shutil.which(_TOOL)
    if tool is None:
        raise build_missing_package_error(_PACKAGE)
    return tool


def _run_tool(tool: str, scale: float, folder: Path) -> None:
    """Fills `<folder>/<table>/<table>.<n>.parquet`, n from 1."""
    arguments = ["-s", str(scale), "--parts", str(compute_parts(scale))]
    tables = ["--tables", ",".join(_TABLES)]
    finished = subprocess.run(
        [tool, "parquet", *arguments, *tables, "--output-dir", str(folder), "--quiet"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if finished.returncode:
        lines = finished.stderr.strip().splitlines() or [f"exit code {finished.returncode}"]
        raise BackfillError(f"{_TOOL} failed at scale {scale:g}: {lines[-1]}")


def _count_rows(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.iterdir())


def _find_largest_key(folder: Path) -> int:
    return max((key for path in folder.iterdir() for key in _read_largest_keys(path)), default=0)


def _read_largest_keys(path: Path) -> Iterator[int]:
    footer = pq.read_metadata(path)
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        # The first column is the key. A group without rows has no largest.
        if group.num_rows:
            yield group.column(0).statistics.max


def _move_tables(made: Path, target: Path) -> int:
    """Moves what differs, then removes what isn't part of this landing; returns files moved."""
    landed: set[Path] = set()
    written = 0
    for table in _TABLES:
        for source in sorted((made / table).iterdir()):
            path = target / table / _build_name(source)
            written += move_if_different(source, path)
            landed.add(path)
    for table in _TABLES:
        # Only names that a landing gives; anything else there is somebody else's.
        for path in (target / table).glob(f"{table}.[0-9][0-9].parquet"):
            if path not in landed:
                path.unlink()
    return written


def _build_name(source: Path) -> str:
    # The tool writes orders.2.parquet and orders.10.parquet; two digits sort as they count.
    table, number, suffix = source.name.split(".")
    return f"{table}.{int(number):02d}.{suffix}"
