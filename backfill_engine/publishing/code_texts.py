"""The text of code as far as it decides what the code does, and the names that it uses.

Made of the syntax tree of the source, so that comments, docstrings, annotations of functions, the
layout and the place of the file are no part of it, and each supported Python makes the same of it.
"""

import ast
import importlib.metadata
import importlib.util
import linecache
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from importlib.metadata import DistributionFinder
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

Name = tuple[str, ...]
"""A name, taken apart at its dots."""

_UNSEEN = {"ctx", "type_comment", "kind", "returns", "type_params", "decorator_list"}
_IMPORTERS = ("import_module", "__import__")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class CodeText:
    """What a piece of code says.

    Attributes:
        text: without anything that changes nothing.
        names: that it reads, local ones included, sorted.
        imports: modules that it imports, each with what is taken from it (empty for the module
            itself), sorted; a relative one begins with its dots.
        decorators: of a function or class, first one first, with their names; no part of `text`.
    """

    text: str
    names: tuple[Name, ...]
    imports: tuple[tuple[str, str], ...]
    decorators: tuple[tuple[Name, "CodeText"], ...] = ()


def find_function_text(code: CodeType, namespace: dict[str, Any]) -> CodeText | None:
    """Finds the text of a function or lambda; None where its source isn't at hand.

    Of lambdas that begin on one line it is the text of all: what tells them apart is no part of
    what was compiled.

    Args:
        code: of the function.
        namespace: the globals of the function's module.
    """
    source = _read_source(code.co_filename, namespace)
    return source.find_function(code) if source else None


def find_class_text(kind: type, filename: str, namespace: dict[str, Any]) -> CodeText | None:
    """Finds the text of a class; None where its source isn't at hand.

    Args:
        kind: the class.
        filename: of its module.
        namespace: the globals of its module.
    """
    source = _read_source(filename, namespace)
    return source.find_definition(kind.__qualname__, None) if source else None


def find_module_text(filename: str) -> CodeText | None:
    """Finds the text of a whole module, which needn't be imported; None if there is no source."""
    source = _read_source(filename, {})
    return _write([source.tree]) if source else None


def list_names(code: CodeType) -> Iterator[str]:
    """Yields the names that code looks up outside of itself; also those of the code inside it."""
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from list_names(constant)


def read_cells(function: FunctionType) -> dict[str, Any]:
    """Reads a function's closure, by name; without what isn't set yet."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


class _Source:
    """A module's source, with an index of what it defines."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self._definitions: dict[str, list[_Definition]] = {}
        self._texts: dict[tuple[int, ...], CodeText] = {}
        self._enter(self.tree, "")

    def find_function(self, code: CodeType) -> CodeText | None:
        if code.co_name != "<lambda>":
            return self.find_definition(code.co_qualname, code.co_firstlineno)
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, ast.Lambda))
        return self._find_text([node for node in nodes if node.lineno == code.co_firstlineno])

    def find_definition(self, name: str, line: int | None) -> CodeText | None:
        """Finds what is defined by a name; where that is several times, on this line if any is."""
        found = self._definitions.get(name, [])
        exact = [node for node in found if line in (node.lineno, *_list_decorator_lines(node))]
        return self._find_text(exact or found)

    def _find_text(self, nodes: list[Any]) -> CodeText | None:
        key = tuple(map(id, nodes))
        if nodes and key not in self._texts:
            self._texts[key] = _write(nodes)
        return self._texts.get(key)

    def _enter(self, node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Definition):
                name = f"{prefix}{child.name}"
                self._definitions.setdefault(name, []).append(child)
                inside = "." if isinstance(child, ast.ClassDef) else ".<locals>."
                self._enter(child, f"{name}{inside}")
            elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                self._enter(child, prefix)


def _list_decorator_lines(node: _Definition) -> list[int]:
    return [decorator.lineno for decorator in node.decorator_list]


def _read_source(filename: str, namespace: dict[str, Any]) -> _Source | None:
    linecache.checkcache(filename)
    text = "".join(linecache.getlines(filename, namespace))
    return _parse(text) if text else None


@lru_cache(maxsize=512)
def _parse(text: str) -> _Source | None:
    try:
        return _Source(text)
    except SyntaxError:
        return None  # A notebook's cell, or a file that was spoiled after its import.


def _write(nodes: list[Any]) -> CodeText:
    writer = _Writer()
    for node in nodes:
        writer.write_outermost(node)
    decorators = [
        (_find_callee(decorator), _write([decorator]))
        for node in nodes
        for decorator in getattr(node, "decorator_list", ())
    ]
    return CodeText(
        "".join(writer.parts),
        tuple(sorted(writer.names)),
        tuple(sorted(writer.imports)),
        tuple(decorators),
    )


class _Writer:
    """Writes syntax trees as text, and notes names and imports."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.names: set[Name] = set()
        self.imports: set[tuple[str, str]] = set()
        self._is_inside = False

    def write_outermost(self, node: ast.AST) -> None:
        """Writes a node without its own decorators; with those of what is defined inside."""
        self._is_inside = False
        self.write(node)

    def write(self, value: Any) -> None:
        """Writes a node, or what a field of a node holds."""
        if isinstance(value, ast.Constant):
            self.parts.append(repr(value.value))
        elif isinstance(value, ast.Name | ast.Attribute):
            self._write_name(value)
        elif isinstance(value, ast.AST):
            self._write_node(value)
        elif isinstance(value, list):
            self._write_list(value)
        else:
            self.parts.append(repr(value))

    def _write_list(self, values: list[Any]) -> None:
        self.parts.append("[")
        for value in values:
            if not _is_idle(value):
                self.write(value)
                self.parts.append(",")
        self.parts.append("]")

    def _write_node(self, node: ast.AST) -> None:
        self._note_imports(node)
        self.parts.append(f"{type(node).__name__}(")
        for decorator in getattr(node, "decorator_list", ()) if self._is_inside else ():
            self.write(decorator)
        self._is_inside = True
        for name in node._fields:
            value = getattr(node, name, None)
            if name in _UNSEEN or value is None or (value == [] and isinstance(value, list)):
                continue
            if name == "annotation" and isinstance(node, ast.arg):
                continue
            if isinstance(node, ast.JoinedStr):
                value = _join_constants(value)
            self.parts.append(f"{name}=")
            self.write(value)
        self.parts.append(")")

    def _write_name(self, node: ast.Name | ast.Attribute) -> None:
        inner, name = _take_apart(node)
        if isinstance(inner, ast.Name):
            self.names.add(name)
        else:
            self.write(inner)
            self.parts.append(".")
        self.parts.append(".".join(name))

    def _note_imports(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            self.imports.update((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            self.imports.update((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if name in _IMPORTERS and isinstance(first, ast.Constant):
                self.imports.add((str(first.value), ""))


def _take_apart(node: ast.expr) -> tuple[ast.expr, Name]:
    """Takes a name apart; returns what it begins with, too, which may be an expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return node, tuple(reversed(parts))


def _find_callee(decorator: ast.expr) -> Name:
    inner, name = _take_apart(decorator.func if isinstance(decorator, ast.Call) else decorator)
    return name if isinstance(inner, ast.Name) else ()


def _is_idle(node: Any) -> bool:
    """Tells whether a statement does nothing, as a docstring."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _join_constants(parts: list[Any]) -> list[Any]:
    """Joins neighbours in an f-string: Pythons differ in where they part its text."""
    joined: list[Any] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, ast.Constant) and isinstance(last, ast.Constant):
            joined[-1] = ast.Constant(str(last.value) + str(part.value))
        elif not (isinstance(part, ast.Constant) and part.value == ""):
            joined.append(part)
    return joined


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
