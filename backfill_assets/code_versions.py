"""Code versions: what a partition was computed by, as a hash."""

import hashlib
import importlib.metadata
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from backfill_assets.tables.declarations import Table

_PACKAGE = "backfill_assets"


def compute_code_version(compute: Callable[..., object], table: Table) -> str:
    """16 hexadecimal digits of SHA-256.

    Covers the source of the module that defines `compute`, of every transform module that it uses,
    directly or not, the declaration of the table, and the locked dependencies.
    """
    digest = hashlib.sha256()
    digest.update(inspect.getsource(compute).encode())
    for module in _find_transform_modules(sys.modules[compute.__module__], compute):
        digest.update(inspect.getsource(module).encode())
    digest.update(repr(table).encode())
    digest.update(_read_lock())
    return digest.hexdigest()[:16]


def _find_transform_modules(module: ModuleType, compute: Callable[..., object]) -> list[ModuleType]:
    """The transform modules reachable from the names that `compute` uses, by name."""
    found: dict[str, ModuleType] = {}
    names = inspect.unwrap(compute).__code__.co_names
    pending = [getattr(module, name, None) for name in names]
    while pending:
        name = getattr(pending.pop(), "__module__", None) or ""
        if name.startswith(f"{_PACKAGE}.transforms.") and name not in found:
            found[name] = sys.modules[name]
            pending.extend(vars(found[name]).values())
    return [found[name] for name in sorted(found)]


def _read_lock() -> bytes:
    """The lock file of the clone; where the package is installed without one, what is installed."""
    lock = Path(__file__).parents[1] / "requirements.lock"
    if lock.exists():
        return lock.read_bytes()
    installed = {f"{one.name}=={one.version}" for one in importlib.metadata.distributions()}
    return "\n".join(sorted(installed)).encode()
