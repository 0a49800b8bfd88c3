"""Databases by SQLAlchemy: how each is opened, and SQL that tells the rows of partitions apart.

Here is all that differs from one database to the next.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BIT
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from backfill_engine.errors import LandingError
from backfill_engine.grains.grain import SliceBound
from backfill_engine.lake.partitions import Slice

HASHES = 2**64
"""A hash of rows is a sum modulo this."""

_FULL_NAMES: dict[str, str] = dict.fromkeys(("postgres", "postgresql"), "postgresql+psycopg2")
_TIME_PARTS = ("year", "month", "day", "hour", "minute")


@contextmanager
def open_database(url: str, owner: str) -> Iterator[sa.Connection]:
    """Opens a database, whose times are those of UTC.

    Args:
        url: as SQLAlchemy has it; no error says what is secret in it.
        owner: what is read, for messages.

    Raises:
        LandingError: if it can't be opened, or asked.
    """
    secrets = [url]
    try:
        parsed = sa.make_url(url)
        secrets += [parsed.password or "", url.partition("@")[0].rpartition(":")[2]]
        parsed = parsed.set(drivername=_FULL_NAMES.get(parsed.drivername, parsed.drivername))
        with sa.create_engine(parsed, poolclass=NullPool).connect() as connection:
            match connection.dialect.name:
                case "postgresql":
                    connection.exec_driver_sql("SET TIME ZONE 'UTC'")
                case "sqlite":
                    driver: Any = connection.connection.driver_connection
                    driver.create_aggregate("backfill_hash", 1, HashSum)
            yield connection
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        text = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        for secret in filter(None, secrets):
            text = text.replace(secret, "***")
        if isinstance(error, ModuleNotFoundError):
            text += ": install its driver, as `backfill-engine[postgres]` does for PostgreSQL"
        # Not as a cause: that would be printed as it is.
        raise LandingError(
            f"{owner} can't be read from its database ({text}): correct its declaration, its "
            "`url`, or the database; nothing was written"
        ) from None


def describe_place(url: str) -> str:
    """Describes a database without who asks it, and how."""
    try:
        parsed = sa.make_url(url)
    except ArgumentError:
        return "url"
    port = f":{parsed.port}" if parsed.port else ""
    return f"{parsed.get_backend_name()}://{parsed.host or ''}{port}/{parsed.database or ''}"


def build_key(column: str, dialect: sa.Dialect, bounds: Slice) -> sa.ColumnElement[Any]:
    """Builds what says the partition; of SQLite, which has no types, null if it says none.

    Args:
        column: its name.
        dialect: of the database.
        bounds: of a partition.
    """
    if isinstance(bounds.start, int):
        key = sa.column(column, sa.BigInteger)
        is_number = sa.func.typeof(key) == "integer"
        return sa.case((is_number, key)) if dialect.name == "sqlite" else key
    if dialect.name == "sqlite":
        is_time = isinstance(bounds.start, dt.datetime)
        return (sa.func.datetime if is_time else sa.func.date)(sa.column(column))
    return sa.column(column)


def is_within(
    key: sa.ColumnElement[Any], stretch: Slice, dialect: sa.Dialect
) -> sa.ColumnElement[bool]:
    """Builds whether a key lies in a slice."""
    start, end = stretch.start, stretch.end
    if dialect.name == "sqlite" and isinstance(start, dt.date):
        start, end = (str(bound).removesuffix("+00:00") for bound in (start, end))  # type: ignore[assignment]
    return (key >= start) & (key < end)


def list_parts(key: sa.ColumnElement[Any], bounds: Slice) -> list[sa.ColumnElement[Any]]:
    """Lists what tells the rows of partitions apart, by words that databases share."""
    if isinstance(bounds.start, int):
        step = sa.literal_column(str(bounds.end - bounds.start), sa.BigInteger)  # type: ignore[operator]
        return [key // step]
    count = 5 if isinstance(bounds.start, dt.datetime) else 3
    return [sa.extract(part, key) for part in _TIME_PARTS[:count]]


def read_value(values: Sequence[Any], bounds: Slice) -> SliceBound:
    """Reads a value of a partition out of what `list_parts` lists."""
    if isinstance(bounds.start, int):
        return int(values[0]) * (bounds.end - bounds.start)  # type: ignore[operator]
    parts = [int(value) for value in values]
    if isinstance(bounds.start, dt.datetime):
        return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc,arg-type]
    return dt.date(*parts)


def build_hash(names: Iterable[str], dialect: sa.Dialect) -> sa.ColumnElement[Any]:
    """Builds the sum of hashes of rows: an integer, or its text.

    Raises:
        LandingError: if the database has no hash that is known here.
    """
    columns = [sa.column(name) for name in names]
    match dialect.name:
        case "postgresql":
            text = sa.cast(sa.func.row(*columns), sa.Text)
            digits = sa.func.substr(sa.func.md5(text), 1, 16)
            bits = sa.cast(sa.func.concat("x", digits), BIT(64))
            return sa.func.sum(sa.cast(bits, sa.BigInteger))
        case "sqlite":
            texts = [sa.cast(sa.func.quote(column), sa.Text) for column in columns]
            return sa.func.backfill_hash(reduce(lambda row, text: row + "," + text, texts))
    raise LandingError(
        f"rows of {dialect.name} can't be hashed: name a column that grows with each change, as "
        "`updated_at`; nothing was written"
    )


class HashSum:
    """Sums hashes of texts in SQLite, which has no hash of its own."""

    def __init__(self) -> None:
        self._total = 0

    def step(self, text: str) -> None:
        """Takes a text."""
        self._total += int.from_bytes(blake2b(text.encode(), digest_size=8).digest())

    def finalize(self) -> str:
        """Returns the sum, for which SQLite's integers are too small."""
        return str(self._total % HASHES)
