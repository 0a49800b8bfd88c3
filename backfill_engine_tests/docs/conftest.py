"""A clone in which the README's commands have run, for the pages to go on from."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from backfill_engine_tests.commands import Project
from backfill_engine_tests.pages import find_blocks, make_clone, run_blocks


@dataclass(frozen=True)
class Begun:
    """What the README's commands left behind.

    Attributes:
        clone: its folder. Tests copy it.
        outputs: what its first command and its backfill from a shell printed.
    """

    clone: Path
    outputs: list[str]


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """January and February, by the README's commands in a bare clone.

    But for `make test`, which is what runs this, and `dagster dev`, which doesn't end.
    """
    clone = make_clone(tmp_path_factory.mktemp("clone") / "project")
    make, dev, shell = find_blocks("../README.md")
    backfill, test = make.splitlines(keepends=True)
    assert test.startswith("make test")
    assert dev.endswith("dagster dev\n")
    return Begun(clone, run_blocks([backfill, shell], cwd=clone))


@pytest.fixture(scope="module")
def clone(begun: Begun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for a page to go on from."""
    root = tmp_path_factory.mktemp("page") / "project"
    shutil.copytree(begun.clone, root, symlinks=True)
    return root


@pytest.fixture(scope="module")
def project(clone: Path) -> Project:
    """What the page's commands left in the clone."""
    return Project(clone / "data", clone / "data" / "landing")
