"""Where code is from: written here, of the engine, or of an installed library, and which one."""

import importlib.metadata
import importlib.util
import sys
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import DistributionFinder
from pathlib import Path
from typing import Any

_ENGINE = "backfill_engine"

DECIDE_ROWS = frozenset({"filters", "transforms"})
"""Rooms of the engine whose code decides rows if a computation reaches it. All else of the engine
plans, reads, writes and audits, whatever is computed."""


class Kind(Enum):
    """How code counts."""

    WRITTEN_HERE = "by its text"
    LIBRARY = "by its version"
    ENGINE = "by its name; it is the same for all tables"
    PYTHON = "by its name"


@dataclass(frozen=True)
class Origin:
    """Where a module is from.

    Attributes:
        kind: how its code counts.
        library: name and version of the library that it is part of; empty if of none.
    """

    kind: Kind
    library: str = ""


def find_origin(module: str) -> Origin:
    """Finds where a module is from, by its name; nothing is imported."""
    return _find_origin(module, find_file(module))


@cache
def _find_origin(module: str, file: str) -> Origin:
    top, _, rest = module.partition(".")
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return Origin(Kind.PYTHON)
    if top == _ENGINE:
        decides = rest.partition(".")[0] in DECIDE_ROWS
        return Origin(Kind.WRITTEN_HERE if decides else Kind.ENGINE)
    for folder in Path(file).parents if file else ():
        if folder.name in ("site-packages", "dist-packages"):
            return Origin(Kind.LIBRARY, _find_library(top, file, folder))
    return Origin(Kind.WRITTEN_HERE)


def find_file(module: str) -> str:
    """Finds the file of a module without importing it; empty where there is none."""
    if (loaded := sys.modules.get(module)) is not None:
        return getattr(loaded, "__file__", None) or ""
    path, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(path)
    except (ImportError, ValueError):
        return ""
    for part in inner:
        path = f"{path}.{part}"
        places = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(path, places) if places else None
    return (spec.origin if spec else None) or ""


def find_root(namespace: dict[str, Any]) -> str:
    """Finds the folder from which a module is imported, by its globals; empty if there is none.

    It differs from one checkout to the next, and no row depends on it.
    """
    return _find_root(namespace.get("__file__") or "", namespace.get("__name__") or "")


@cache
def _find_root(file: str, name: str) -> str:
    if not file:
        return ""
    path = Path(file)
    levels = name.count(".") + (path.stem == "__init__")
    root = path.parents[min(levels, len(path.parents) - 1)]
    return "" if root == root.parent else str(root)


def _find_library(top: str, file: str, folder: Path) -> str:
    """Finds name and version of the installed distribution that a file belongs to."""
    path = Path(file).relative_to(folder).as_posix()
    # Most are called as what they install; else all are looked through.
    for name in (top, None):
        for distribution, record in _read_records(name, folder):
            if f"\n{path}," in record:
                return distribution
    return f"{top}=={getattr(sys.modules.get(top), '__version__', '')}"


@cache
def _read_records(name: str | None, folder: Path) -> list[tuple[str, str]]:
    """Reads what is installed in a folder, of one name or all: name and version, list of files."""
    context = DistributionFinder.Context(name=name, path=[str(folder)])
    return [
        (f"{found.name}=={found.version}", f"\n{found.read_text('RECORD') or ''}")
        for found in importlib.metadata.distributions(context=context)
    ]
