"""The object that a lease is: read, and put only where it still is as it was read.

`obstore` is the store of delta-rs (Rust's object_store) with its conditional puts: it goes by the
same environment variables, and knows S3, Google's and Azure's stores alike.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
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

if TYPE_CHECKING:  # at run time obstore doesn't have them
    from obstore import ObjectMeta, PutResult, UpdateVersion

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
                said = bytes(found.bytes())
            except FileNotFoundError:
                return None
        try:
            content = LeaseContent.model_validate_json(said)
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
