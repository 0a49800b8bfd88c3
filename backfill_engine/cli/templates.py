"""Options of a launch that belong together, from a file that users edit."""

import tomllib
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from backfill_engine.errors import SettingsError


class Template(BaseModel):
    """Options under a name; None where it says nothing of one.

    Attributes:
        when: when to use it, for people.
        only: which partitions of the range.
        downstream: whether also what was computed from them.
        chunk: what is committed and recorded together.
        restart: whether chunks are computed again that stand.
        keep_going: whether it goes on after a chunk that failed.
        window: when chunks may begin.
        write_mode: how rows are written.
        filter: which computed rows count.
        max_parallel: runs of it at once.
        priority: in the run queue.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    when: str
    only: str | None = None
    downstream: bool | None = None
    chunk: str | None = None
    restart: bool | None = None
    keep_going: bool | None = None
    window: str | None = None
    write_mode: str | None = None
    filter: str | None = None
    max_parallel: int | None = None
    priority: int | None = None


_TEMPLATES = TypeAdapter(dict[str, Template])
_NO_TEMPLATE = Template(when="")


def read_template(name: str | None, path: Path | None) -> Template:
    """Reads a template; one that says nothing, without a name.

    Args:
        name: of it.
        path: the user's file; None for those of the package.

    Raises:
        SettingsError: if the file can't be read, or has no such template.
    """
    if name is None:
        return _NO_TEMPLATE
    templates = read_templates(path)
    if name not in templates:
        listed = "; ".join(f"{key}: {one.when}" for key, one in templates.items())
        raise SettingsError(f"there is no template {name}; there are: {listed}")
    return templates[name]


def read_templates(path: Path | None) -> dict[str, Template]:
    """Reads all templates of a file, or those of the package.

    Raises:
        SettingsError: if it can't be read, or says what no template says.
    """
    source = path if path is not None else files("backfill_engine").joinpath("templates.toml")
    try:
        return _TEMPLATES.validate_python(tomllib.loads(source.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(f"BACKFILL_TEMPLATES={path} can't be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"templates in {source}: {where}: {first['msg']}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"templates in {source}: {error}") from None
