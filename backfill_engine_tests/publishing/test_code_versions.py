"""A code version changes with what computes the rows, and with nothing else."""

import importlib
import linecache
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backfill_assets.tables.flights import FLIGHT_FIELDS
from backfill_engine.errors import DeclarationError
from backfill_engine.publishing import code_texts
from backfill_engine.publishing.code_texts import ENGINE, WRITTEN_HERE, find_origin
from backfill_engine.publishing.reached_code import ReachedCode, compute_code_version
from backfill_engine.sources.json_landing import JsonLanding
from backfill_engine.table_assets import table_asset
from backfill_engine.tables.columns import Column
from backfill_engine.tables.protected import Protected
from backfill_engine_tests.project import CARRIER_DELAYS, CATALOG, RAW_FLIGHTS, SAMPLES

ASSETS = '''
"""Assets of a package of one's own."""
import functools

from acme import steps
from acme.steps import CLEAN, Scale, Step, double, make, timed

UNUSED = 1
BY_NAME = {"double": double, "list": [lambda rows: rows + 7]}
THRICE = make(3)
FOURFOLD = make(4)
HALF = functools.partial(steps.divide, by=2)

class Own(Scale):
    """Inherits."""
    offset = 4

    @property
    def whole(self):
        return self.offset + self.inner()

    def inner(self, least=0.5):
        return least

@timed(limit=60)
def clip(rows):
    return rows

def compute(window, *, least=-9):
    """The rows."""
    from acme.late import late
    def nested(rows):
        return [row for row in rows if row > least]
    rows = nested(THRICE(HALF(window)) - FOURFOLD(window))
    rows = [BY_NAME["double"](row) for row in rows if CLEAN.match(row)]
    return steps.finish(clip(late(rows)), Own(), Step.FIRST)
'''
STEPS = """
import collections
import datetime as dt
import enum
import functools
import re
import filelock
import xxhash
from dataclasses import dataclass, field
from decimal import Decimal

from acme import bounds

CLEAN = re.compile("[a-z]+")
Pair = collections.namedtuple("Pair", "left right", defaults=(61,))
MIXED = {filelock.FileLock, dt.date, "a", ("b", 2), xxhash.xxh64, functools.partial}
UNRELATED = 11
_CACHE = {"a": [1, 2]}

class Scale:
    factor = 2

class Step(enum.Enum):
    FIRST = "1st"

@dataclass(frozen=True)
class Limits:
    most: int = 21
    names: tuple = field(default=("x", "y"), repr=False)

LIMITS = Limits(most=22)
SINCE = dt.date(2013, 1, 1)
SHARES = {"EWR": Decimal("0.5"), "JFK": frozenset({"a", "b", ("c", 1)})}
QUERY = f"SELECT {LIMITS.most}"

def make(factor):
    def multiply(rows):
        return rows * factor
    return multiply

def timed(limit):
    def decorate(function):
        @functools.wraps(function)
        def run(*args):
            return function(*args)[:limit]
        return run
    return decorate

def double(row):
    return row * 2

def divide(rows, by):
    return rows / by

@functools.lru_cache
def finish(rows, own, step):
    if rows:
        return again(rows, own, step)
    return rows + bounds.MOST, LIMITS, SINCE, SHARES, QUERY, _CACHE, MIXED, Pair(1), bounds.__file__

def again(rows, own, step):
    return finish(rows - 1, own, step)

def unused():
    return 31
"""
BOUNDS = """
LEAST = 41
MOST = 42
"""
LATE = """
from .later import LATER

def late(rows):
    return rows + LATER
"""
PACKAGE = {
    "assets": ASSETS,
    "steps": STEPS,
    "bounds": BOUNDS,
    "late": LATE,
    "later": "LATER = 51\n",
    "__init__": "",
}


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in ("acme", "shapely")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    linecache.clearcache()
    code_texts.find_origin.cache_clear()
    code_texts._read_records.cache_clear()


def write_package(folder: Path, *edits: tuple[str, str], **modules: str) -> None:
    (folder / "acme").mkdir(parents=True, exist_ok=True)
    for name, text in {**PACKAGE, **modules}.items():
        for old, new in edits:
            text = text.replace(old, new)
        (folder / "acme" / f"{name}.py").write_text(text)


def compute_version(folder: Path, *edits: tuple[str, str], **modules: str) -> str:
    """Computes the version of a package, as a process of its own would."""
    write_package(folder, *edits, **modules)
    _forget()
    sys.path.insert(0, str(folder))
    assets = importlib.import_module("acme.assets")
    sys.path.remove(str(folder))
    return compute_code_version(assets.compute, RAW_FLIGHTS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("row > least]", "row >= least]"),
        ("least=-9", "least=-8"),
        ("least=0.5", "least=0.6"),
        ("rows + 7", "rows + 8"),
        ("make(3)", "make(5)"),
        ("THRICE = make(3)\nFOURFOLD", "FOURFOLD = make(3)\nTHRICE"),
        ("by=2)", "by=3)"),
        ("limit=60", "limit=61"),
        ("offset = 4", "offset = 5"),
        ("self.offset +", "self.offset -"),
        ("row * 2", "row * 3"),
        ("rows / by", "rows // by"),
        ("rows * factor", "rows + factor"),
        ("[:limit]", "[limit:]"),
        ('"[a-z]+"', '"[a-z]*"'),
        ("factor = 2", "factor = 3"),
        ("1st", "first"),
        ("most=22", "most=23"),
        ('("x", "y")', '("y", "x")'),
        ("2013, 1, 1", "2013, 1, 2"),
        ('Decimal("0.5")', 'Decimal("0.50")'),
        ('("c", 1)', '("c", 2)'),
        ('{"a": [1, 2]}', '{"a": [1, 3]}'),
        ("SELECT ", "SELECT DISTINCT "),
        ('("b", 2)', '("b", 3)'),
        ("left right", "right left"),
        ("rows - 1", "rows - 2"),
        ("MOST = 42", "MOST = 43"),
        ("MOST = 42", "MOST = 42.0"),
        ("+ LATER", "- LATER"),
        ("LATER = 51", "LATER = 52"),
    ],
)
def test_what_a_computation_reaches_counts(tmp_path: Path, old: str, new: str) -> None:
    assert any(old in text for text in PACKAGE.values())
    assert compute_version(tmp_path) != compute_version(tmp_path, (old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("UNUSED = 1", "UNUSED = 2"),
        ("UNRELATED = 11", "UNRELATED = 12"),
        ("LEAST = 41", "LEAST = 40"),
        ("return 31", "return 32"),
        ('"""The rows."""', '"""All of\n    the rows."""  # and more\n'),
        ('"""Inherits."""', ""),
        ("UNUSED = 1", "import sqlglot, json\n\n\n"),
        ("def double(row):", "def double(row: int) -> int:"),
        ('"[a-z]+"', "'[a-z]'\n    '+'"),
    ],
)
def test_what_changes_no_row_does_not(tmp_path: Path, old: str, new: str) -> None:
    assert any(old in text for text in PACKAGE.values())
    assert compute_version(tmp_path) == compute_version(tmp_path, (old, new))


@pytest.mark.parametrize(
    "use",
    ["getattr(steps, 'UNRELATED')", "importlib.import_module('acme.steps')", "globals()['steps']"],
)
def test_modules_that_are_used_otherwise_than_by_plain_names_count(
    tmp_path: Path, use: str
) -> None:
    module = f"import importlib\nfrom acme import steps\ndef compute(window):\n    return {use}\n"
    edit = ("UNRELATED = 11", "UNRELATED = 12")
    before, after = (compute_version(tmp_path, *edits, assets=module) for edits in ((), (edit,)))
    assert before != after


def test_functions_that_a_library_wraps_count(tmp_path: Path) -> None:
    module = """
import functools
from pyspark.sql.functions import udf
from pyspark.sql.types import IntegerType
FACTOR = 5

@udf(returnType=IntegerType())
def scale(value):
    return value * FACTOR

@functools.singledispatch
def shift(value):
    return value + 1

@shift.register
def _(value: str):
    return value + "z"

def compute(window):
    return window.select(scale("a"), shift("b"))
"""
    versions = [
        compute_version(tmp_path, edit, assets=module)
        for edit in (("", ""), ("FACTOR = 5", "FACTOR = 6"), ("+ 1", "+ 2"), ('"z"', '"y"'))
    ]
    assert len({*versions}) == 4


def test_other_processes_checkouts_and_orders_of_import_make_the_same(tmp_path: Path) -> None:
    here, version = tmp_path / "a" / "checkout", compute_version(tmp_path / "a" / "checkout")
    for seed, folder, first in (("1", here, "acme.late"), ("2", tmp_path / "b", "acme.bounds")):
        write_package(folder)
        code = (
            f"import sys; sys.path.insert(0, {str(folder)!r}); import {first}, acme.assets\n"
            "import email.parser  # reads what is installed\n"
            "from backfill_engine.publishing.reached_code import compute_code_version\n"
            "from backfill_assets.tables.flights import RAW_FLIGHTS\n"
            "before = set(sys.modules)\n"
            "print(compute_code_version(acme.assets.compute, RAW_FLIGHTS))\n"
            "assert before == set(sys.modules), set(sys.modules) - before\n"
        )
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.stdout.strip(), run.stderr) == (version, "")


def test_every_python_makes_the_same(tmp_path: Path) -> None:
    """Fails too if versions are made in another way, which makes all that is published stale."""
    write_package(tmp_path, ("filelock.FileLock, ", ""), ("xxhash.xxh64, ", ""))
    sys.path.insert(0, str(tmp_path))
    reached = ReachedCode()
    reached.add(importlib.import_module("acme.assets").compute)
    assert reached.finish()[:16] == "5292f1b5c7058cc0"


def test_code_without_its_source_counts_as_it_was_compiled() -> None:
    versions: list[str] = []
    for text in ("x + A", "x + A", "x - A"):
        namespace: dict = {"A": 1}
        exec(f"def compute(x):\n    return {text}", namespace)
        versions.append(compute_code_version(namespace["compute"], RAW_FLIGHTS))
    assert versions[0] == versions[1] != versions[2]


def test_only_libraries_that_are_reached_count_by_their_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "shapely.py").write_text("def area(rows):\n    return rows\n")
    monkeypatch.syspath_prepend(installed)

    def install(name: str, version: str, files: str) -> None:
        for earlier in installed.glob(f"{name}-*.dist-info"):
            shutil.rmtree(earlier)
        (installed / f"{name}-{version}.dist-info").mkdir()
        (installed / f"{name}-{version}.dist-info" / "RECORD").write_text(files)

    def compute() -> tuple[str, str]:
        module = "import shapely\ndef compute(window):\n    return {}\n"
        texts = [module.format(rows) for rows in ("shapely.area(window)", "window")]
        used, unused = [compute_version(tmp_path / "own", assets=text) for text in texts]
        return used, unused

    install("geometry", "1.0", "shapely.py,,\n")
    before = compute()
    install("later", "1.0", "later.py,,\n")
    assert compute() == before
    install("geometry", "1.1", "shapely.py,,\n")
    used, unused = compute()
    assert (used != before[0], unused) == (True, before[1])


def test_declared_files_count_by_their_contents(tmp_path: Path) -> None:
    query = tmp_path / "query.sql"

    def compute(window):
        return window

    def compute_with(text: str) -> str:
        query.write_text(text)
        declared = table_asset(CARRIER_DELAYS, files=[query])(compute)
        return compute_code_version(compute, CARRIER_DELAYS, files=declared.files)

    assert compute_with("SELECT 1") == compute_with("SELECT 1") != compute_with("SELECT 2")
    beside = table_asset(CARRIER_DELAYS, files=[Path(__file__).name])(compute)
    assert beside.files == (Path(__file__),)
    with pytest.raises(
        DeclarationError, match=r"features/carrier_delays: its `files` name .*none\.sql, which"
    ):
        table_asset(CARRIER_DELAYS, files=["none.sql"])(compute)


def test_of_the_engine_only_what_decides_rows_counts() -> None:
    assert find_origin("backfill_engine.transforms.json_lines") == WRITTEN_HERE
    assert find_origin("backfill_engine.lake.writer") == ENGINE
    assert find_origin("backfill_engine") == ENGINE
    assert find_origin("backfill_assets.more.sums") == WRITTEN_HERE


def _is_project(module: str) -> bool:
    return module.startswith(("backfill_assets.", "backfill_engine.transforms."))


def find_changed() -> set[str]:
    """Finds the tables of the project whose code version is another one now."""
    return {
        asset.table.key
        for asset in SAMPLES
        if CATALOG.recipes[asset.table.key].code_version
        != compute_code_version(
            asset.compute,
            CATALOG.find_table(asset.table.key),
            asset.landing,
            count_source=asset.count_source,
            files=asset.files,
        )
    }


DELAYS = {"features/carrier_delays", "features/carrier_delays_v2"}


@pytest.mark.parametrize(
    ("name", "value", "tables"),
    [
        ("WINDOW_DAYS", 3, DELAYS),
        ("LATE_MINUTES", 30, {*DELAYS, "serving/training_examples"}),
        ("DAY", "", {"raw/flights", "raw/weather"}),
        ("AIRPORTS_TIME_ZONE", "UTC", {"staging/flights"}),
        ("UNHEARD_OF", 1, set()),
    ],
)
def test_constants_change_exactly_the_tables_that_use_them(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object, tables: set[str]
) -> None:
    for module in [found for key, found in sys.modules.items() if _is_project(key)]:
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)
    assert find_changed() == tables


def test_rules_landings_and_types_count_and_what_describes_or_protects_does_not() -> None:
    def compute(window):
        return window

    def compute_with(landing: JsonLanding | None = None, **changes) -> str:
        return compute_code_version(compute, replace(RAW_FLIGHTS, **changes), landing)

    version = compute_with()
    described = tuple(replace(column, comment="") for column in RAW_FLIGHTS.columns)
    assert compute_with(columns=described) == version
    assert compute_with(protected=(Protected(reason="audited"),)) == version
    landings = [JsonLanding("flights", fields) for fields in (FLIGHT_FIELDS, FLIGHT_FIELDS[1:])]
    changed = [
        compute_with(rules=()),
        compute_with(columns=(*RAW_FLIGHTS.columns, Column("more", "INT", ""))),
        *map(compute_with, landings),
    ]
    assert len({version, *changed}) == 1 + len(changed)
