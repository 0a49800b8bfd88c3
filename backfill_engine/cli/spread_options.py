"""Lets a command take models of pydantic, whose fields are its options."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from backfill_engine.cli.options import refuse_blank, refuse_empty


def spread_options(command: Callable[..., None]) -> Callable[..., None]:
    """Lets typer see the fields of a command's models as options, in their place.

    A field with a description is an option. Its name is that of the field, or its title, if it has
    one; the command gets the models.

    Args:
        command: of which parameters are annotated with models whose fields have defaults.
    """
    models: dict[str, type[BaseModel]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            models[parameter.name] = kind
            parameters += [
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=Annotated[field.annotation, _build_option(name, field)],
                )
                for name, field in _find_options(kind).items()
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def spread(**given: Any) -> None:
        built = {
            name: kind(**{option: given.pop(option) for option in _find_options(kind)})
            for name, kind in models.items()
        }
        command(**built, **given)

    # What typer goes by, and `inspect` with it.
    spread.__dict__["__signature__"] = inspect.Signature(parameters)
    return spread


def _find_options(kind: type[BaseModel]) -> dict[str, FieldInfo]:
    return {name: field for name, field in kind.model_fields.items() if field.description}


def _build_option(name: str, field: FieldInfo) -> Any:
    word = (field.title or name).replace("_", "-")
    if field.annotation in (bool, bool | None):
        names = f"--{word}" if field.annotation is bool else f"--{word}/--no-{word}"
        return typer.Option(names, help=field.description)
    refuse = refuse_empty if field.default is None else refuse_blank
    return typer.Option(f"--{word}", help=field.description, callback=refuse)
