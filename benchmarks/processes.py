"""Commands as processes of their own, timed."""

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.variants import Command

_LAST_CHARACTERS = 4000


def time_command(command: Command, *, scratch: Path, name: str) -> float:
    """Runs a command to its end; one that fails ends this program, with the last that it said.

    Args:
        command: what to run.
        scratch: a folder for its output.
        name: what it is, for the message.

    Returns:
        Wall seconds.
    """
    with (scratch / "output.txt").open("w+") as output:
        began = time.perf_counter()
        process = subprocess.run(
            command.arguments,
            cwd=command.folder,
            env=dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
        seconds = time.perf_counter() - began
        if process.returncode != 0:
            output.seek(0)
            print(output.read()[-_LAST_CHARACTERS:], file=sys.stderr)
            sys.exit(f"error: {name} ended with exit code {process.returncode}")
    return seconds
