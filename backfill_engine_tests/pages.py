"""Runs the commands of a page of the documentation as a person types them, in a clone."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from backfill_engine_tests.commands import PROJECT, QUICK_ENGINE

_BLOCK = "=== block"
ACTIVATED = {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": "",
}
"""Where the engine is installed in an environment that is activated, outside of a clone."""
_FENCE = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run_page(
    name: str,
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    modules: Mapping[str, str] | None = None,
) -> list[str]:
    """Runs the page's shell blocks in order, in one shell.

    Args:
        name: of the page, in `docs`.
        cwd: where, as a clone of `make_clone`.
        environment: of the shell, beside what `build_environment` gives.
        modules: that the page tells to write after its first block, by path; the folders are there.

    Returns:
        What each block printed.
    """
    first, *others = find_blocks(name)
    written = "".join(
        f"cat > {path} <<'MODULE'\n{text}MODULE\n" for path, text in (modules or {}).items()
    )
    return run_blocks([first + written, *others], cwd=cwd, environment=environment)


def run_blocks(
    blocks: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None
) -> list[str]:
    """Runs shell blocks as `run_page` does."""
    run = subprocess.run(
        ["bash", "-c", "set -e\n" + f"echo '{_BLOCK}'\n".join(blocks)],
        env={**build_environment(cwd), **(environment or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return run.stdout.split(f"{_BLOCK}\n")


def build_environment(clone: Path) -> dict[str, str]:
    """The environment of a new shell, where nobody has set anything, but for a quick engine."""
    own = ("BACKFILL_", "SPARK_REMOTE", "DAGSTER_", "PYTHONPATH")
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(own)}
    own_values = {"BACKFILL_ENGINE": QUICK_ENGINE, "COLUMNS": "200", "PYTHONPATH": str(clone)}
    return {**inherited, **own_values}


def make_clone(root: Path) -> Path:
    """Makes a bare clone: the files of this one that git tracks, and a `.venv` with its programs.

    The environment is this one's, as `make` takes minutes to install another.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (PROJECT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PROJECT / name, root / name)
    (root / ".venv").mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name != "installed":
            (root / ".venv" / entry.name).symlink_to(entry)
    (root / ".venv" / "installed").touch()
    return root


def read_page(name: str) -> str:
    """Its text."""
    return (PROJECT / "docs" / name).read_text()


def find_blocks(name: str) -> list[str]:
    """The shell blocks of a page, in order."""
    return _FENCE.findall(read_page(name))


def find_modules(name: str) -> dict[str, str]:
    """The Python modules that a page tells to write, by path."""
    return dict(re.findall(r"`(\S+\.py)`:\n\n```python\n(.*?)```", read_page(name), re.DOTALL))


def list_pages() -> Iterator[str]:
    """Pages that have shell blocks, by their paths from `docs`."""
    for page in (*sorted((PROJECT / "docs").glob("*.md")), *sorted(PROJECT.glob("*.md"))):
        name = os.path.relpath(page, PROJECT / "docs")
        if find_blocks(name):
            yield name
