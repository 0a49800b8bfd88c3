"""What comes before the first run: a project of its own, and whether Spark can start."""

import datetime as dt
import json
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from backfill_engine.cli.terminal import echo
from backfill_engine.errors import SettingsError
from backfill_engine.settings import read_settings


def check() -> None:
    """Check that Spark can start here; fetch and make what it needs unless that is cached.

    Example: backfill-assets check
    """
    from backfill_engine.spark.remotes import hide_parameters
    from backfill_engine.spark.sail import check_sail
    from backfill_engine.spark.session import check_prerequisites, is_trained, train_sessions

    settings = read_settings()
    if settings.engine == "sail":
        check_sail()
        echo("ready: Sail here, without Java")
        return
    jars, s3 = settings.jars, settings.s3
    check_prerequisites(remote=settings.spark_remote, jars=jars, s3=s3 is not None)
    if settings.spark_remote is None and not is_trained(jars=jars, s3=s3):
        echo("preparing Spark to start faster: half a minute, once", err=True)
        train_sessions(jars=jars, s3=s3)
    place = f"at {hide_parameters(settings.spark_remote)}" if settings.spark_remote else "here"
    echo(f"ready: Spark {place}")


_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLACEHOLDER = "{{name}}"
_DAYS, _METERS = 5, 3


def init(
    name: Annotated[str, typer.Argument(help="Of the project, a name for a Python package.")],
) -> None:
    """Make a new project: three layers, rows to try them with, tests, a Makefile.

    Example: backfill-assets init waterworks
    """
    if not _NAME.fullmatch(name):
        raise SettingsError(f"no package can be called {name}: write small letters, digits and _")
    root = Path(name)
    if root.exists():
        raise SettingsError(f"{root.absolute()} is there already: choose another name")
    _write(files("backfill_engine.cli").joinpath("project_template"), root, name)
    _land(root / "data" / "landing" / "readings")
    echo(f"made {root}: `cd {root} && make backfill` fills its tables, `make test` tests it")


def _write(source: Traversable, target: Path, name: str) -> None:
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name == "__pycache__":
            continue
        place = target / {"gitignore": ".gitignore"}.get(
            entry.name, re.sub(r"^name(?=$|_tests$)", name, entry.name)
        )
        if entry.is_dir():
            _write(entry, place, name)
        else:
            place.write_text(entry.read_text(encoding="utf-8").replace(_PLACEHOLDER, name))


def _land(root: Path) -> None:
    """Lands three readings a day, of five days."""
    for day in (dt.date(2024, 1, 1) + dt.timedelta(days=offset) for offset in range(_DAYS)):
        folder = root / f"year={day:%Y}" / f"month={day:%m}" / f"day={day:%d}"
        folder.mkdir(parents=True)
        lines = [
            {"meter": meter, "read_at": f"{day}T0{meter}:30:00Z", "litres": meter * 10 + 0.5}
            for meter in range(1, _METERS + 1)
        ]
        (folder / "readings.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
