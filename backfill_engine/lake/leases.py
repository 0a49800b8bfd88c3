"""Leases: one writer at a time on object stores, kept by conditional puts.

A lease is an object that its holder puts anew all the while, each time only if it still is what
the holder put last. Who waits for it takes it over, in the same way, once it has not changed for as
long as it says that it holds. No clocks are compared: a waiter counts from when it saw a change, by
a clock of its own that only has to run at the usual speed.

A holder that stood still for longer than that has lost it. It learns so from the store: `check`
puts the object once more, and belongs right before each commit.

A lease's object is put only where it still is as it was read. `obstore` is the store of delta-rs
(Rust's object_store) with its conditional puts: it goes by the same environment variables, and
knows S3, Google's and Azure's stores alike.
"""

import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError, PreconditionError
from obstore.store import from_url
from pydantic import BaseModel, ValidationError

from backfill_engine.errors import TableLockedError
from backfill_engine.lake.delta_logs import shorten_cause
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.uris import join_uri

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutResult, UpdateVersion

EXPIRY_SECONDS = 60.0
_RENEWALS = 4  # within the expiry
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 1.0

_PROVEN = set[str]()
"""Roots of which the store is known to this process to go by conditions."""


_SCHEMES = ("s3a", "s3", "gs", "abfss", "abfs")
_RETRYING_SECONDS = 20  # an unanswered request is given up after 30, obstore's default
_FOLDER = "_locks"


class LeaseContent(BaseModel, frozen=True):
    """What the object says; no two puts are of the same content, so that every put is a change.

    Attributes:
        lease: a holder's name for the time from taking it to giving it back.
        number: of the put, in that time.
        holder: host and process; None if nobody holds it.
        expiry_seconds: for how long it holds without another put.
    """

    lease: str
    number: int
    holder: str | None
    expiry_seconds: float


@dataclass(frozen=True)
class LeaseVersion:
    """The object as it was read, or put: what a conditional put compares.

    Attributes:
        condition: the e-tag, and for stores that have one the version, as obstore takes them.
        content: what it says; None for what isn't a lease's content.
    """

    condition: "UpdateVersion"
    content: LeaseContent | None


class LeaseObject:
    """The object of one lease.

    Attributes:
        root: of the warehouse.
        uri: where it is.
    """

    def __init__(self, warehouse: Warehouse, name: str) -> None:
        """Opens the store; the object need not exist.

        Raises:
            TableLockedError: if the store can't be opened.
        """
        self._path = f"{_FOLDER}/{name.replace('/', '.')}.json"
        self.root = warehouse.root
        self.uri = join_uri(warehouse.root, self._path)
        with self._describe_errors():
            self._store = from_url(
                warehouse.root,
                retry_config={"retry_timeout": timedelta(seconds=_RETRYING_SECONDS)},
            )

    def read(self) -> LeaseVersion | None:
        """Reads the object; None if there is none.

        Raises:
            TableLockedError: if the store doesn't answer.
        """
        with self._describe_errors():
            try:
                found = obstore.get(self._store, self._path)
                text = bytes(found.bytes())
            except FileNotFoundError:
                return None
        try:
            content = LeaseContent.model_validate_json(text)
        except ValidationError:
            content = None
        return LeaseVersion(_read_condition(found.meta), content)

    def put(self, content: LeaseContent, *, over: LeaseVersion | None) -> LeaseVersion | None:
        """Puts `content` if the object still is `over`, or with None if there is still none.

        Returns:
            What was put; None if another put came first.

        Raises:
            TableLockedError: if the store doesn't answer, or has no conditional puts.
        """
        with self._describe_errors():
            try:
                result = obstore.put(
                    self._store,
                    self._path,
                    content.model_dump_json().encode(),
                    mode=over.condition if over else "create",
                )
            except (AlreadyExistsError, PreconditionError):
                pass
            except FileNotFoundError:
                if over is None:
                    raise  # it is the bucket that isn't there
            else:
                return LeaseVersion(_read_condition(result), content)
        # A put of which the answer got lost is sent again, and meets itself.
        found = self.read()
        return found if found is not None and found.content == content else None

    def check_conditions(self, held: LeaseVersion) -> None:
        """Makes sure that the store goes by the conditions of puts; some answer, and ignore them.

        Args:
            held: the object as it is now.

        Raises:
            TableLockedError: if it doesn't.
        """
        assert held.content is not None
        false = LeaseVersion({"e_tag": f'"{uuid.uuid4().hex}"', "version": "0"}, None)
        for over in (None, false):
            content = held.content.model_copy(update={"lease": str(uuid.uuid4())})
            if self.put(content, over=over) is not None:
                raise TableLockedError(
                    f"{self.uri}: this store overwrites objects though asked not to (If-None-Match,"
                    " If-Match), so that two runs could write one table at once: keep tables on a "
                    "store with conditional puts"
                )

    @contextmanager
    def _describe_errors(self) -> Iterator[None]:
        try:
            yield
        except NotSupportedError as error:
            raise TableLockedError(
                f"{self.uri}: this store has no conditional puts, so that two runs could write one "
                "table at once: keep tables on one that has"
            ) from error
        except (BaseError, OSError, ValueError) as error:
            raise TableLockedError(
                f"the lease {self.uri} can't be read or written ({shorten_cause(error)}): make its "
                "storage answer, and let this user read and write there"
            ) from error


def has_leases(root: str) -> bool:
    """Tells whether leases can be had on this kind of storage."""
    return root.partition("://")[0] in _SCHEMES


def _read_condition(found: "ObjectMeta | PutResult") -> "UpdateVersion":
    e_tag, version = found["e_tag"], found["version"]
    # obstore takes no None for a version that the store doesn't have.
    return {"e_tag": e_tag, "version": version} if version else {"e_tag": e_tag}


class Lease:
    """A lease that this process holds, and a thread of it renews."""

    def __init__(self, place: LeaseObject, name: str, held: LeaseVersion) -> None:
        """Goes on from the put by which it was taken; see `take_lease`."""
        assert held.content is not None
        self._place, self._name = place, name
        self._held, self._content = held, held.content
        self._lost = False
        self._putting = threading.Lock()
        self._released = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name=f"lease of {name}", daemon=True)
        self._renewing.start()

    def check(self) -> None:
        """Makes sure that it is still held, by a put: right before what only its holder may do.

        Raises:
            TableLockedError: if it was lost, or the store doesn't answer.
        """
        with self._putting:
            self._put(holder=self._content.holder)
            if self._lost:
                raise TableLockedError(
                    f"{self._name}: the lease {self._place.uri} was lost, as this process or its "
                    f"storage stood still for over {self._content.expiry_seconds:.0f} s and another"
                    " process took it over: run again"
                )

    def release(self) -> None:
        """Gives it back.

        Raises:
            TableLockedError: if it was lost meanwhile, or the store doesn't answer; it then ends by
                itself.
        """
        self._released.set()
        self._renewing.join()
        with self._putting:
            self._put(holder=None)
            if self._lost:
                raise TableLockedError(
                    f"{self._name}: the lease {self._place.uri} was lost while it was in use, so "
                    "that another process may have written at the same time: look at the last "
                    "commits, and run again"
                )

    def _renew(self) -> None:
        while not self._released.wait(self._content.expiry_seconds / _RENEWALS):
            # Where the store doesn't answer, it may do so again before the lease ends.
            with self._putting, suppress(TableLockedError):
                self._put(holder=self._content.holder)

    def _put(self, *, holder: str | None) -> None:
        if self._lost:
            return
        number = self._content.number + 1
        self._content = self._content.model_copy(update={"number": number, "holder": holder})
        held = self._place.put(self._content, over=self._held)
        if held is None:
            # An earlier put of ours may have come through, and its answer got lost.
            found = self._place.read()
            if found and found.content and found.content.lease == self._content.lease:
                held = self._place.put(self._content, over=found)
        if held is None:
            self._lost = True
        else:
            self._held = held


def take_lease(
    place: LeaseObject,
    name: str,
    *,
    timeout_seconds: float,
    expiry_seconds: float = EXPIRY_SECONDS,
) -> Lease:
    """Takes a lease, and waits while another process holds it.

    Args:
        place: its object.
        name: what it is the lease of, for messages.
        timeout_seconds: how long to wait.
        expiry_seconds: for how long it holds after the last sign of life of this process.

    Raises:
        TableLockedError: if another process holds it for longer than `timeout_seconds`, the store
            doesn't answer, or it has no conditional puts.
    """
    deadline = time.monotonic() + timeout_seconds
    own = f"{socket.gethostname()}, process {os.getpid()}"
    content = LeaseContent(
        lease=str(uuid.uuid4()), number=0, holder=own, expiry_seconds=expiry_seconds
    )
    watched: LeaseVersion | None = None
    watched_since, pause = time.monotonic(), _FIRST_PAUSE_SECONDS
    while True:
        seen = place.read()
        now = time.monotonic()
        if seen != watched:
            watched, watched_since = seen, now
        if _is_free(seen, now - watched_since):
            held = place.put(content, over=seen)
            if held is not None:
                if place.root not in _PROVEN:
                    place.check_conditions(held)
                    _PROVEN.add(place.root)
                return Lease(place, name, held)
        elif now >= deadline:
            raise TableLockedError(
                f"another process ({_name_holder(seen)}) has been writing {name} for over "
                f"{timeout_seconds:.0f} s (lease {place.uri}): wait for it or stop it, then run "
                "again"
            )
        time.sleep(random.uniform(pause / 2, pause))
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _is_free(seen: LeaseVersion | None, unchanged_seconds: float) -> bool:
    if seen is None:
        return True
    if seen.content is None:  # nothing that this project wrote; nobody renews it
        return unchanged_seconds > EXPIRY_SECONDS
    return seen.content.holder is None or unchanged_seconds > seen.content.expiry_seconds


def _name_holder(seen: LeaseVersion | None) -> str:
    return (seen and seen.content and seen.content.holder) or "of another kind"
