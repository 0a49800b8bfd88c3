"""A name says what a thing is: a pronoun or "told" as a name makes the reader look elsewhere."""

import ast
from collections.abc import Iterator

import pytest

from backfill_engine_tests.commands import PROJECT

REFUSED = frozenset({"one", "told", "said", "there", "some", "mine"})
FOLDERS = (
    "backfill_engine",
    "backfill_assets",
    "benchmarks",
    "examples",
    "backfill_engine_tests",
    "backfill_assets_tests",
)

_TEMPLATE = "project_template"


def list_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Lists what a module names: variables, parameters, functions, classes; and each one's line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case ast.ClassDef(name=name):
                yield name, node.lineno


def find_refused(source: str) -> list[tuple[str, int]]:
    """Finds the refused names of a module and their lines."""
    names = list_names(ast.parse(source))
    return sorted({(name, line) for name, line in names if name.strip("_") in REFUSED})


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_name_is_a_pronoun(folder: str) -> None:
    # What `init` copies has places for names, and is no Python yet.
    files = [path for path in (PROJECT / folder).rglob("*.py") if _TEMPLATE not in path.parts]
    assert files
    assert [
        f"{path.relative_to(PROJECT)}:{line}: {name}"
        for path in sorted(files)
        for name, line in find_refused(path.read_text())
    ] == []


@pytest.mark.parametrize(
    "source",
    [
        "for one in (): pass",
        "def told(): pass",
        "def find(some): pass",
        "find(mine=1)",
        "class there: pass",
        "self.said = 1",
        "_one = [1 for one in ()]",
    ],
)
def test_it_is_found_wherever_it_is(source: str) -> None:
    assert find_refused(source)


def test_other_words_may_hold_it() -> None:
    assert find_refused("one_by_one = someone = mined = 1  # one") == []
