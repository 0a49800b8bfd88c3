"""What the README shows of a project of one's own is code that works."""

import re
from pathlib import Path
from typing import Any

from dagster import AssetKey, Definitions
from pyspark.sql import DataFrame, functions

import backfill_engine
from backfill_engine import rules

README = Path(__file__).parents[2] / "README.md"


def test_the_example_makes_definitions() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
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
