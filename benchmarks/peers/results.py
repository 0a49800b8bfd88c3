"""The figures of `peers.json`: seconds by contestant and range, and on what machine. Pure."""

import datetime as dt
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.machine import Machine
from benchmarks.peers.contestants import CONTESTANTS, Contestant
from benchmarks.peers.environments import read_versions

Seconds = Mapping[tuple[str, int], Sequence[float]]
"""Wall seconds of each repeat, by contestant and days."""


def describe_measurement(
    machine: Machine, contestants: Iterable[Contestant], *, date: dt.date
) -> dict[str, Any]:
    """When and on what it was measured, and the versions of the peers, as plain JSON values."""
    names = sorted({contestant.environment for contestant in contestants if contestant.environment})
    return {
        "date": date.isoformat(),
        "machine": asdict(machine),
        "peers": {name: read_versions(name) for name in names},
    }


def build_flights(seconds: Seconds, unavailable: Mapping[str, str]) -> dict[str, Any]:
    """The section about flights: what each took, and why some took no part."""
    return {
        "runs": [
            {
                "contestant": contestant.name,
                "label": contestant.label,
                "checks": contestant.checks,
                "days": days,
                **summarize(taken),
            }
            for days in sorted({days for _, days in seconds})
            for contestant in CONTESTANTS
            if (taken := seconds.get((contestant.name, days)))
        ],
        "unavailable": dict(unavailable),
    }


def summarize(taken: Sequence[float]) -> dict[str, Any]:
    """The seconds of each repeat, their minimum and their median."""
    return {
        "seconds": [round(seconds, 2) for seconds in taken],
        "min": round(min(taken), 2),
        "median": round(statistics.median(taken), 2),
    }
