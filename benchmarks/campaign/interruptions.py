"""Runs as processes, and what happens to them on the way."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from backfill_engine_tests.commands import Project

_MOST_SECONDS = 300.0
_ORPHANS_SECONDS = 120.0


@dataclass(frozen=True)
class Interruption:
    """What a signal is sent to, in the course of a run.

    Attributes:
        victims: `shell` is the command's process, `run` the one that executes, `java` its JVM,
            `tree` all of them.
        signal: which.
        stopped_seconds: after so many they go on, if the signal stops them.
    """

    victims: str
    signal: signal.Signals
    stopped_seconds: float = 0.0

    def __str__(self) -> str:
        """Names it."""
        return f"{self.signal.name} to {self.victims}"


_SIGNALS = (
    *((signal.SIGKILL, victims) for victims in ("shell", "run", "java", "tree", "tree")),
    *((signal.SIGTERM, victims) for victims in ("shell", "run", "java", "tree")),
    *((signal.SIGSTOP, victims) for victims in ("run", "java", "tree")),
    (signal.SIGINT, "shell"),
)


def draw_interruption(moments: random.Random) -> Interruption:
    """Draws one at random."""
    sent, victims = moments.choice(_SIGNALS)
    return Interruption(victims, sent, moments.uniform(2, 12) if sent == signal.SIGSTOP else 0.0)


@dataclass
class FinishedRun:
    """How a run ended.

    Attributes:
        code: exit code; negative for a signal; None if it had to be ended.
        seconds: that it took.
        output: what it printed.
        orphans: names of processes that had to be killed after it.
    """

    code: int | None
    seconds: float
    output: str
    orphans: list[str] = field(default_factory=list)


def run(
    project: Project,
    command: Sequence[str],
    events: Sequence[tuple[float, Callable[[subprocess.Popen[bytes]], None]]] = (),
) -> FinishedRun:
    """Runs a command; events happen when their seconds are over, unless it has ended before."""
    began = time.monotonic()
    with (project.root / "run.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env=project.environment,
            cwd=project.root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        for seconds, happen in sorted(events, key=lambda event: event[0]):
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, began + seconds - time.monotonic()))
            if process.poll() is not None:
                break
            happen(process)
        code = None
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(_MOST_SECONDS)
    finished = FinishedRun(code, time.monotonic() - began, "", _end_orphans(project))
    process.wait()
    finished.output = (project.root / "run.log").read_text(errors="replace")
    return finished


def interrupt(project: Project, process: subprocess.Popen[bytes], what: Interruption) -> int:
    """Sends the signal; returns to how many processes."""
    victims = [
        victim for victim in find_processes(project) if _is_victim(victim, process, what.victims)
    ]
    for victim in victims:
        with suppress(psutil.NoSuchProcess):
            victim.send_signal(what.signal)
    if what.stopped_seconds:
        time.sleep(what.stopped_seconds)
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.send_signal(signal.SIGCONT)
    return len(victims)


def find_processes(project: Project) -> list[psutil.Process]:
    """Finds all processes of a project that are up, by their environment."""
    home, found = project.environment["DAGSTER_HOME"], []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get("DAGSTER_HOME") == home:
                found.append(process)
    return found


def _is_victim(process: psutil.Process, shell: subprocess.Popen[bytes], victims: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        if victims == "shell":
            return process.pid == shell.pid
        if victims == "java":
            return "java" in process.name()
        if victims == "run":  # the command itself, if it executes the run
            return process.pid == shell.pid and bool({"materialize", "run"} & {*process.cmdline()})
    return victims == "tree"


def _end_orphans(project: Project) -> list[str]:
    """Waits for what a run has left behind, which may go on publishing; kills what stays."""
    deadline = time.monotonic() + _ORPHANS_SECONDS
    while (left := find_processes(project)) and time.monotonic() < deadline:
        time.sleep(0.3)
    names: list[str] = []
    for process in left:
        with suppress(psutil.NoSuchProcess):
            names.append(process.name())
            process.kill()
            process.wait(30)
    return names
