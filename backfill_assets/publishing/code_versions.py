"""Code versions: what a partition was computed by, as a hash."""

import hashlib
import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import backfill_assets
from backfill_assets.tables.declarations import Table
from backfill_assets.tables.landings import Landing

_PACKAGE = "backfill_assets"


def compute_code_version(
    compute: Callable[..., object], table: Table, landing: Landing | None = None
) -> str:
    """Computes a code version: 16 hexadecimal digits of SHA-256.

    It covers `compute` and the functions of its own module that it uses, directly or not, every
    transform module that these use, the declarations of the table and of what lands, and the locked
    dependencies.
    """
    functions, modules = _find_used(compute)
    digest = hashlib.sha256()
    for used in (*functions, *modules):
        digest.update(inspect.getsource(used).encode())
    digest.update(repr((table, landing)).encode())
    digest.update(_read_lock())
    return digest.hexdigest()[:16]


def _find_used(compute: Callable[..., object]) -> tuple[list[FunctionType], list[ModuleType]]:
    """Finds the functions that `compute` uses of its module, and transform modules.

    The functions begin with `compute` itself; the modules are sorted by name.
    """
    own = sys.modules[compute.__module__]
    functions: list[FunctionType] = []
    modules: dict[str, ModuleType] = {}
    pending: list[object] = [inspect.unwrap(compute)]
    while pending:
        used = pending.pop()
        name = getattr(used, "__module__", None) or ""
        if name.startswith(f"{_PACKAGE}.transforms.") and name not in modules:
            modules[name] = sys.modules[name]
            pending.extend(vars(modules[name]).values())
        elif isinstance(used, FunctionType) and name == own.__name__ and used not in functions:
            functions.append(used)
            pending.extend(
                getattr(own, used_name, None) for used_name in _list_names(used.__code__)
            )
    return functions, [modules[name] for name in sorted(modules)]


def _list_names(code: CodeType) -> Iterator[str]:
    """Yields the names that code uses, also those of the lambdas and comprehensions inside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _list_names(constant)


@cache
def _read_lock() -> bytes:
    """Reads the lock file of the clone.

    Where the package is installed without one, lists what is installed.
    """
    lock = Path(backfill_assets.__file__).parents[1] / "requirements.lock"
    if lock.exists():
        return lock.read_bytes()
    installed = {
        f"{distribution.name}=={distribution.version}"
        for distribution in importlib.metadata.distributions()
    }
    return "\n".join(sorted(installed)).encode()
