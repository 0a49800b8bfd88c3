"""What a person at a shell sees when something can't be: the message, and it is the last line."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backfill_engine_tests.commands import Project
from backfill_engine_tests.pipeline.landing_zone import LandingZone
from backfill_engine_tests.pipeline.running import RAW, list_days

FIRST, BAD = list_days(1, 2)
NO_SPARK = ("BACKFILL_JARS", "/no/such/folder")
"""Whatever starts Spark fails for this, and says so."""


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Two days, of which the second is bad."""
    zone = LandingZone(tmp_path / "landing")
    zone.land([FIRST, BAD])
    zone.add_lines(BAD, *["{"] * 5)
    return zone.root


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with little room, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_the_console_script_says_one_line(tmp_path: Path, landing: Path) -> None:
    project = Project(tmp_path, landing, (("BACKFILL_WAREHOUSE", "nosuch://x/y"),))
    answer = project.run("backfill-assets", "history", RAW)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("error: nosuch://x/y: not all of Spark, Arrow and delta-rs")
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("WAREHOUSE", "nosuch://x/y", "error: nosuch://x/y: not all of Spark, Arrow and delta-rs"),
        ("WAREHOUSE", "/dev/null/x", "error: nothing can be below /dev/null/x, as /dev/null is no"),
        ("LANDING", "/dev/null/x", "error: nothing can be below /dev/null/x, as /dev/null is no"),
        ("SPARK_CONF", "{", "BACKFILL_SPARK_CONF: must be a JSON object of texts, such as"),
    ],
)
def test_a_run_says_it_before_spark_starts(
    tmp_path: Path, landing: Path, name: str, value: str, message: str
) -> None:
    project = Project(tmp_path, landing, (NO_SPARK, (f"BACKFILL_{name}", value)))
    run = project.materialize(RAW, partitions=f"{FIRST}...{BAD}")
    assert run.returncode == 1
    assert message in run.stderr.splitlines()[-1]
    assert not project.warehouse.exists()


@pytest.mark.slow
@pytest.mark.by_hand
def test_the_last_that_a_person_sees_is_what_was_withheld(tmp_path: Path, landing: Path) -> None:
    run = Project(tmp_path, landing).materialize(RAW, partitions=f"{FIRST}...{BAD}")
    assert run.returncode == 1
    lines = run.stderr.rpartition("\nerror: ")[2].splitlines()
    assert lines[:2] == [
        "raw/flights: withheld 1 of 2 partitions (the other 1 are published):",
        f"  {BAD}: partition_is_valid: rejects = 0.04 (at most 0.01 of the records)",
    ]
    heads = [line for line in lines[2:] if not line.startswith("  ")]
    assert heads == [
        "Once the source is mended, go on with them and what waits for them:",
        "Or publish them as they are, with your reason in place of WHY:",
    ]


def test_a_full_disk_is_named_before_anything_starts(
    tmp_path: Path, landing: Path, small_disk: Path
) -> None:
    (small_disk / "filler").write_bytes(bytes(2**20 - 4096))
    settings = (NO_SPARK, ("BACKFILL_WAREHOUSE", str(small_disk / "warehouse")))
    run = Project(tmp_path, landing, settings).materialize(RAW, partitions=f"{FIRST}...{FIRST}")
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(
        f"error: nothing can be written to {small_disk} (No space left on device): make room"
    )
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def test_a_read_only_warehouse_is_read_and_not_written(
    tmp_path: Path, landing: Path, small_disk: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    settings = (NO_SPARK, ("BACKFILL_WAREHOUSE", str(small_disk / "warehouse")))
    project = Project(tmp_path, landing, settings)
    assert project.run("backfill-assets", "status", "--watermark", "--json").stdout == "[]\n"
    run = project.materialize(RAW, partitions=f"{FIRST}...{FIRST}")
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith(
        f"error: nothing can be written to {small_disk} (Read-only file system): make room, let"
    )


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_disk_that_fills_up_meanwhile_is_named_too(
    tmp_path: Path, landing: Path, small_disk: Path
) -> None:
    days = list_days(1, 20)
    LandingZone(landing).land(days)
    (small_disk / "filler").write_bytes(bytes(2**20 - 80 * 1024))
    settings = (("BACKFILL_WAREHOUSE", str(small_disk / "warehouse")),)
    project = Project(tmp_path, landing, settings)
    run = project.materialize(RAW, partitions=f"{days[0]}...{days[-1]}")
    assert run.returncode == 1
    last = run.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    system = r"No space left on device( \(os error 28\))?"
    assert re.search(f"{system}: the disk is full: make room, then run it again$", last), last
    (small_disk / "filler").unlink()
    again = project.materialize(RAW, partitions=f"{days[0]}...{days[-1]}")
    assert again.returncode == 0, again.stderr
