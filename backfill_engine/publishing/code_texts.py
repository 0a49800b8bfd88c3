"""The text of code as far as it decides what the code does, the names that it uses, its origin.

The text is made of the syntax tree of the source, so that comments, docstrings, annotations of
functions, the layout and the place of the file are no part of it, and each supported Python makes
the same of it.
"""

import ast
import copy
import importlib.util
import linecache
import sys
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

Name = tuple[str, ...]
"""A name, taken apart at its dots."""

WRITTEN_HERE = "written here"
"""The origin of code that counts by its text."""

ENGINE = "the engine"
"""The origin of code that is the same for all tables: it counts by its name."""

PYTHON = "Python"
"""The origin of code that counts by its name."""

DECIDE_ROWS = frozenset({"filters", "transforms"})
"""Rooms of the engine whose code decides rows if a computation reaches it. All else of the engine
plans, reads, writes and audits, whatever is computed."""

_NOT_READ = {"ctx", "type_comment", "kind", "returns", "type_params"}
_MODULE = ("<module>", 0)


@dataclass(frozen=True)
class CodeText:
    """What a piece of code says.

    Attributes:
        text: without anything that changes nothing.
        names: that it reads, sorted.
        imports: modules that it imports, and what it takes from them, as if it were a module, too,
            sorted; the name of a relative import begins with its dots.
    """

    text: str
    names: tuple[Name, ...]
    imports: tuple[str, ...] = ()

    def keep_names(self, looked_up: Container[str]) -> "CodeText":
        """Keeps the names that begin with one that code looks up outside of itself."""
        return replace(self, names=tuple(name for name in self.names if name[0] in looked_up))


def find_texts(defined: CodeType | type, namespace: dict[str, Any]) -> list[CodeText]:
    """Finds the texts of a function or class and of its decorators but for those of the engine.

    Of lambdas that begin on one line it is the text of all: what tells them apart is no part of
    what was compiled. So it is of the classes of a module that have the same name.

    Args:
        defined: the code of a function, or a class.
        namespace: the globals of its module.

    Returns:
        Nothing where the source isn't at hand.
    """
    if isinstance(defined, type):
        filename, key = namespace.get("__file__") or "", (defined.__name__, 0)
        looked_up = set(namespace)
    else:
        filename, key = defined.co_filename, (defined.co_name, defined.co_firstlineno)
        looked_up = set(list_names(defined))
    nodes = _read_source(filename, namespace).get(key, [])
    decorators = [part for node in nodes for part in getattr(node, "decorator_list", ())]
    return [
        *(_write(node).keep_names(looked_up) for node in nodes),
        *(_write(part) for part in decorators if not _is_of_engine(part, namespace)),
    ]


def find_module_text(filename: str) -> list[CodeText]:
    """Finds the text of a whole module, which needn't be imported; nothing without a source."""
    return [_write(tree) for tree in _read_source(filename, {}).get(_MODULE, [])]


def list_names(code: CodeType) -> Iterator[str]:
    """Yields the names that code looks up outside of itself; also those of the code inside it."""
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from list_names(constant)


def resolve(namespace: Mapping[str, Any], name: Name) -> Any:
    """Finds what a name stands for: a library itself for whatever is in it."""
    value = namespace[name[0]]
    for attribute in name[1:]:
        if not isinstance(value, ModuleType):
            break
        if find_origin(value.__name__) not in (WRITTEN_HERE, ENGINE):
            break
        value = vars(value).get(attribute, vars(value).get("__getattr__"))
    return value


def _is_of_engine(decorator: ast.expr, namespace: dict[str, Any]) -> bool:
    name = _take_apart(decorator.func if isinstance(decorator, ast.Call) else decorator)
    value = resolve(namespace, name) if name and name[0] in namespace else None
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and find_origin(module) == ENGINE


def _read_source(filename: str, namespace: dict[str, Any]) -> dict[tuple[str, int], list[ast.AST]]:
    linecache.checkcache(filename)
    return _parse("".join(linecache.getlines(filename, namespace)))


@lru_cache(maxsize=512)
def _parse(source: str) -> dict[tuple[str, int], list[ast.AST]]:
    """Parses a module; returns it, its functions by name and first line, its classes by name."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}  # A notebook's cell, or a file that was spoiled after its import.
    found: dict[tuple[str, int], list[ast.AST]] = {_MODULE: [tree]}
    # Most modules have no lambdas: then there is nothing to find inside of expressions.
    searched = ast.AST if "lambda" in source else ast.stmt | ast.excepthandler | ast.match_case
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        nodes += [child for child in ast.iter_child_nodes(node) if isinstance(child, searched)]
        if isinstance(node, ast.ClassDef):
            found.setdefault((node.name, 0), []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.decorator_list[0] if node.decorator_list else node
            found.setdefault((node.name, first.lineno), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(node)
    return found


@lru_cache(maxsize=4096)
def _write(node: ast.AST) -> CodeText:
    """Writes a syntax tree as text; without the decorators of the node itself."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        node = copy.copy(node)
        node.decorator_list = []
    writer = _Writer()
    text = writer.write(node)
    return CodeText(text, tuple(sorted(writer.names)), tuple(sorted(writer.imports)))


class _Writer:
    """Writes syntax trees as text, and collects names and imports."""

    def __init__(self) -> None:
        self.names: set[Name] = set()
        self.imports: set[str] = set()

    def write(self, value: object) -> str:
        """Writes a node, or what a field of a node holds."""
        if isinstance(value, list):
            return f"[{','.join([self.write(part) for part in value if not _is_idle(part)])}]"
        if not isinstance(value, ast.AST):
            return ascii(value)
        if isinstance(value, ast.arg):
            return value.arg
        if isinstance(value, ast.JoinedStr):
            return ascii("".join(map(self._write_part, value.values)))
        if name := _take_apart(value):
            self.names.add(name)
            return ".".join(name)
        self._collect_imports(value)
        fields = [
            f"{name}={self.write(field)}"
            for name in value._fields
            if name not in _NOT_READ and (field := getattr(value, name, None)) not in (None, [])
        ]
        return f"{type(value).__name__}({','.join(fields)})"

    def _write_part(self, part: ast.expr) -> str:
        # Text of an f-string is without any marks around it: Pythons differ in where they part it.
        return str(part.value) if isinstance(part, ast.Constant) else self.write(part)

    def _collect_imports(self, node: ast.AST) -> None:
        match node:
            case ast.Import():
                self.imports.update(alias.name for alias in node.names)
            case ast.ImportFrom():
                module = "." * node.level + (node.module or "")
                inside = f"{module}." if node.module else module
                self.imports.update((module, *(f"{inside}{alias.name}" for alias in node.names)))
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                self.imports.add(module)


def _take_apart(node: ast.AST) -> Name:
    """Takes a name apart; empty for an expression that is no name."""
    if isinstance(node, ast.Attribute) and (inner := _take_apart(node.value)):
        return (*inner, node.attr)
    return (node.id,) if isinstance(node, ast.Name) else ()


def _is_idle(node: object) -> bool:
    """Tells whether a statement does nothing, as a docstring."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


@cache
def find_origin(module: str) -> str:
    """Finds where a module is from, by its name; nothing is imported.

    Returns:
        `WRITTEN_HERE`, `ENGINE`, `PYTHON`, or name and version of a library, as in `numpy-2.1`.
    """
    top, _, rest = module.partition(".")
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return PYTHON
    if top == "backfill_engine":
        return WRITTEN_HERE if rest.partition(".")[0] in DECIDE_ROWS else ENGINE
    file = Path(find_file(module))
    for folder in file.parents:
        if folder.name in ("site-packages", "dist-packages"):
            return _find_library(top, file.relative_to(folder), folder)
    return WRITTEN_HERE


def find_file(module: str) -> str:
    """Finds the file of a module without importing it; empty where there is none."""
    spec = _find_spec(module)
    return (spec.origin if spec else None) or ""


def _find_spec(module: str) -> ModuleSpec | None:
    if module in sys.modules:
        return getattr(sys.modules[module], "__spec__", None)
    parent = module.rpartition(".")[0]
    if not parent:
        return importlib.util.find_spec(module)
    spec = _find_spec(parent)
    places = spec.submodule_search_locations if spec else None
    return PathFinder.find_spec(module, places) if places else None


def _find_library(top: str, file: Path, folder: Path) -> str:
    """Finds name and version of the installed library that a file belongs to."""
    # Most are called as what they install; else all are looked through.
    for pattern in (f"{top}-*", "*"):
        for library, record in _read_records(folder, pattern):
            if f"\n{file.as_posix()}," in record:
                return library
    return f"{top}-{getattr(sys.modules.get(top), '__version__', '')}"


@cache
def _read_records(folder: Path, pattern: str) -> list[tuple[str, str]]:
    """Reads which files are installed in a folder, by each library whose name matches."""
    return [
        (record.parent.stem, f"\n{record.read_text('utf-8')}")
        for record in sorted(folder.glob(f"{pattern}.dist-info/RECORD"))
    ]
