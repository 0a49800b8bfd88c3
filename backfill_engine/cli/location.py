"""The code location whose tables commands are about, found as Dagster's commands find theirs."""

import importlib
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_engine.errors import SettingsError

if TYPE_CHECKING:
    from dagster import Definitions

    from backfill_engine.catalog import Catalog
    from backfill_engine.orchestration.instance.dagster_internals import (
        AssetGraph,
        ReconstructableRepository,
    )

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
    names = [one if isinstance(one, str) else one["module_name"] for one in modules]
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
