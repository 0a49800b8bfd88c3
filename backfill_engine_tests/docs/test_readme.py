"""What the README says works: its commands in a bare clone, its code of a project of one's own."""

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, Definitions
from pyspark.sql import DataFrame, functions

import backfill_engine
from backfill_engine import rules
from backfill_engine_tests.docs.conftest import Begun
from backfill_engine_tests.pages import build_environment, find_blocks, read_page
from backfill_engine_tests.servers import ask, wait_for

PAGE = "../README.md"
TABLES = 3
JOBS = """
{ repositoriesOrError { ... on RepositoryConnection { nodes { jobs { name } } } } }
"""


@pytest.mark.slow
@pytest.mark.spark
def test_its_commands_publish_january_and_february(begun: Begun) -> None:
    january, february = begun.outputs
    assert january.count("materialized") == 31 * TABLES
    assert february.count("materialized") == 28 * TABLES


@pytest.mark.slow
@pytest.mark.spark
def test_the_ui_is_served(clone: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        served = subprocess.Popen(
            ["bash", "-c", find_blocks(PAGE)[1]],
            cwd=clone,
            env=build_environment(clone),
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        serving = re.compile(r"Serving dagster-webserver on (http://\S+)")
        wait_for(lambda: bool(serving.search(log.read_text())), seconds=120, look_every=1)
        (address,) = serving.findall(log.read_text())
        wait_for(lambda: "flights" in str(ask(address, JOBS)), seconds=120, look_every=1)
    finally:
        os.killpg(served.pid, signal.SIGKILL)
        served.wait()


def test_the_example_makes_definitions() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", read_page(PAGE), re.DOTALL)
    names: dict[str, Any] = {
        **{name: getattr(backfill_engine, name) for name in backfill_engine.__all__},
        **vars(rules),
        "DataFrame": DataFrame,
        "F": functions,
        "Definitions": Definitions,
        "other_definitions": Definitions(),
        "__name__": "example",
    }
    exec(example, names)
    keys = {spec.key for spec in names["defs"].resolve_all_asset_specs()}
    assert keys >= {AssetKey(["bronze", "readings"]), AssetKey(["gold", "weeks"])}
