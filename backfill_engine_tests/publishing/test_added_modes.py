"""A write mode that an installed package adds by an entry point."""

import os
import subprocess
import sys
from pathlib import Path

from backfill_engine_tests.commands import PROJECT

MODULE = """
from backfill_engine import WriteMode


class Upsert(WriteMode):
    name = "upsert"
"""
ASK = """
from backfill_engine.publishing.write_modes.choosing import WRITE_MODES, ModeName
print(*WRITE_MODES, *ModeName)
"""


def ask(folder: Path, *, named: str) -> subprocess.CompletedProcess[str]:
    """Asks which modes there are where a package that adds one is installed."""
    (folder / "upserting.py").write_text(MODULE)
    installed = folder / "upserting-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: upserting\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        f"[backfill_engine.write_modes]\n{named} = upserting:Upsert\n"
    )
    path = os.pathsep.join((str(folder), str(PROJECT)))
    return subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_run_may_be_told_a_mode_that_a_package_adds(tmp_path: Path) -> None:
    modes = ask(tmp_path, named="upsert").stdout.split()
    own = ["overwrite", "merge", "append_once", "upsert"]
    assert modes == [*own, "rollback", "accept", "take_back", *own]


def test_an_entry_point_of_another_name_is_refused(tmp_path: Path) -> None:
    refused = ask(tmp_path, named="replace")
    assert refused.returncode != 0
    message = "the entry point replace of backfill_engine.write_modes is no write mode of that name"
    assert message in refused.stderr
