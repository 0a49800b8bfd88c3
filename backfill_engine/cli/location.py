"""What commands work on: the code location, found as Dagster's commands find theirs; the instance.

Dagster and Spark take seconds to import, so that each function imports what it needs.
"""

import importlib
import os
import sys
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_engine.cli.terminal import echo, keep_terminal
from backfill_engine.damages import describe_damage
from backfill_engine.errors import BackfillError, SettingsError

if TYPE_CHECKING:
    from dagster import DagsterInstance, Definitions
    from pyspark.sql import SparkSession

    from backfill_engine.catalog import Catalog
    from backfill_engine.contents.partition_contents import PartitionReader
    from backfill_engine.lake.partitions import Partition
    from backfill_engine.lake.table_log import TableLog
    from backfill_engine.orchestration.instance.dagster_internals import (
        AssetGraph,
        ReconstructableRepository,
    )
    from backfill_engine.orchestration.planning.planning import Planner
    from backfill_engine.tables.declarations import Table

_FAULT_LENGTH = 200
_CURE = (
    "say where the definitions are: `backfill-assets -m MODULE …`, or work in a folder whose "
    "pyproject.toml names them in [tool.dg.project] or [tool.dagster], or that has a workspace.yaml"
)
_chosen: list[str] = []


def choose_module(module: str | None, workspace: Path | None) -> None:
    """Chooses the module that has the definitions, for this process.

    Args:
        module: its name; None for that of the workspace, or else of the working directory.
        workspace: a workspace file that names it; None for that of the working directory.

    Raises:
        SettingsError: if the workspace names none.
    """
    _chosen.clear()
    if module is not None:
        _chosen.append(module)
    elif workspace is not None:
        _chosen.append(_read_workspace(workspace))


def find_module() -> str:
    """Finds the name of the module that has the definitions.

    Raises:
        SettingsError: if none is named.
    """
    if _chosen:
        return _chosen[-1]
    project = read_project()
    dg, dagster = project.get("dg", {}).get("project", {}), project.get("dagster", {})
    if dg.get("root_module"):
        return dg.get("code_location_target_module") or f"{dg['root_module']}.definitions"
    if dagster.get("module_name"):
        return dagster["module_name"]
    if Path("workspace.yaml").is_file():
        return _read_workspace(Path("workspace.yaml"))
    raise SettingsError(f"there are no definitions in {Path.cwd()}: {_CURE}")


def read_project() -> dict[str, Any]:
    """Reads the tables `[tool.…]` of the working directory's pyproject.toml; empty without one.

    Raises:
        SettingsError: if it can't be read.
    """
    try:
        return tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8")).get("tool", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"{Path('pyproject.toml').resolve()} can't be read ({error})") from None


def _read_workspace(path: Path) -> str:
    import yaml

    try:
        places = yaml.safe_load(path.read_text(encoding="utf-8"))["load_from"]
        modules = [place["python_module"] for place in places if "python_module" in place]
    except (OSError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise SettingsError(f"workspace {path} can't be read ({error}): mend it") from None
    names = [module if isinstance(module, str) else module["module_name"] for module in modules]
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise SettingsError(f"workspace {path} names as modules: {listed}: choose one with -m")
    return names[0]


@dataclass(frozen=True)
class Location:
    """A code location, loaded.

    Attributes:
        module: its name.
        attribute: of the module that has the definitions.
        definitions: all of it.
        catalog: of the tables among them.
    """

    module: str
    attribute: str
    definitions: "Definitions"
    catalog: "Catalog"

    def locate(self) -> "ReconstructableRepository":
        """Says where it is, for Dagster to load it in a run."""
        from backfill_engine.orchestration.instance.dagster_internals import (
            ReconstructableRepository,
        )

        return ReconstructableRepository.for_module(self.module, self.attribute, str(Path.cwd()))


def load_location() -> Location:
    """Loads the code location; takes seconds the first time.

    Raises:
        SettingsError: if there is none, or it has no tables of this engine.
    """
    return _load(find_module())


@cache
def _load(module: str) -> Location:
    from dagster import Definitions

    from backfill_engine.asset_definitions import find_catalogs

    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)  # as Dagster does
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise SettingsError(f"there is no module {module} ({error}): {_CURE}") from None
    found = {name: value for name, value in vars(loaded).items() if isinstance(value, Definitions)}
    if not found and callable(getattr(loaded, "defs", None)):  # with `dg`, made when asked for
        found = {"defs": loaded.defs()}
    if len(found) != 1:
        raise SettingsError(
            f"{module} has {len(found)} Definitions, and commands take one: merge them, or name "
            "another module with -m"
        )
    ((attribute, definitions),) = found.items()
    catalogs = find_catalogs(definitions.get_repository_def().asset_graph)
    if len(catalogs) != 1:
        raise SettingsError(
            f"{module} has the tables of {len(catalogs)} calls of build_defs, and commands take "
            "those of one: name a module with -m that has one"
        )
    return Location(module, attribute, definitions, catalogs[0])


def load_graph() -> "AssetGraph":
    """Loads the graph of all assets, which takes seconds."""
    return load_location().definitions.get_repository_def().asset_graph


def load_catalog() -> "Catalog":
    """Loads the catalog of the code location, which takes seconds."""
    return load_location().catalog


def select_tables(
    select: str | None, first: str | None = None, last: str | None = None
) -> "tuple[Table, ...]":
    """Selects tables by `--select`, or those that have the partitions.

    Raises:
        BackfillError: if there are none.
    """
    from backfill_engine.orchestration.selecting import selections

    catalog = load_catalog()
    return selections.select_tables(
        catalog, catalog.warehouse, select, first=first, last=last, load_graph=load_graph
    )


def find_partitions(table: "Table", first: str, last: str) -> "tuple[Partition, ...]":
    """Finds the partitions of a range.

    Raises:
        PartitionRangeError: if the table has no such range.
    """
    from backfill_engine.lake.partitions import build_partitions
    from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
    from backfill_engine.orchestration.selecting.selections import find_keys_in_range

    keys = find_keys_in_range(find_partitions_def(table), first=first, last=last)
    return build_partitions(table, keys)


def read_table_log(table: "Table") -> "TableLog":
    """Reads the log of a table, which may not exist yet."""
    from backfill_engine.lake.table_log import read_log

    return read_log(load_catalog().warehouse, table)


def default_dagster_home() -> None:
    """Makes the working directory the Dagster home if it has a dagster.yaml and none is set."""
    if home := os.environ.get("DAGSTER_HOME"):
        if not Path(home).is_dir():
            raise SettingsError(f"DAGSTER_HOME={home} is no folder: export one that exists")
        return
    if not Path("dagster.yaml").exists():
        raise SettingsError(
            "DAGSTER_HOME is not set: export the folder that holds dagster.yaml, "
            "or run this in the project's folder"
        )
    os.environ["DAGSTER_HOME"] = str(Path.cwd())


def open_instance() -> "DagsterInstance":
    """Opens the Dagster instance of DAGSTER_HOME.

    Raises:
        SettingsError: if there is none, or its dagster.yaml can't be used.
    """
    default_dagster_home()
    from dagster import DagsterInstance

    try:
        return DagsterInstance.get()
    except Exception as error:
        if isinstance(error, BackfillError) or describe_damage(error) is not None:
            raise
        fault = " ".join(str(error).split())[:_FAULT_LENGTH]
        raise SettingsError(
            f"{Path(os.environ['DAGSTER_HOME'], 'dagster.yaml')} can't be used ({fault}): mend it"
        ) from error


def prepare_planner(instance: "DagsterInstance") -> "Planner":
    """Prepares to plan tables as they are now, of the environment's warehouse; takes seconds."""
    from backfill_engine.orchestration.planning.planning import open_planner

    return open_planner(instance, load_graph(), load_catalog(), now=datetime.now(tz=UTC))


def recover_dead_runs(instance: "DagsterInstance") -> None:
    """Records what killed runs have left, so that nothing waits for them; says so on stderr."""
    from backfill_engine.orchestration.recovery.recovery import recover_tables
    from backfill_engine.orchestration.runs.claims import find_dead_runs

    catalog, now = load_catalog(), datetime.now(tz=UTC)
    if find_dead_runs(instance, now=now, silent_seconds=catalog.settings.silent_seconds):
        reader = build_partition_reader()
        report = recover_tables(catalog, instance, None, dry_run=False, reader=reader)
        for message in report.messages:
            echo(message, err=True)


def build_partition_reader() -> "PartitionReader":
    """Builds what reads partitions back; where it starts Spark, it says so on stderr."""
    from backfill_engine.contents.partition_contents import PartitionReader

    catalog = load_catalog()
    most_bytes = catalog.settings.read_back_bytes

    def open_session() -> "SparkSession":
        from backfill_engine.resources import build_spark

        echo(
            f"{most_bytes:,} bytes of data files or more are to be read: Spark's tasks read them "
            "(BACKFILL_READ_BACK_BYTES)",
            err=True,
        )
        with keep_terminal():  # what starts keeps what it prints to itself from then on, too
            return build_spark(catalog).spark_session

    return PartitionReader(cache(open_session), most_bytes)
