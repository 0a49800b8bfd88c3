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

import copyreg
import dataclasses
import hashlib
import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from importlib.util import resolve_name
from pathlib import Path, PurePath
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from backfill_engine.publishing.code_texts import (
    CodeText,
    Kind,
    Name,
    find_class_text,
    find_file,
    find_function_text,
    find_module_text,
    find_origin,
    find_root,
    list_names,
    read_cells,
)
from backfill_engine.sources.source import Source
from backfill_engine.tables.columns import Column
from backfill_engine.tables.declarations import Table

_PLAIN = {type(None), bool, int, float, complex, str, bytes, bytearray, type(...)}
_ORDERED = (list, tuple)
_MAPPINGS = (dict, MappingProxyType)
_UNORDERED = (set, frozenset)
_HOLDERS = {
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    cached_property: ("func",),
    MethodType: ("__func__", "__self__"),
}

# What rows could depend on of a table that code names: rules and descriptions are not for readers.
_READ_OF = {
    Column: ("name", "type", "nullable"),
    Table: (
        *("layer", "name", "columns", "natural_key", "row_filter", "max_new_fields"),
        *("grain", "partition_by", "folder_by"),
    ),
}

_WHOLE_MODULE = {("globals",), ("eval",), ("exec",), ("sys", "modules")}
_OF_IMPORT = {"__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__path__"}


class ReachedCode:
    """All that was reached so far, as a digest.

    Attributes:
        libraries: name and version of each that was reached.
    """

    def __init__(self, within: "ReachedCode | None" = None) -> None:
        self.libraries: set[str] = within.libraries if within else set()
        self._digest = hashlib.sha256()
        # What is kept here stays alive, so that no other object takes its id.
        self._seen: dict[int, tuple[int, object]] = dict(within._seen) if within else {}
        self._open: set[int] = set(within._open) if within else set()
        self._modules: set[str] = set(within._modules) if within else set()
        self._named: set[tuple[int, Name]] = set(within._named) if within else set()
        self._pending: list[Callable[[], None]] = []
        self._root = within._root if within else ""

    def add(self, *values: object) -> None:
        """Adds values, and all that can be reached from them."""
        for value in values:
            self._write(value)
        while self._pending:
            self._pending.pop(0)()

    def add_function(self, function: Callable[..., object]) -> None:
        """Adds a function by its text, wherever it is from, and all that can be reached from it."""
        if isinstance(function, FunctionType):
            self._number(function)
            self._read_function(function)
        self.add(function)

    def add_declaration(self, declaration: object) -> None:
        """Adds all that a declaration says but for what it doesn't print."""
        self._write_fields(declaration, _list_printed(declaration))
        self.add()

    def add_library(self, module: str) -> None:
        """Adds the version of the library that a module is part of."""
        self._find_kind(module)

    def finish(self) -> str:
        """Returns the digest, in hexadecimal digits."""
        whole = self._digest.copy()
        whole.update(repr(sorted(self.libraries - {""})).encode())
        return whole.hexdigest()

    def _put(self, *texts: str) -> None:
        text = "".join(f"{len(text)}:{text}" for text in texts)
        self._digest.update(text.encode("utf-8", "surrogatepass"))

    def _write(self, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN:
            self._put(self._describe(value))
        elif kind in _ORDERED or kind in _MAPPINGS or kind in _UNORDERED:
            self._put(kind.__name__, str(len(value)))
            self._write_inside(value, self._write_parts)
        elif kind in _HOLDERS:
            self._put(kind.__name__)
            for name in _HOLDERS[kind]:
                self._write(getattr(value, name))
        elif isinstance(value, type):
            if self._number(value):
                self._write_class(value)
        elif isinstance(value, FunctionType):
            if self._number(value):
                self._write_function(value)
        else:
            self._write_object(value)

    def _describe(self, value: Any) -> str:
        # A long number has no decimal text.
        text = hex(value) if type(value) is int else repr(value)
        return f"{type(value).__name__} {self._cut_root(text)}"

    def _write_inside(self, value: Any, write: Callable[[Any], None]) -> None:
        """Writes what a value holds, once where the value is inside of itself."""
        if id(value) not in self._open:
            self._open.add(id(value))
            write(value)
            self._open.remove(id(value))

    def _write_parts(self, values: Any) -> None:
        if isinstance(values, _UNORDERED):
            self._write_unordered(values)
        elif isinstance(values, _MAPPINGS):
            for key, value in values.items():
                self._write(key)
                self._write(value)
        else:
            for value in values:
                self._write(value)

    def _write_unordered(self, values: Iterable[object]) -> None:
        texts: list[str] = []
        for value in values:
            if type(value) in _PLAIN:
                texts.append(self._describe(value))
            else:
                apart = ReachedCode(within=self)
                apart.add(value)
                texts.append(apart._digest.hexdigest())
        self._put(*sorted(texts))

    def _write_object(self, value: Any) -> None:
        kind = type(value)
        if isinstance(value, Enum):
            self._put(str(value.name))
            self._write(value.value)
            self._write(kind)
        elif isinstance(value, ModuleType):
            self._write_module(value)
        elif isinstance(value, PurePath):
            self._put("path", self._cut_root(str(value)))
        # Equal objects of Python's own, such as patterns, may be one or several: they are values.
        elif self._find_kind(kind.__module__) in (Kind.PYTHON, Kind.ENGINE):
            self._write_inside(value, self._write_instance)
        elif self._number(value):
            self._write_instance(value)

    def _number(self, value: object) -> bool:
        """Numbers an object, so that it is known when it comes again; tells whether it is new."""
        is_new = id(value) not in self._seen
        number, _ = self._seen.setdefault(id(value), (len(self._seen), value))
        self._put(f"#{number}")
        return is_new

    def _cut_root(self, text: str) -> str:
        return text.replace(self._root, "") if self._root else text

    def _find_kind(self, module: object) -> Kind:
        # Some classes of Python's own have a descriptor there.
        origin = find_origin(module if isinstance(module, str) else "builtins")
        self.libraries.add(origin.library)
        return origin.kind

    def _write_module(self, module: ModuleType) -> None:
        """Writes a module that is used as a whole."""
        if self._find_kind(module.__name__) is Kind.WRITTEN_HERE:
            self._write_whole(vars(module))
        else:
            self._put(module.__name__)

    def _write_whole(self, namespace: dict[str, Any]) -> None:
        if self._number(namespace):
            names = [(name,) for name in sorted(namespace) if not _is_dunder(name)]
            self._pending.append(lambda: self._read_names(namespace, {}, names))

    def _write_class(self, kind: type) -> None:
        if self._find_kind(kind.__module__) is Kind.WRITTEN_HERE:
            self._pending.append(lambda: self._read_class(kind))
        else:
            self._put(f"{kind.__module__}.{kind.__qualname__}")

    def _read_class(self, kind: type) -> None:
        namespace = vars(sys.modules[kind.__module__]) if kind.__module__ in sys.modules else {}
        self._root = find_root(namespace)
        text = find_class_text(kind, namespace.get("__file__") or "", namespace)
        if text:
            self._read_text(text, namespace, {}, set(namespace))
        for base in (type(kind), *kind.__bases__):
            self._write(base)
        if issubclass(kind, Enum):
            self._write({name: member.value for name, member in kind.__members__.items()})
            return
        for name, value in sorted(vars(kind).items()):
            if self._is_counted(name, value, namespace):
                self._put(name)
                self._write(value)

    def _is_counted(self, name: str, value: object, namespace: dict[str, Any]) -> bool:
        """Tells whether somebody wrote or set an attribute of a class; others are generated."""
        if not isinstance(value, FunctionType):
            return not _is_dunder(name)
        is_generated = "__file__" in namespace and value.__code__.co_filename.startswith("<")
        return not is_generated and self._find_kind(_find_module(value)) is Kind.WRITTEN_HERE

    def _write_function(self, function: FunctionType) -> None:
        if self._find_kind(_find_module(function)) is Kind.WRITTEN_HERE:
            self._pending.append(lambda: self._read_function(function))
            return
        self._put(f"{_find_module(function)}.{function.__code__.co_qualname}")
        # A decorator of a library has what it decorates in its closure, or says what that is.
        for value in (vars(function).get("__wrapped__"), *read_cells(function).values()):
            inner = value.values() if isinstance(value, dict) else (value,)
            self._write_unordered([one for one in inner if _is_code(one)])

    def _read_function(self, function: FunctionType) -> None:
        code, namespace = function.__code__, function.__globals__
        self._root = find_root(namespace)
        cells, looked_up = read_cells(function), set(list_names(code))
        text = find_function_text(code, namespace)
        if text:
            self._read_text(text, namespace, cells, looked_up)
        else:
            self._write_code(code)
            self._read_names(namespace, cells, [(name,) for name in sorted(looked_up)])
        for value in (function.__defaults__, function.__kwdefaults__, vars(function)):
            self._write(value)

    def _write_code(self, code: CodeType) -> None:
        """Writes code without a source, as it was compiled: each Python compiles it otherwise."""
        self._put(code.co_code.hex(), *code.co_names, *code.co_varnames)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._write_code(constant)
            else:
                self._write(constant)

    def _read_text(
        self,
        text: CodeText,
        namespace: dict[str, Any],
        cells: Mapping[str, Any],
        looked_up: Container[str],
    ) -> None:
        self._put(text.text)
        names = [name for name in text.names if name[0] in looked_up]
        self._read_names(namespace, cells, names)
        self._read_imports(text, namespace.get("__package__") or "")
        for callee, decorator in text.decorators:
            if not self._is_of_engine(namespace, callee):
                self._read_text(decorator, namespace, {}, namespace)

    def _is_of_engine(self, namespace: dict[str, Any], callee: Name) -> bool:
        found = self._resolve(namespace, callee) if callee and callee[0] in namespace else None
        module = getattr(found, "__module__", None)
        return isinstance(module, str) and find_origin(module).kind is Kind.ENGINE

    def _read_names(
        self, namespace: dict[str, Any], cells: Mapping[str, Any], names: Iterable[Name]
    ) -> None:
        self._root = find_root(namespace)
        for name in names:
            if name[0] in cells:
                self._put(".".join(name))
                self._write(self._resolve(cells, name))
            elif name in _WHOLE_MODULE:
                self._write_whole(namespace)
            elif name[0] in namespace and name[0] not in _OF_IMPORT:
                self._put(".".join(name))
                key = (id(namespace), name)
                if key not in self._named:
                    self._named.add(key)
                    self._write(self._resolve(namespace, name))

    def _resolve(self, namespace: Mapping[str, Any], name: Name) -> Any:
        """Finds what a name stands for: a library itself for whatever is in it."""
        value, inner = namespace[name[0]], name[1:]
        while isinstance(value, ModuleType) and inner:
            if find_origin(value.__name__).kind in (Kind.LIBRARY, Kind.PYTHON):
                return value
            members, attribute, *inner = vars(value), *inner
            value = members.get(attribute, members.get("__getattr__"))
        return value

    def _read_imports(self, text: CodeText, package: str) -> None:
        """Reads modules that a function imports: as a whole, and whether they are loaded or not."""
        for module, taken in text.imports:
            name = resolve_name(module, package) if module.startswith(".") else module
            for candidate in (name, f"{name}.{taken}"):
                if candidate not in self._modules:
                    self._modules.add(candidate)
                    self._read_module(candidate)

    def _read_module(self, name: str) -> None:
        file = find_file(name)
        if self._find_kind(name) is not Kind.WRITTEN_HERE or not file:
            return
        text = find_module_text(file)
        if text:
            package = name if PurePath(file).stem == "__init__" else name.rpartition(".")[0]
            self._put(text.text)
            self._read_imports(text, package)

    def _write_instance(self, value: Any) -> None:
        kind = type(value)
        self._write(kind)
        if kind.__module__.startswith("py4j") or value is os.environ:
            return
        self._find_kind(getattr(value, "__module__", None))
        attributes = getattr(value, "__dict__", {})
        if "__wrapped__" in attributes:
            self._write(attributes["__wrapped__"])
        elif dataclasses.is_dataclass(kind) and self._find_kind(kind.__module__) is Kind.ENGINE:
            self._write_fields(value, _READ_OF.get(kind) or _list_printed(value))
        else:
            self._write_state(value)

    def _write_fields(self, value: object, names: Iterable[str]) -> None:
        for name in names:
            self._put(name)
            self._write(getattr(value, name))

    def _write_state(self, value: Any) -> None:
        """Writes what an object would be made of again, as pickle sees it."""
        kind = type(value)
        try:
            reduce = copyreg.dispatch_table.get(kind)
            state = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception:
            return  # A lock, a session: what can't be made again has no value.
        for part in (state,) if isinstance(state, str) else state:
            if isinstance(part, Iterator):
                self._write(list(part))
            elif isinstance(part, dict):
                self._write({k: v for k, v in part.items() if not _is_cached_property(kind, k)})
            else:
                self._write(part)


def _find_module(function: FunctionType) -> str:
    # Not its `__module__`, which decorators take over from what they decorate.
    return function.__globals__.get("__name__") or ""


def _is_code(value: object) -> bool:
    return isinstance(value, FunctionType) or "__wrapped__" in getattr(value, "__dict__", {})


def _is_cached_property(kind: type, name: object) -> bool:
    return isinstance(name, str) and isinstance(getattr(kind, name, None), cached_property)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _list_printed(value: Any) -> list[str]:
    return [one.name for one in dataclasses.fields(value) if one.repr]


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
    reached.add_library("pyspark")
    reached.add_declaration(table)
    reached.add_function(compute)
    reached.add(landing, count_source)
    reached.add(*(hashlib.sha256(file.read_bytes()).hexdigest() for file in files))
    return reached.finish()[:16]
