"""Spark Connect: whether its server answers, how long to wait for it, how its loss shows.

Its client is imported where it is needed: it takes a while, and Spark in the process needs none.
"""

import re
import socket
import warnings
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from backfill_engine.errors import SparkUnavailableError
from backfill_engine.spark.remotes import hide_parameters

_PORT = 15002
_PATIENCE_SECONDS = 10
# The client drops a session that the server doesn't know, and then has none for the next call.
_FORGOTTEN = re.compile(
    r"INVALID_HANDLE\.(SESSION_(CHANGED|CLOSED|NOT_FOUND)|OPERATION_NOT_FOUND)|\[NO_ACTIVE_SESSION\]"
)

# A server that is started again knows nothing of the session, so that patience is for the network's
# hiccups alone: 20 s in sum. Spark's own is ten minutes, for every call that is left to be made.
_RETRIES = 7
_LONGEST_WAIT_MILLISECONDS = 5000


def check_server(remote: str, *, named_by: str) -> None:
    """Makes sure that a server listens; Spark's own client tries for long before it gives up.

    Args:
        remote: a Spark Connect URL.
        named_by: the setting or the tag that has it, for the message.

    Raises:
        SparkUnavailableError: if none does.
    """
    address = urlsplit(remote.partition(";")[0])
    try:
        host, port = address.hostname or "", address.port or _PORT
        socket.create_connection((host, port), timeout=_PATIENCE_SECONDS).close()
    except (OSError, ValueError) as error:
        raise SparkUnavailableError(
            f"no Spark Connect server answers at {named_by}={hide_parameters(remote)} ({error}): "
            f"start it, or unset {named_by} to run Spark in the process"
        ) from error


def limit_retries(session: SparkSession, *, retries: int = _RETRIES) -> None:
    """Lets the calls of a session fail within half a minute once its server is gone.

    Args:
        session: of Spark Connect.
        retries: how often a call is tried again.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    policy = DefaultPolicy(max_retries=retries, max_backoff=_LONGEST_WAIT_MILLISECONDS)
    session.client.set_retry_policies([policy])
    # It would come behind the error, once for each call that is left to be made.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")


def describe_lost_server(error: BaseException) -> str | None:
    """Describes in one line, with its cure, that a server went away; None for another error."""
    if not isinstance(error, PySparkException):
        return None
    status = getattr(error, "getGrpcStatusCode", lambda: None)()
    if getattr(status, "name", "") == "UNAVAILABLE":
        what = "no longer answers"
    elif _FORGOTTEN.search(str(error)):
        what = "was started anew and knows nothing of this run's session"
    else:
        return None
    return (
        f"the Spark Connect server {what}: what was published stays; see that the server is up, "
        "then run it again"
    )
