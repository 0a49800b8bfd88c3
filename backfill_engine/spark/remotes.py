"""Names of Spark Connect servers: which a run may carry, and how they are shown. No Spark."""

import re
from urllib.parse import urlsplit

from backfill_engine.errors import SettingsError

SPARK_REMOTE_TAG = "backfill_assets/spark_remote"
"""Tag of a run: the Spark Connect URL that it goes by, in place of SPARK_REMOTE."""

_USER = re.compile("//.*@")
_EXAMPLE = "name a Spark Connect server, as in sc://host:15002"


def check_tagged_remote(remote: str, *, named_by: str) -> None:
    """Checks the server that a run is to name in its tags, which all who see it can read.

    Args:
        remote: what should be a Spark Connect URL.
        named_by: the option or the tag that has it, for the message.

    Raises:
        SettingsError: if it is none, or holds a token.
    """
    shown = f"{named_by}={hide_parameters(remote)}"
    if not remote.startswith("sc://"):
        raise SettingsError(f"{shown}: {_EXAMPLE}")
    if "token=" in remote.lower() or "@" in remote:
        raise SettingsError(
            f"{shown}: whoever sees the run reads its tags, so a token doesn't belong there: "
            "set SPARK_REMOTE where runs are started instead"
        )
    server = remote.partition(";")[0]
    try:
        address = urlsplit(server)
        port = address.port
    except ValueError:
        raise SettingsError(f"{shown}: its port or host is none: {_EXAMPLE}") from None
    plain = f"sc://{address.netloc}"
    if not address.hostname or port == 0 or re.search(r"[\s\x00-\x1f]", remote):
        raise SettingsError(f"{shown}: it has no host, or no port that can be: {_EXAMPLE}")
    if server not in (plain, f"{plain}/"):
        raise SettingsError(f"{shown}: parameters come after `/;`, and no path: {_EXAMPLE}")


def hide_parameters(remote: str) -> str:
    """Returns a Spark Connect URL without what may be secret: its parameters, a name before `@`."""
    return _USER.sub("//", remote.partition("/;")[0].partition(";")[0])
