"""Commands in processes of their own, for what is said of their time."""

import math
import os
import resource
import subprocess
import sys
from collections.abc import Mapping

_LOOKS = 3

RUN_COMMAND_WITHOUT_JVM = """
import os
os.environ["JAVA_HOME"] = os.environ["SPARK_HOME"] = "/dev/null"
from backfill_engine.cli import main
main()
"""
"""Runs a command that needs all definitions, and with them pyspark, but must not start Spark."""


def run_python(environment: Mapping[str, str], script: str, *arguments: str) -> tuple[float, str]:
    """CPU seconds and output of a Python process that knows where the pipeline is."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, run.stdout


def time_command(environment: Mapping[str, str], *arguments: str, most: float) -> tuple[float, str]:
    """CPU time of a command beyond importing the definitions, in times theirs; and its output.

    A machine that is slow is slow at both. It is the least of three, unless one before is below
    `most`: what else the machine does adds.
    """
    least, output = math.inf, ""
    for _ in range(_LOOKS):
        imports, _ = run_python(environment, "import backfill_assets.definitions")
        seconds, output = run_python(environment, RUN_COMMAND_WITHOUT_JVM, *arguments)
        least = min(least, seconds / imports - 1)
        if least < most:
            break
    return least, output
