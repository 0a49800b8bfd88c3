"""Commands as processes of their own, looked at while they run: their memory, and their CPU time.

What lives shorter than the time between two looks may be missed.
"""

import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.variants import Command

_LOOK_SECONDS = 0.2
_LAST_CHARACTERS = 4000


@dataclass
class Watched:
    """What was seen of a process and of all that it started.

    Attributes:
        own: most resident bytes of the process itself.
        workers: most of the Python processes that it started, together.
        jvm: most of its JVMs, together.
        folder: most bytes on disk of a folder.
        seconds: wall time.
        cpu_seconds: by process id.
    """

    own: int = 0
    workers: int = 0
    jvm: int = 0
    folder: int = 0
    seconds: float = 0.0
    cpu_seconds: dict[int, float] = field(default_factory=dict)


def watch_command(
    command: Command, *, scratch: Path, name: str, folder: Path | None = None
) -> Watched:
    """Runs a command to its end; one that fails ends this program, with the last that it said.

    Args:
        command: what to run.
        scratch: a folder for its output.
        name: what it is, for the message.
        folder: whose bytes to look at, too; it need not be there.
    """
    log, most = scratch / "output.txt", Watched()
    with log.open("wb") as output:
        began = time.perf_counter()
        running = psutil.Popen(
            list(command.arguments),
            cwd=command.folder,
            env=dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        while running.poll() is None:
            # What ends or is deleted between two looks isn't there to be counted.
            with suppress(psutil.NoSuchProcess, FileNotFoundError):
                _look(running, most, folder)
            time.sleep(_LOOK_SECONDS)
        most.seconds = time.perf_counter() - began
    if running.returncode:
        print(log.read_text(errors="replace")[-_LAST_CHARACTERS:], file=sys.stderr)
        sys.exit(f"error: {name} ended with exit code {running.returncode}")
    return most


def _look(running: psutil.Process, most: Watched, folder: Path | None) -> None:
    children = running.children(recursive=True)
    for process in (running, *children):
        times = process.cpu_times()
        most.cpu_seconds[process.pid] = times.user + times.system
    most.own = max(most.own, running.memory_info().rss)
    most.workers = max(most.workers, _measure_memory(children, "python"))
    most.jvm = max(most.jvm, _measure_memory(children, "java"))
    if folder is not None:
        most.folder = max(most.folder, _measure_folder(folder))


def _measure_memory(processes: Iterable[psutil.Process], program: str) -> int:
    return sum(
        process.memory_info().rss for process in processes if process.name().startswith(program)
    )


def _measure_folder(folder: Path) -> int:
    # Blocks, not length: a file that is being written may be longer than what it takes.
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
