"""Runs the commands of a page of the documentation as they stand there."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from backfill_engine_tests.commands import PROJECT

_BLOCK = "=== block"


def run_page(
    name: str,
    *,
    cwd: Path,
    environment: Mapping[str, str],
    modules: Mapping[str, str] | None = None,
) -> list[str]:
    """Runs the page's shell blocks in order, in one shell.

    Args:
        name: of the page, in `docs`.
        cwd: where.
        environment: of the shell.
        modules: that the page tells to write after its first block, by path; the folders are there.

    Returns:
        What each block printed.
    """
    blocks = re.findall(r"```sh\n(.*?)```", read_page(name), re.DOTALL)
    bin_folder = str(Path(sys.executable).parent)
    first, *others = (block.replace(".venv/bin", bin_folder) for block in blocks)
    written = "".join(
        f"cat > {path} <<'MODULE'\n{text}MODULE\n" for path, text in (modules or {}).items()
    )
    script = "set -e\n" + f"echo '{_BLOCK}'\n".join([first + written, *others])
    run = subprocess.run(
        ["bash", "-c", script],
        env={**environment, "COLUMNS": "200"},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return run.stdout.split(f"{_BLOCK}\n")


def read_page(name: str) -> str:
    """Its text."""
    return (PROJECT / "docs" / name).read_text()


def find_modules(name: str) -> dict[str, str]:
    """The Python modules that a page tells to write, by path."""
    return dict(re.findall(r"`(\S+\.py)`:\n\n```python\n(.*?)```", read_page(name), re.DOTALL))
