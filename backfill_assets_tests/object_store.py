"""An S3 store for tests: moto's server on a port of its own, with bytes in memory.

moto looks whether an object is there and then puts it, in two steps; S3 does both as one. So
requests that write go one at a time here, and conditional puts are as exclusive as they are on S3.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

ACCESS_KEY, SECRET_KEY, REGION = "tester", "tester-secret", "us-east-1"
BUCKET = "lake"


@dataclass
class ObjectStore:
    """A running store with one bucket.

    Attributes:
        endpoint: its URL.
        requests: how many were answered, by method.
        ignores_conditions: whether it overwrites though asked not to, as some stores do.
    """

    endpoint: str
    requests: Counter[str] = field(default_factory=Counter)
    ignores_conditions: bool = False

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


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as S3 does

    def log(self, type: str, message: str, *args: Any) -> None:
        """Says nothing of single requests."""


@contextmanager
def serve_object_store() -> Iterator[ObjectStore]:
    """Runs a store with an empty bucket while the block runs."""
    moto = DomainDispatcherApplication(create_backend_app)
    writing = threading.Lock()
    store = ObjectStore("")

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        store.requests[method] += 1
        if method in ("GET", "HEAD"):
            return moto(environ, start_response)
        if store.ignores_conditions:
            for condition in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"):
                environ.pop(condition, None)
        with writing:
            return moto(environ, start_response)

    server = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=_Quiet)
    store.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        create_bucket(store)
        store.requests.clear()
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def create_bucket(store: ObjectStore) -> None:
    """Creates the bucket, empty."""
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=REGION,
    )
    client.create_bucket(Bucket=BUCKET)
    client.close()
