"""What results of every benchmark hold."""

from typing import Any

MACHINE: dict[str, Any] = {
    "cores": 2,
    "memory_gib": 4.0,
    "processor": "P",
    "system": "Linux",
    "java": 17,
    "python": "3.11.7",
    "packages": {"pyspark": "4.2.0"},
}
