"""Commands that take dataclasses of options, each field of which is an option of its own."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def spread_options(command: Callable[..., None]) -> Callable[..., None]:
    """Lets typer see the fields of a command's dataclasses as options, in their place.

    Their names, types and defaults are those of the fields; the command gets the dataclasses.

    Args:
        command: of which parameters are annotated with dataclasses whose fields have defaults.
    """
    bundles: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = parameter.annotation
        if not is_dataclass(kind):
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        assert isinstance(kind, type)
        bundles[parameter.name] = kind
        hints = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=one.default,
                annotation=hints[one.name],
            )
            for one in fields(kind)
        ]

    @wraps(command)
    def spread(**given: Any) -> None:
        bundled = {
            name: kind(**{one.name: given.pop(one.name) for one in fields(kind)})
            for name, kind in bundles.items()
        }
        command(**bundled, **given)

    # What typer goes by, and `inspect` with it.
    spread.__dict__["__signature__"] = inspect.Signature(parameters)
    spread.__annotations__ = {one.name: one.annotation for one in parameters}
    return spread
