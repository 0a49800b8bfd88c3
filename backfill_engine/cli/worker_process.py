"""The process in which `backfill-assets run` has its runs executed, seen from the shell's."""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from backfill_engine.cli.location import find_module
from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.backfills.foreground import RangeRun

_LAST_BYTES = 4000
_END_SECONDS = 30.0


@dataclass
class WorkerProcess:
    """Executes runs, see `cli.run_worker`; started with the first, and again if it has ended.

    Attributes:
        log: takes what the process prints; Dagster keeps what steps print for each run.
        process: None before the first run.
    """

    log: IO[bytes]
    process: "subprocess.Popen[bytes] | None" = None

    def start(self, request: RangeRun) -> None:
        """Begins a run; the one before it has ended.

        Raises:
            BackfillError: if the process ends at this moment.
        """
        if not self.is_alive():
            self.process = subprocess.Popen(
                [sys.executable, "-m", "backfill_engine.cli.run_worker", find_module()],
                stdin=subprocess.PIPE,
                stdout=self.log,
                stderr=subprocess.STDOUT,
                # Of its own, so that Ctrl-C reaches the shell's process alone, which knows what
                # is to be said to Dagster first.
                start_new_session=True,
            )
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request.to_json().encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_SECONDS)
            raise BackfillError(f"no run could be made: {self.describe_end()}") from None

    def is_alive(self) -> bool:
        """Tells whether the process is there."""
        return self.process is not None and self.process.poll() is None

    def interrupt(self) -> None:
        """Interrupts the run, as Ctrl-C does."""
        if self.process is not None and self.is_alive():
            self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Ends the process at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def describe_end(self) -> str:
        """Says how the process ended, and its last words."""
        code = self.process.poll() if self.process is not None else None
        self.log.seek(0, 2)
        self.log.seek(max(0, self.log.tell() - _LAST_BYTES))
        lines = [line.strip() for line in self.log.read().decode(errors="replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "it printed nothing")
        return f"exit {code}, last words: {last}"

    def close(self) -> None:
        """Lets the process end, which it does with its input."""
        if self.process is None:
            return
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            self.process.wait(_END_SECONDS)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.kill()


@contextmanager
def open_worker() -> Iterator[WorkerProcess]:
    """Opens a worker, and lets it end."""
    with tempfile.TemporaryFile() as log:
        worker = WorkerProcess(log)
        try:
            yield worker
        finally:
            worker.close()
