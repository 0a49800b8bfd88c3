"""A web server on loopback that takes notices, and can be slow, broken or gone."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from backfill_engine_tests.ports import find_free_port

_SECRET = "/services/s3cret?token=s3cret"


class Receiver:
    """What a webhook posts to.

    Attributes:
        port: of loopback, the same when it comes back.
        status: what it answers; only what it answers in time with 2xx counts as accepted.
        accepted: the notices that it accepted, in their order.
        requests: how many came, whatever it answered.
    """

    def __init__(self) -> None:
        self.port = find_free_port()
        self.status = 200
        self.accepted: list[dict[str, Any]] = []
        self.requests = 0
        self._is_fast = threading.Event()
        self._is_fast.set()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Its address, which holds secrets."""
        return f"http://me:s3cret@127.0.0.1:{self.port}{_SECRET}"

    def come_up(self) -> None:
        """Begins to listen."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._take(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def go_down(self) -> None:
        """Listens no more."""
        self.hurry()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def dawdle(self) -> None:
        """Answers nobody until `hurry`."""
        self._is_fast.clear()

    def hurry(self) -> None:
        """Answers at once, also those that wait."""
        self._is_fast.set()

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        notice = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.requests += 1
        in_time, status = self._is_fast.is_set(), self.status
        self._is_fast.wait()
        if in_time and 200 <= status < 300:
            self.accepted.append(notice)
        with suppress(OSError):  # who asked has gone
            request.send_response(status)
            if 300 <= status < 400:
                request.send_header("Location", f"http://127.0.0.1:{self.port}/elsewhere")
            request.end_headers()


@contextmanager
def run_receiver() -> Iterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver()
    receiver.come_up()
    try:
        yield receiver
    finally:
        receiver.go_down()
