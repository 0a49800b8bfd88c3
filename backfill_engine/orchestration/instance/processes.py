"""What identifies a process beyond doubt, whether it still lives, and whether a daemon does.

A number alone does not: another process gets it after a restart, and containers count their own. So
a process is named by the boot of its machine, its PID namespace, its number, and the clock ticks
from that boot to its start, which no setting of the clock changes.
"""

import os
import signal
import sys
import time
from pathlib import Path

import psutil
from dagster import DagsterInstance

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
_DEAD_STATES = ("Z", "X")  # killed, and not yet waited for by its parent


def identify_process(pid: int) -> str | None:
    """Returns `MACHINE/PID/START` of a process that this one can see; None if there is none."""
    start = _read_start(pid)
    return None if start is None else f"{_identify_machine()}/{pid}/{start}"


def is_alive(identity: str) -> bool | None:
    """Tells whether a process lives; None if it can't be seen from here.

    That is one of another machine or another PID namespace, or of before the last boot.
    """
    machine, _, process = identity.rpartition("/")[0].rpartition("/")
    if machine != _identify_machine() or not process.isdigit():
        return None
    return identify_process(int(process)) == identity


def interrupt(identity: str) -> bool:
    """Interrupts a process as Ctrl-C does; returns whether it lives and could be."""
    if not is_alive(identity):
        return False
    try:
        os.kill(int(identity.split("/")[-2]), signal.SIGINT)
    except (PermissionError, ProcessLookupError):
        return False
    return True


def identify_own_process() -> str:
    """Identifies the process that asks."""
    identity = identify_process(os.getpid())
    assert identity is not None
    return identity


def _identify_machine() -> str:
    if sys.platform == "linux":
        return f"{_BOOT_ID.read_text().strip()}/{_NAMESPACE.readlink()}"
    return f"{psutil.boot_time():.0f}"


def _read_start(pid: int) -> str | None:
    if sys.platform != "linux":
        try:
            return f"{psutil.Process(pid).create_time():.2f}"
        except psutil.NoSuchProcess:
            return None
    try:
        # The name, in parentheses, may hold anything; proc(5) counts the state as field 3.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in _DEAD_STATES else fields[22 - 3]


NO_DAEMON = "no daemon is running in this Dagster home"
DAEMON_COMMANDS = "`dagster dev`, or for `dagster-daemon run`"

_SILENT_SECONDS = 300  # after which Dagster's own pages call a daemon not running


def has_daemon(instance: DagsterInstance) -> bool:
    """Tells whether the daemon that carries out backfills gave a sign of life lately."""
    beat = instance.get_daemon_heartbeats().get("BACKFILL")
    return beat is not None and time.time() - beat.timestamp < _SILENT_SECONDS
