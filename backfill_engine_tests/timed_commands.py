"""Commands in processes of their own, for what is said of their time."""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping

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
