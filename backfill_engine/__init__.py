"""Safe partition backfills on Dagster, Spark and Delta Lake.

1. Declare tables: `Table`, with `Column`s, one of `backfill_engine.grains`, and
   `backfill_engine.rules`.
2. Say how each is computed: a function decorated by `@table_asset`, which reads an `InputWindow`.
3. `defs = build_defs([module])`: Dagster's definitions, to be merged with others.

What is named here, in `rules`, `grains` and `audit_columns` is public. All else may change.
"""

import atexit
import gc
import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backfill_engine.assembly import list_table_assets as list_table_assets
    from backfill_engine.building import BackfillTablesComponent as BackfillTablesComponent
    from backfill_engine.building import Features as Features
    from backfill_engine.building import build_defs as build_defs
    from backfill_engine.catalog import Catalog as Catalog
    from backfill_engine.errors import BackfillError as BackfillError
    from backfill_engine.errors import DeclarationError as DeclarationError
    from backfill_engine.errors import SettingsError as SettingsError
    from backfill_engine.filesystems import check_writable as check_writable
    from backfill_engine.lake.partitions import Partition as Partition
    from backfill_engine.orchestration.instance.partition_definitions import (
        map_offsets as map_offsets,
    )
    from backfill_engine.orchestration.runs.features import StepRequest as StepRequest
    from backfill_engine.publishing.hooks import PublishHook as PublishHook
    from backfill_engine.publishing.write_modes.mode import WriteMode as WriteMode
    from backfill_engine.settings import Settings as Settings
    from backfill_engine.settings import read_environment as read_environment
    from backfill_engine.settings import read_settings as read_settings
    from backfill_engine.sources.database_table import DatabaseTable as DatabaseTable
    from backfill_engine.sources.function_source import FunctionSource as FunctionSource
    from backfill_engine.sources.historical_loads import HistoricalLoad as HistoricalLoad
    from backfill_engine.sources.input_window import InputWindow as InputWindow
    from backfill_engine.sources.json_landing import EMPTY_MARKER as EMPTY_MARKER
    from backfill_engine.sources.json_landing import JsonLanding as JsonLanding
    from backfill_engine.sources.parquet_landing import ParquetLanding as ParquetLanding
    from backfill_engine.sources.record_files import Constant as Constant
    from backfill_engine.sources.record_files import CsvFiles as CsvFiles
    from backfill_engine.sources.record_files import DatePart as DatePart
    from backfill_engine.sources.record_files import JsonFiles as JsonFiles
    from backfill_engine.sources.record_files import Origin as Origin
    from backfill_engine.sources.record_files import ParquetFiles as ParquetFiles
    from backfill_engine.sources.source import Listing as Listing
    from backfill_engine.sources.source import Source as Source
    from backfill_engine.sql_tables import sql_table as sql_table
    from backfill_engine.table_assets import Required as Required
    from backfill_engine.table_assets import TableAsset as TableAsset
    from backfill_engine.table_assets import TableTranslator as TableTranslator
    from backfill_engine.table_assets import Upstream as Upstream
    from backfill_engine.table_assets import serve_versions as serve_versions
    from backfill_engine.table_assets import table_asset as table_asset
    from backfill_engine.table_functions import table as table
    from backfill_engine.table_functions import window as window
    from backfill_engine.tables.declarations import Calendar as Calendar
    from backfill_engine.tables.declarations import Column as Column
    from backfill_engine.tables.declarations import Protected as Protected
    from backfill_engine.tables.declarations import Table as Table
    from backfill_engine.tables.declarations import required as required
    from backfill_engine.tables.external_delta import ExternalDelta as ExternalDelta
    from backfill_engine.transforms.landed_rows import build_landed_rows as build_landed_rows

# What this project stands on is beta or preview in Dagster, and pinned by the lock. Without this,
# every command opens with a screen of warnings that a user can do nothing about.
warnings.filterwarnings(
    "ignore",
    message="Parameter `(allow_nonexistent_upstream_partitions|backfill_policy)` of .* in beta",
)
warnings.filterwarnings(
    "ignore", message="Specifying a partitions_def on an AssetCheckSpec is currently in preview"
)

# A process that ends needs no search for what it no longer needs: among all that Dagster loads that
# takes most of a second.
atexit.register(gc.freeze)

# And one that makes thousands of events goes over all of them less often: it takes a seventh less.
gc.set_threshold(50_000, 20)

_PUBLIC = {
    "backfill_engine.assembly": ("list_table_assets",),
    "backfill_engine.building": ("BackfillTablesComponent", "Features", "build_defs"),
    "backfill_engine.catalog": ("Catalog",),
    "backfill_engine.errors": ("BackfillError", "DeclarationError", "SettingsError"),
    "backfill_engine.filesystems": ("check_writable",),
    "backfill_engine.lake.partitions": ("Partition",),
    "backfill_engine.sources.input_window": ("InputWindow",),
    "backfill_engine.orchestration.instance.partition_definitions": ("map_offsets",),
    "backfill_engine.orchestration.runs.features": ("StepRequest",),
    "backfill_engine.publishing.hooks": ("PublishHook",),
    "backfill_engine.publishing.write_modes.mode": ("WriteMode",),
    "backfill_engine.settings": ("Settings", "read_environment", "read_settings"),
    "backfill_engine.table_assets": (
        "Required",
        "TableAsset",
        "TableTranslator",
        "Upstream",
        "serve_versions",
        "table_asset",
    ),
    "backfill_engine.sql_tables": ("sql_table",),
    "backfill_engine.table_functions": ("table", "window"),
    "backfill_engine.tables.declarations": ("Calendar", "Column", "Protected", "Table", "required"),
    "backfill_engine.tables.external_delta": ("ExternalDelta",),
    "backfill_engine.sources.database_table": ("DatabaseTable",),
    "backfill_engine.sources.function_source": ("FunctionSource",),
    "backfill_engine.sources.json_landing": ("EMPTY_MARKER", "JsonLanding"),
    "backfill_engine.sources.historical_loads": ("HistoricalLoad",),
    "backfill_engine.sources.record_files": (
        "Constant",
        "CsvFiles",
        "DatePart",
        "JsonFiles",
        "Origin",
        "ParquetFiles",
    ),
    "backfill_engine.sources.parquet_landing": ("ParquetLanding",),
    "backfill_engine.sources.source": ("Listing", "Source"),
    "backfill_engine.transforms.landed_rows": ("build_landed_rows",),
}
_PLACES = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [*_PLACES]  # pyright: ignore[reportUnsupportedDunderAll]


def __dir__() -> list[str]:
    """Lists the public names, too, so that `dg` finds the component."""
    return sorted({*globals(), *_PLACES})


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first asked for, as Dagster and Spark take seconds."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value
