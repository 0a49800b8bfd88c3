"""Range runs killed with -9 at random moments: `status --missing` never says too little.

`DRILL_KILLS=20 DRILL_SEED=1` in the environment kill more often, at other moments.
"""

import json
import os
import random
import signal
import subprocess
import time

import pytest

from backfill_engine_tests.commands import Project, confirm
from backfill_engine_tests.landing_zones import copy_days

pytestmark = [pytest.mark.slow, pytest.mark.by_hand]

TABLES = ("raw/flights", "staging/flights", "features/carrier_delays")
FIRST, LAST = "2013-01-01", "2013-01-06"
RANGE = f"{FIRST}...{LAST}"
KILLS = int(os.environ.get("DRILL_KILLS", "4"))
SEED = int(os.environ.get("DRILL_SEED", "0"))


def materialize_and_kill(project: Project, *, after_seconds: float) -> None:
    run = subprocess.Popen(
        project.materialize_command(*TABLES, partitions=RANGE),
        env=project.environment,
        cwd=project.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        run.wait(after_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def list_missing(project: Project) -> tuple[int, set[tuple[str, str]], str]:
    """Returns the exit code, the listed partitions and the output on stderr."""
    found = project.run(
        "backfill-assets", "status", "--missing", "--from", FIRST, "--to", LAST, "--json"
    )
    listed = {
        (missing["table"], f"2013-01-{day:02}")
        for missing in json.loads(found.stdout)
        for day in range(int(missing["first"][-2:]), int(missing["last"][-2:]) + 1)
    }
    return found.returncode, listed, found.stderr


@pytest.mark.timeout(3600)
def test_after_each_kill_missing_lists_what_is_not_as_an_undisturbed_run_leaves_it(
    sample_landing, tmp_path
):
    landing = copy_days(sample_landing, tmp_path / "landing", first=FIRST, count=8)
    undisturbed = Project(tmp_path / "undisturbed", landing)
    undisturbed.root.mkdir()
    begun = time.monotonic()
    run = undisturbed.materialize(*TABLES, partitions=RANGE)
    lasts = time.monotonic() - begun
    assert run.returncode == 0, run.stdout + run.stderr
    expected = undisturbed.read_checksums()
    assert len(expected) == 18

    moments = random.Random(SEED)
    project = Project(tmp_path / "killed", landing, (("BACKFILL_CHUNK_PARTITIONS", "2"),))
    project.root.mkdir()
    for kill in range(KILLS):
        after_seconds = moments.uniform(0, 1.2 * lasts)
        materialize_and_kill(project, after_seconds=after_seconds)
        exact = project.read_checksums()
        where = f"kill {kill} after {after_seconds:.1f} of {lasts:.1f} s"
        assert exact.items() <= expected.items(), f"{where}: something half-done can be read"
        code, missing, output = list_missing(project)
        assert "in progress" not in output, f"{where}: {output}"
        assert {*expected} - {*exact} <= missing, f"{where}: {output}"
        assert code == (1 if missing else 0), f"{where}: {output}"

    confirm(project.materialize(*TABLES, partitions=RANGE))
    assert project.read_checksums() == expected
    assert list_missing(project)[:2] == (0, set())
