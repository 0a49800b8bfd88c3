"""Posts notices to a web server that may be slow, down or wrong; never an error to who posts.

The address is a secret, as such addresses often hold a token: only its host is ever named.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests

_TIMEOUT_SECONDS = 5.0
_BUSY = frozenset({429, 503})


@dataclass(frozen=True)
class Answer:
    """What became of one notice.

    Attributes:
        accepted: whether the receiver has it.
        why_not: in words that name no more of the address than its host; empty if accepted.
        is_reachable: whether it makes sense to try another notice at once.
    """

    accepted: bool
    why_not: str = ""
    is_reachable: bool = True


@dataclass(frozen=True)
class Webhook:
    """Where notices are posted.

    Attributes:
        url: a secret.
        timeout_seconds: most seconds to wait for a connection, and for an answer.
    """

    url: str
    timeout_seconds: float = _TIMEOUT_SECONDS

    def __repr__(self) -> str:
        """Names the host alone."""
        return f"Webhook({self.host})"

    @property
    def host(self) -> str:
        """All of the address that may be logged."""
        return urlsplit(self.url).hostname or "the receiver"

    def post(self, notice: Mapping[str, Any]) -> Answer:
        """Posts one notice as JSON. Only an answer of 200 to 299 is one that accepts it."""
        try:
            with _keep_quiet("urllib3.connection", "urllib3.connectionpool"):
                status = self._post(notice)
        except requests.Timeout:
            why = f"{self.host} did not answer within {self.timeout_seconds:g} s"
            return Answer(accepted=False, why_not=why, is_reachable=False)
        except Exception as error:  # their texts, of whatever class, hold the whole address
            why = f"{self.host} can't be reached ({type(error).__name__})"
            return Answer(accepted=False, why_not=why, is_reachable=False)
        if 200 <= status < 300:
            return Answer(accepted=True)
        why = f"{self.host} answered {status}"
        return Answer(accepted=False, why_not=why, is_reachable=status not in _BUSY)

    def _post(self, notice: Mapping[str, Any]) -> int:
        # Where a receiver sends us on to is none that anybody has set; its page is not read.
        with requests.post(
            self.url,
            data=json.dumps(notice).encode(),
            headers={"Content-Type": "application/json", "User-Agent": "backfill-assets"},
            timeout=self.timeout_seconds,
            allow_redirects=False,
            stream=True,
        ) as response:
            return response.status_code


@contextmanager
def _keep_quiet(*names: str) -> Iterator[None]:
    """Keeps loggers quiet, which name the whole address where they are asked for details."""
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was
