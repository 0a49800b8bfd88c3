"""Commands at a terminal, as a person sees what they say."""

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path


def run_in_terminal(*arguments: str, columns: int) -> list[str]:
    """The lines that a process of its own writes to a terminal so wide, without colours."""
    program = str(Path(sys.executable).parent / "backfill-assets")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "dumb"}
    answer = subprocess.run([program, *arguments], stdout=theirs, env=environment, check=True)
    assert answer.returncode == 0
    os.close(theirs)
    with open(ours, "rb", buffering=0) as terminal:  # noqa: PTH123 (a descriptor)
        pieces: list[bytes] = []
        with contextlib.suppress(OSError):  # at its end, as nobody else has it open
            while piece := terminal.read(100_000):
                pieces.append(piece)
    return b"".join(pieces).decode().splitlines()
