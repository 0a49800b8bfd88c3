"""Follows what a computation can reach, and makes one digest of it.

From a function it goes on to what the function looks up: globals, attributes of modules, closure,
defaults; from a class to its bases, attributes and methods; from a value to what the value is made
of. Code that is written here counts by its text, values by what they hold, a library by its
version, and the engine and Python itself by the names that are used of them.

A code version is a hash of what a partition was computed by. It covers what a computation can reach
in code that is no installed library: functions, classes, constants by value, closures, default
arguments, modules that a function imports; and the files that it declares. It differs neither
between two checkouts or processes nor by comments, docstrings and layout.

- An installed library counts by its version, if the computation reaches it. Spark always counts.
- The engine, which plans, reads, writes and audits, counts for no table: `code_texts` has its
  rooms. What is declared of the table itself counts, with its rules, but no column's comment.
- A module that a function imports is read as text, and counts as a whole with all that it imports:
  it needn't be loaded, and is not loaded for this.
- A value counts as it is when the version is computed, before any run. One that can't be pickled,
  such as a lock, counts by its type.
- Code whose source isn't at hand counts as it was compiled, which each Python does otherwise.
- What a name in a text decides can't be followed (`getattr(module, name)`): then all of the module
  counts. Methods of what a function is given are the engine's or Spark's.
"""

import copy
import copyreg
import hashlib
import os
import sys
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from importlib.util import resolve_name
from pathlib import Path, PurePath
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from backfill_engine.publishing.code_texts import (
    ENGINE,
    WRITTEN_HERE,
    CodeText,
    find_file,
    find_module_text,
    find_origin,
    find_texts,
    list_names,
    resolve,
)
from backfill_engine.sources.source import Source
from backfill_engine.tables.columns import Column
from backfill_engine.tables.declarations import Table

_PLAIN = {type(None), bool, int, float, complex, str, bytes, bytearray, type(...)}

# What an object holds that counts, where that isn't what pickle says.
_HELD = {
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    cached_property: ("func",),
    MethodType: ("__func__", "__self__"),
    CodeType: ("co_code", "co_names", "co_varnames", "co_consts"),
    # Of a table that code names: no row of a reader depends on rules and descriptions.
    Column: ("name", "type", "nullable"),
    Table: (
        *("layer", "name", "columns", "natural_key", "row_filter", "max_new_fields"),
        *("grain", "partition_by", "folder_by"),
    ),
}

_WHOLE_MODULE = {("globals",), ("eval",), ("exec",), ("sys", "modules")}
_OF_IMPORT = {"__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__path__"}


def compute_code_version(
    compute: Callable[..., object],
    table: Table,
    landing: Source | None = None,
    *,
    count_source: Callable[..., object] | None = None,
    files: Sequence[Path] = (),
) -> str:
    """Computes a code version: 16 hexadecimal digits of SHA-256.

    Args:
        compute: of the rows.
        table: as declared.
        landing: what is read of the landing zone, as declared.
        count_source: of the records that each partition must account for.
        files: that `compute` reads, by their contents.
    """
    reached = ReachedCode()
    reached.add(find_origin("pyspark"), _read_printed(table))
    reached.add_function(compute)
    reached.add(landing, count_source)
    reached.add(*(hashlib.sha256(file.read_bytes()).hexdigest() for file in files))
    return reached.finish()[:16]


class ReachedCode:
    """All that was reached so far, as a digest.

    Each value is described by a text: a plain value by what it is; code that is written here by a
    number, in the order in which it is read; all else by a digest of its parts.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        # The values that are kept here stay alive, so that no other object takes an id of theirs.
        self._described: dict[int | str, tuple[object, str]] = {}
        self._to_read: list[Any] = []
        self._count_read = 0
        self._root = ""

    def add(self, *values: object) -> None:
        """Adds values, and all that can be reached from them."""
        self._put(*map(self._describe, values))
        while self._count_read < len(self._to_read):
            self._count_read += 1
            self._read(self._to_read[self._count_read - 1])

    def add_function(self, function: Callable[..., object]) -> None:
        """Adds a function by its text, wherever it is from, and all that can be reached from it."""
        if isinstance(function, FunctionType):
            self._describe_by_number(function)
        self.add(function)

    def finish(self) -> str:
        """Returns the digest, in hexadecimal digits."""
        return self._digest.hexdigest()

    def _put(self, *texts: str) -> None:
        self._digest.update(ascii(texts).encode())

    def _describe(self, value: Any) -> str:
        if type(value) in _PLAIN:
            # A long number has no decimal text.
            text = hex(value) if type(value) is int else ascii(value)
            return f"{type(value).__name__} {text.replace(self._root, '')}"
        if id(value) not in self._described:
            if _is_written_here(value):
                code = vars(value) if isinstance(value, ModuleType) else value
                return self._describe_by_number(code)
            self._described[id(value)] = value, "inside of itself"
            text = ascii([type(value).__name__, *self._describe_parts(value)])
            self._described[id(value)] = value, hashlib.sha256(text.encode()).hexdigest()
        return self._described[id(value)][1]

    def _describe_by_number(self, code: Any) -> str:
        """Describes code by a number; it is read later.

        Args:
            code: a function, a class, the globals of a module, or the name of a module that a
                function imports.
        """
        key = code if isinstance(code, str) else id(code)
        if key not in self._described:
            self._described[key] = code, f"#{len(self._to_read)}"
            self._to_read.append(code)
        return self._described[key][1]

    def _describe_parts(self, value: Any) -> Iterable[str]:
        kind = type(value)
        if kind in (list, tuple):
            return map(self._describe, value)
        if kind in (dict, MappingProxyType):
            return [self._describe(part) for pair in value.items() for part in pair]
        if kind in (set, frozenset):
            return sorted(map(self._describe_apart, value))
        if isinstance(value, PurePath):
            return [self._describe(str(value))]
        if isinstance(value, FunctionType | type | ModuleType):
            name, wrapped = getattr(value, "__qualname__", ""), []
            if isinstance(value, FunctionType):
                name, wrapped = value.__code__.co_qualname, _list_wrapped(value)
            # Python's own modules move what they have into `_collections` and the like, and back.
            module = _find_module(value)
            own = sorted(map(self._describe_apart, wrapped))
            return [find_origin(module), module.lstrip("_"), name, *own]
        return map(self._describe, (kind, *self._list_held(value)))

    def _describe_apart(self, value: object) -> str:
        """Describes a value with all that it reaches, by no number that depends on others."""
        if type(value) in _PLAIN:
            return self._describe(value)
        apart = copy.copy(self)
        apart._digest = hashlib.sha256()
        apart._described = dict(self._described)
        apart._to_read, apart._count_read = list(self._to_read), len(self._to_read)
        apart.add(value)
        return apart._digest.hexdigest()

    def _list_held(self, value: Any) -> Iterable[object]:
        """Lists what an object holds: mostly what it would be made of again, as pickle sees it."""
        kind = type(value)
        if isinstance(value, Enum):
            return value.name, value.value
        if kind in _HELD:
            return [getattr(value, name) for name in _HELD[kind]]
        if kind.__module__.startswith("py4j") or value is os.environ:
            return ()
        if "__wrapped__" in getattr(value, "__dict__", {}):
            return (value.__wrapped__,)
        if is_dataclass(kind) and find_origin(kind.__module__) == ENGINE:
            return _read_printed(value).items()
        try:
            reduce = copyreg.dispatch_table.get(kind)
            state = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception:
            return ()  # A lock, a session: what can't be made again has no value.
        if isinstance(state, str):
            return find_origin(_find_module(value)), state
        return [_drop_cached(kind, part) for part in state]

    def _read(self, code: Any) -> None:
        """Reads what was described by a number, and describes all that it uses."""
        cells: dict[str, Any] = {}
        if isinstance(code, FunctionType):
            namespace, cells = code.__globals__, _read_cells(code)
            texts = find_texts(code.__code__, namespace)
            held = [code.__defaults__, code.__kwdefaults__, vars(code)]
            if not texts:
                texts = [_pretend_text(list_names(code.__code__))]
                held.append(code.__code__)
        elif isinstance(code, type):
            namespace = getattr(sys.modules.get(code.__module__), "__dict__", {})
            texts = find_texts(code, namespace)
            attributes = sorted(getattr(code, "__members__", vars(code)).items())
            written = {
                name: value for name, value in attributes if _is_written(name, value, namespace)
            }
            held = [type(code), *code.__bases__, written]
        elif isinstance(code, str):
            origin, file = find_origin(code), find_file(code)
            is_package = PurePath(file).stem == "__init__"
            namespace = {"__package__": code if is_package else code.rpartition(".")[0]}
            texts = find_module_text(file) if origin == WRITTEN_HERE else []
            held = [origin]
        else:
            namespace, held = code, []
            texts = [_pretend_text(name for name in code if not _is_dunder(name))]
        self._root = ascii(_find_root(namespace))[1:-1]
        scope = ChainMap(cells, namespace)
        for text in texts:
            self._put(text.text)
            for name in text.names:
                if name in _WHOLE_MODULE:
                    self._put(self._describe_by_number(namespace))
                elif name[0] in scope and name[0] not in _OF_IMPORT:
                    self._put(".".join(name), self._describe(resolve(scope, name)))
            for module in text.imports:
                name = resolve_name(module, namespace.get("__package__") or "")
                self._put(self._describe_by_number(name))
        self._put(*map(self._describe, held))


def _find_module(value: object) -> str:
    # Not a function's `__module__`, which decorators take over from what they decorate.
    if isinstance(value, FunctionType):
        module = value.__globals__.get("__name__")
    else:
        module = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", None)
    # Some classes of Python's own have a descriptor there.
    return module if isinstance(module, str) else "builtins"


def _is_written_here(value: object) -> bool:
    is_code = isinstance(value, FunctionType | type | ModuleType)
    return is_code and find_origin(_find_module(value)) == WRITTEN_HERE


def _pretend_text(names: Iterable[str]) -> CodeText:
    return CodeText("", tuple((name,) for name in sorted(set(names))))


def _find_root(namespace: Mapping[str, Any]) -> str:
    """Finds the folder from which a module is imported, by its globals; empty if there is none.

    It differs from one checkout to the next, and no row depends on it.
    """
    file = str(namespace.get("__file__") or "")
    module = str(namespace.get("__name__") or "").replace(".", "/")
    return file.removesuffix(".py").removesuffix("/__init__").removesuffix(f"/{module}")


def _read_cells(function: FunctionType) -> dict[str, Any]:
    """Reads a function's closure, by name; without what isn't set yet."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if cell != CellType()}


def _list_wrapped(function: FunctionType) -> list[object]:
    """Lists what a decorator of a library decorates: it says so, or has it in its closure."""
    values = [vars(function).get("__wrapped__"), *_read_cells(function).values()]
    values += [inner for value in values if isinstance(value, dict) for inner in value.values()]
    return [
        value
        for value in values
        if isinstance(value, FunctionType) or "__wrapped__" in getattr(value, "__dict__", {})
    ]


def _drop_cached(kind: type, part: object) -> object:
    """Drops cached properties from a part of an object's state."""
    if isinstance(part, dict):
        kept = [
            name for name in part if not isinstance(getattr(kind, str(name), None), cached_property)
        ]
        return {name: part[name] for name in kept}
    return list(part) if isinstance(part, Iterator) else part


def _is_written(name: str, value: object, namespace: dict[str, Any]) -> bool:
    """Tells whether somebody wrote or set an attribute of a class; others are generated."""
    if isinstance(value, FunctionType) and _is_dunder(name):
        return value.__code__.co_filename == namespace.get("__file__", value.__code__.co_filename)
    return not _is_dunder(name)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _read_printed(declaration: Any) -> dict[str, object]:
    """Reads what a declaration says, by field, but for what it doesn't print."""
    return {
        field.name: getattr(declaration, field.name) for field in fields(declaration) if field.repr
    }
