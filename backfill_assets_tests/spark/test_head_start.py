"""Java is started ahead where a run is to be executed, and is used where its settings fit."""

import subprocess
import sys
from pathlib import Path

import pytest

from backfill_assets.spark.head_start import executes_run

# In a process of its own, as one has one Java for good.
_SESSION = """
import os, sys, psutil
from backfill_assets.resources import SparkResource
from backfill_assets.spark.head_start import start_java

start_java()
(ahead,) = psutil.Process().children()
status = open(f"/proc/{ahead.pid}/status").read()
(ignored,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
assert int(ignored, 16) & 2, "Ctrl-C would end it"
resource = SparkResource()
resource.expect_input(int(sys.argv[1]))
session = resource.spark_session
assert session.range(3).count() == 3
own = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
assert not [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")]
print(own == ahead.pid, psutil.pid_exists(ahead.pid))
"""

_CHILD = """
import multiprocessing, sys

sys.argv = sys.argv[1:]
code = (
    "import sys; from multiprocessing import parent_process; "
    "from backfill_assets.spark.head_start import executes_run; "
    "print(executes_run(sys.argv, is_child=parent_process() is not None))"
)
child = multiprocessing.get_context("spawn").Process(target=exec, args=(code,))
child.start()
child.join()
sys.exit(child.exitcode)
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("dagster asset materialize -m backfill_assets.definitions --select *", True),
        ("dagster api execute_run {}", True),
        ("dagster api grpc --port 4000", False),
        ("dagster asset list", False),
        ("dagster-webserver", False),
        ("backfill-assets plan --from asset --to materialize", False),
    ],
)
def test_only_who_executes_a_run_starts_java(command: str, expected: bool) -> None:  # noqa: FBT001
    assert executes_run(command.split(), is_child=False) is expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("dagster api grpc --port 4000", True),
        ("dagster asset materialize -m backfill_assets.definitions --select *", False),
        ("pytest -n 2", False),
    ],
)
def test_of_children_only_the_code_servers_execute_runs(command: str, expected: bool) -> None:  # noqa: FBT001
    # In a process of its own, which takes the command line of its parent as its own.
    told = [sys.executable, "-c", _CHILD, *command.split()]
    ended = subprocess.run(told, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == [str(expected)]


@pytest.mark.parametrize(("input_bytes", "used"), [(0, True), (2**30, False)])
@pytest.mark.usefixtures("spark")  # What sessions need is fetched and made by then.
def test_a_session_uses_the_java_that_was_started_with_its_settings(
    input_bytes: int,
    used: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _SESSION, str(input_bytes)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == [str(used), str(used)]
