"""Who asked for what a commit publishes, and why: the same in commits, certificates and history."""

import getpass
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

TO_FILL_IN = "WHY"
"""Stands for a person's reason in the commands that are shown; none that is given."""

_ORIGIN = "origin"
# A name with a password, which may hold anything; or a name alone, which of Azure is a container.
_USER = r"(?:[^\s/:@]*:\S*@|(?<!abfs://)(?<!abfss://)(?<!wasb://)(?<!wasbs://)[^\s/@]+@)?"
_URL = re.compile(rf"(\w+://){_USER}(\S*)")
_PARAMETER = re.compile(r"([?&;][^=&;\s]*=)(?!…)(?:\{[^}\s]*\}|[^&;\s]*)")


@dataclass(frozen=True)
class Origin:
    """Who asked for a run, and why. What is not known is empty.

    Attributes:
        operation: what kind of run it is, as `replay`, `repair`, `daily`, `rollback`.
        by: the person, or the sensor or schedule.
        reason: why, in words.
        command: the command line, as far as options of this project were given.
    """

    operation: str = ""
    by: str = ""
    reason: str = ""
    command: str = ""

    @property
    def known(self) -> dict[str, str]:
        """What is known, by name; without what URLs in it may hold of secrets."""
        return {name: hide_secrets(text) for name, text in asdict(self).items() if text}

    def describe(self) -> dict[str, dict[str, str]]:
        """Describes it by the name that it has among the features of a commit."""
        return {_ORIGIN: self.known} if self.known else {}

    @classmethod
    def read(cls, features: Mapping[str, Any]) -> "Origin":
        """Reads it from the features of a commit; of a commit that says nothing, all is empty."""
        described = features.get(_ORIGIN)
        if not isinstance(described, Mapping):
            return cls()
        names = (field.name for field in fields(cls))
        return cls(**{name: str(described[name]) for name in names if name in described})


UNKNOWN = Origin()
"""That of commits from before, and of what nobody publishes."""


def find_user() -> str:
    """Finds the user of the machine; empty where it knows none, as in some containers."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return ""


def hide_secrets(text: str) -> str:
    """Takes names, passwords and values of parameters out of the URLs in a text."""
    return _URL.sub(lambda url: url[1] + _PARAMETER.sub(r"\1…", url[2]), text)
