"""An S3 store for tests: moto's server as a process of its own, with bytes in memory.

moto looks whether an object is there and then puts it, in two steps; S3 does both as one. So
requests that write go one at a time here, and conditional puts are as exclusive as they are on S3.
In the test's process it would wait for itself: delta-rs keeps Python's lock while it waits.
"""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

ACCESS_KEY, SECRET_KEY, REGION = "tester", "tester-secret", "us-east-1"
BUCKET = "lake"
_OWN = "/-/"  # no bucket is called so
_CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")


@dataclass(frozen=True)
class ObjectStore:
    """A running store with one bucket.

    Attributes:
        endpoint: its URL.
    """

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which Spark, Arrow, delta-rs and the leases find it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
        }

    def take_requests(self) -> dict[str, int]:
        """How many it has answered since this was asked last, by method."""
        return json.loads(self._ask("requests"))

    def heed_conditions(self, *, heed: bool) -> None:
        """Lets it overwrite though asked not to, as some stores do, or no longer."""
        self._ask("heed" if heed else "ignore")

    def delay_commits(self, *, seconds: float) -> None:
        """Takes its time with each put of a Delta log, from when it was asked to when it is done.

        S3 takes some tens of milliseconds, this server next to none.
        """
        self._ask(f"delay/{seconds}")

    def create_bucket(self) -> None:
        """Creates the bucket, empty."""
        self._ask("bucket")

    def _ask(self, what: str) -> bytes:
        with urllib.request.urlopen(f"{self.endpoint}{_OWN}{what}", timeout=10) as answer:
            return answer.read()


@contextmanager
def serve_object_store() -> Iterator[ObjectStore]:
    """Runs a store with an empty bucket while the block runs."""
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            store = ObjectStore(server.stdout.readline().strip())
            store.create_bucket()
            store.take_requests()
            yield store
        finally:
            server.kill()


class _Application:
    """moto behind what tests ask of a store: counts, delays, and ignored conditions."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._writing = threading.Lock()
        self._requests = Counter[str]()
        self._ignored: tuple[str, ...] = ()
        self._commit_seconds = 0.0

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if path.startswith(_OWN):
            answer = self._obey(*path.removeprefix(_OWN).split("/"))
            start_response("200 OK", [("Content-Length", str(len(answer)))])
            return [answer]
        self._requests[method] += 1
        if method in ("GET", "HEAD"):
            return self._moto(environ, start_response)
        for condition in self._ignored:
            environ.pop(condition, None)
        if method == "PUT" and "/_delta_log/" in path:
            time.sleep(self._commit_seconds)
        with self._writing:
            return self._moto(environ, start_response)

    def _obey(self, what: str, value: str = "") -> bytes:
        match what:
            case "requests":
                counts = json.dumps(self._requests).encode()
                self._requests.clear()
                return counts
            case "bucket":
                s3_backends["123456789012"]["aws"].create_bucket(BUCKET, REGION)
            case "delay":
                self._commit_seconds = float(value)
            case "heed":
                self._ignored = ()
            case "ignore":
                self._ignored = _CONDITIONS
        return b""


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as S3 does

    def log(self, type: str, message: str, *args: Any) -> None:
        """Says nothing of single requests."""


def run_server() -> None:
    """Answers on a free port, which it prints, until it is killed."""
    server = make_server("127.0.0.1", 0, _Application(), threaded=True, request_handler=_Quiet)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    run_server()
