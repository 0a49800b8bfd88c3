"""A code version changes with what computes the rows, and with nothing else."""

import importlib
import importlib.metadata
import linecache
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backfill_assets.publishing import code_versions
from backfill_assets.publishing.code_versions import compute_code_version
from backfill_assets.tables.flights import FLIGHT_FIELDS, RAW_FLIGHTS
from backfill_assets.tables.landings import JsonLanding
from backfill_assets.tables.protected import Protected

MODULE = """
from backfill_assets.transforms.carrier_delays import build_carrier_delays

def halve(number):
    return number / 2

def reach(number):
    return [halve(one) for one in (number, 3)]

def unused(number):
    return number

def compute(window):
    return [reach(one) for one in window]

def compute_delays(window):
    return build_carrier_delays(window)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "own_assets.py"
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield path
    sys.modules.pop("own_assets", None)


def compute_version(path: Path, text: str = MODULE, name: str = "compute", **others) -> str:
    path.write_text(text)
    sys.modules.pop("own_assets", None)
    importlib.invalidate_caches()
    linecache.clearcache()
    compute = getattr(importlib.import_module("own_assets"), name)
    return compute_code_version(compute, **{"table": RAW_FLIGHTS, **others})


def test_functions_of_the_same_module_count_if_they_are_used(module: Path) -> None:
    version = compute_version(module)
    assert len(version) == 16
    assert compute_version(module) == version
    assert compute_version(module, MODULE.replace("number / 2", "number / 3")) != version
    assert compute_version(module, MODULE.replace("return number\n", "return 1\n")) == version


def test_transforms_tables_and_landings_count(module: Path) -> None:
    version = compute_version(module)
    assert compute_version(module, name="compute_delays") != version
    assert compute_version(module, table=replace(RAW_FLIGHTS, rules=())) != version
    landings = [JsonLanding("flights", fields) for fields in (FLIGHT_FIELDS, FLIGHT_FIELDS[1:])]
    assert len({version, *(compute_version(module, landing=one) for one in landings)}) == 3


def test_protection_does_not_count(module: Path) -> None:
    protected = replace(RAW_FLIGHTS, protected=(Protected(reason="audited"),))
    assert compute_version(module, table=protected) == compute_version(module)


def test_what_else_is_installed_does_not_count_in_a_clone(module: Path) -> None:
    version = compute_version(module)
    metadata = module.parent / "later-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: later\nVersion: 1.0\n")
    assert "later" in {found.name for found in importlib.metadata.distributions()}
    code_versions._read_lock.cache_clear()
    assert compute_version(module) == version
