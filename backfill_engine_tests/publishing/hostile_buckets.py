"""Ways in which landed Parquet goes bad, and what is to become of it: data of test_hostile_parquet.

Each case has a bucket of its own, which landed in a file of orders and one of lines, and was
published unless it is `new`. Then its files are spoiled, and all buckets are run once more.
"""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

STEP = 100_000
ORDERS, LINES = 100, 150
ROWS = ORDERS + LINES
WITHHELD = "withheld"
_DAY = dt.date(1996, 1, 2)
_CENTS = pa.decimal128(15, 2)
_ORDER_TYPES = {
    "o_orderkey": pa.int64(),
    "o_custkey": pa.int64(),
    "o_orderstatus": pa.string(),
    "o_totalprice": _CENTS,
    "o_orderdate": pa.date32(),
    "o_orderpriority": pa.string(),
}
_LINE_TYPES = {
    "l_orderkey": pa.int64(),
    "l_linenumber": pa.int32(),
    "l_partkey": pa.int64(),
    "l_suppkey": pa.int64(),
    "l_quantity": _CENTS,
    "l_extendedprice": _CENTS,
    "l_discount": _CENTS,
    "l_tax": _CENTS,
    "l_returnflag": pa.string(),
    "l_shipdate": pa.date32(),
    "l_commitdate": pa.date32(),
    "l_receiptdate": pa.date32(),
}


def build_orders(start: int, count: int = ORDERS) -> pa.Table:
    """Orders of a bucket, every hundredth key."""
    keys = [start + 100 * n for n in range(count)]
    return _build(_ORDER_TYPES, keys, "o_orderkey")


def build_lines(start: int, count: int = LINES) -> pa.Table:
    """Lines of a bucket, likewise."""
    keys = [start + 100 * n for n in range(count)]
    return _build(_LINE_TYPES, keys, "l_orderkey")


def _build(columns: dict[str, pa.DataType], keys: Sequence[int], key: str) -> pa.Table:
    values: dict[pa.DataType, Any] = {
        pa.int64(): 7,
        pa.int32(): 1,
        pa.string(): "O",
        _CENTS: Decimal("0.04"),
        pa.date32(): _DAY,
    }
    arrays = {
        name: pa.array(keys if name == key else [values[type_]] * len(keys), type_)
        for name, type_ in columns.items()
    }
    return pa.table(arrays)


@dataclass(frozen=True)
class Bucket:
    """A bucket that landed in files of its own."""

    root: Path
    start: int

    @property
    def orders(self) -> Path:
        """Its file of orders."""
        return self.root / "orders" / "orders" / f"{self.start:07}.parquet"

    @property
    def lines(self) -> Path:
        """Its file of lines."""
        return self.root / "orders" / "lineitem" / f"{self.start:07}.parquet"

    def land(self) -> None:
        """Lands it well."""
        write(self.orders, build_orders(self.start))
        write(self.lines, build_lines(self.start))

    @property
    def next(self) -> "Bucket":
        """The bucket after it."""
        return Bucket(self.root, self.start + STEP)


def write(path: Path, table: pa.Table, **options: Any) -> None:
    """Writes a file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)


@dataclass(frozen=True)
class Case:
    """What is done to a bucket, and what the second run makes of it.

    Attributes:
        name: of the case.
        spoil: what is done.
        becomes: rows published by the second run, or `WITHHELD`.
        rule: the rule that withholds; of a published one, the one that warns; empty for none.
        says: part of what it finds.
        quarantined: part of the reason of each record in the quarantine.
        new: whether it was never published before.
    """

    name: str
    spoil: Callable[[Bucket], Any]
    becomes: int | str
    rule: str = ""
    says: str = ""
    quarantined: tuple[str, ...] = ()
    new: bool = False


def _leave(bucket: Bucket) -> None:
    del bucket


def _change_orders(change: Callable[[pa.Table], pa.Table]) -> Callable[[Bucket], None]:
    return lambda bucket: write(bucket.orders, change(build_orders(bucket.start)))


def _change_lines(change: Callable[[pa.Table], pa.Table]) -> Callable[[Bucket], None]:
    return lambda bucket: write(bucket.lines, change(build_lines(bucket.start)))


def _cast(table: pa.Table, column: str, type_: pa.DataType) -> pa.Table:
    at = table.schema.get_field_index(column)
    return table.set_column(at, column, table[column].cast(type_))


def _set(table: pa.Table, column: str, value: Any, type_: pa.DataType) -> pa.Table:
    at = table.schema.get_field_index(column)
    return table.set_column(at, column, pa.array([value] * len(table), type_))


def _drop_keys(table: pa.Table, key: str, *rows: int) -> pa.Table:
    keys = [None if at in rows else value for at, value in enumerate(table[key].to_pylist())]
    return table.set_column(table.schema.get_field_index(key), key, pa.array(keys, pa.int64()))


def _without_keys(count: int, start: int = 0) -> pa.Table:
    return _drop_keys(build_lines(start, count), "l_orderkey", *range(count))


def _break_pages(path: Path) -> None:
    content = path.read_bytes()
    group = pq.read_metadata(path).row_group(0)
    end = 4 + sum(group.column(at).total_compressed_size for at in range(group.num_columns))
    path.write_bytes(content[:4] + b"\xff" * (end - 4) + content[end:])


def _span_with_null_keys(bucket: Bucket) -> None:
    both = pa.concat_tables([build_lines(bucket.start), build_lines(bucket.next.start)])
    bucket.next.lines.unlink()
    # The records without a key stand among those of the second bucket.
    write(bucket.lines, _drop_keys(pa.concat_tables([both, _without_keys(2)]), "l_orderkey", 299))


def _span_lacking_a_column(bucket: Bucket) -> None:
    both = pa.concat_tables([build_orders(bucket.start), build_orders(bucket.next.start)])
    bucket.next.orders.unlink()
    write(bucket.orders, both.drop_columns("o_orderpriority"))


def _span_well(bucket: Bucket) -> None:
    both = pa.concat_tables([build_lines(bucket.start), build_lines(bucket.next.start)])
    bucket.next.lines.unlink()
    write(bucket.lines, both, row_group_size=70)


def _add_row_group_without_keys(bucket: Bucket) -> None:
    lines = build_lines(bucket.start)
    with pq.ParquetWriter(bucket.lines, lines.schema) as writer:
        writer.write_table(lines)
        writer.write_table(_without_keys(1))


def _cut(bucket: Bucket) -> None:
    lines = build_lines(bucket.start)
    write(bucket.lines, lines.slice(0, 60))
    write(bucket.lines.with_name(f"{bucket.start}-b.parquet"), lines.slice(60))


def _remove(bucket: Bucket) -> None:
    bucket.orders.unlink()
    bucket.lines.unlink()


def _copy(bucket: Bucket) -> None:
    name = f"{bucket.start}-copy.parquet"
    bucket.orders.with_name(name).write_bytes(bucket.orders.read_bytes())


READABLE = "files_are_readable"

CASES = [
    Case("as it was", _leave, ROWS),
    Case(
        "orders lack a column",
        _change_orders(lambda orders: orders.drop_columns("o_custkey")),
        WITHHELD,
        READABLE,
        "lacks the column o_custkey: land it as it was declared",
        ("lacks the column o_custkey",),
    ),
    Case(
        "lines lack a column",
        _change_lines(lambda lines: lines.drop_columns(["l_tax", "l_shipdate"])),
        WITHHELD,
        READABLE,
        "lacks the column l_tax; lacks the column l_shipdate",
        ("lacks the column l_tax",),
    ),
    Case(
        "amounts as doubles",
        _change_orders(lambda orders: _cast(orders, "o_totalprice", pa.float64())),
        WITHHELD,
        READABLE,
        "has o_totalprice as double, not DECIMAL(15,2)",
        ("as double",),
    ),
    Case(
        "amounts of another scale",
        _change_orders(lambda orders: _cast(orders, "o_totalprice", pa.decimal128(15, 3))),
        WITHHELD,
        READABLE,
        "has o_totalprice as decimal128(15, 3)",
        ("decimal128(15, 3)",),
    ),
    Case(
        "amounts of fewer digits",
        _change_orders(lambda orders: _cast(orders, "o_totalprice", pa.decimal128(9, 2))),
        ROWS,
    ),
    Case(
        "days as text",
        _change_lines(lambda lines: _cast(lines, "l_shipdate", pa.string())),
        WITHHELD,
        READABLE,
        "has l_shipdate as string, not DATE",
        ("as string",),
    ),
    Case(
        "days as times",
        _change_lines(lambda lines: _cast(lines, "l_shipdate", pa.timestamp("us"))),
        WITHHELD,
        READABLE,
        "has l_shipdate as timestamp[us], not DATE",
        ("as timestamp",),
    ),
    Case(
        "keys of 32 bits",
        _change_orders(lambda orders: _cast(orders, "o_orderkey", pa.int32())),
        ROWS,
    ),
    Case(
        "keys without a sign",
        _change_orders(lambda orders: _cast(orders, "o_orderkey", pa.uint64())),
        WITHHELD,
        READABLE,
        "has o_orderkey as uint64, not BIGINT",
        ("as uint64",),
    ),
    Case(
        "numbers of 64 bits",
        _change_lines(lambda lines: _cast(lines, "l_linenumber", pa.int64())),
        WITHHELD,
        READABLE,
        "has l_linenumber as int64, not INT",
        ("as int64",),
    ),
    Case(
        "text as a dictionary",
        _change_lines(
            lambda lines: _cast(lines, "l_returnflag", pa.dictionary(pa.int32(), pa.string()))
        ),
        ROWS,
    ),
    Case(
        "long text",
        _change_orders(lambda orders: _cast(orders, "o_orderstatus", pa.large_string())),
        ROWS,
    ),
    Case(
        "text as bytes",
        _change_orders(lambda orders: _cast(orders, "o_orderstatus", pa.binary())),
        WITHHELD,
        READABLE,
        "has o_orderstatus as binary, not STRING",
        ("as binary",),
    ),
    Case(
        "names in capitals",
        _change_orders(lambda orders: orders.rename_columns({"o_custkey": "O_CUSTKEY"})),
        WITHHELD,
        READABLE,
        "lacks the column o_custkey",
        ("lacks the column",),
    ),
    Case(
        "a name twice but for capitals",
        _change_orders(lambda orders: orders.append_column("O_CUSTKEY", orders["o_custkey"])),
        WITHHELD,
        READABLE,
        "has the column o_custkey more than once",
        ("more than once",),
    ),
    Case(
        "one more column",
        _change_orders(lambda orders: orders.append_column("o_clerk", orders["o_orderstatus"])),
        ROWS,
    ),
    Case(
        "columns in another order",
        _change_lines(lambda lines: lines.select(lines.column_names[::-1])),
        ROWS,
    ),
    Case(
        "broken pages",
        lambda bucket: _break_pages(bucket.lines),
        WITHHELD,
        READABLE,
        "parquet can't be read",
        ("can't be read",),
    ),
    Case(
        "a key that is null",
        _change_lines(lambda lines: _drop_keys(lines, "l_orderkey", 5)),
        ROWS - 1,
        quarantined=("`l_orderkey` is null",),
    ),
    Case(
        "an order's key that is null",
        _change_orders(lambda orders: _drop_keys(orders, "o_orderkey", 0)),
        ROWS - 1,
        quarantined=("`o_orderkey` is null",),
    ),
    Case(
        "ten keys that are null",
        _change_lines(lambda lines: _drop_keys(lines, "l_orderkey", *range(10))),
        WITHHELD,
        "rejects",
        "at most 0.01 of the records",
        10 * ("`l_orderkey` is null",),
    ),
    Case(
        "a row group of null keys",
        _add_row_group_without_keys,
        ROWS,
        quarantined=("`l_orderkey` is null",),
    ),
    Case(
        "null keys in a file of two buckets",
        _span_with_null_keys,
        WITHHELD,
        "rejects",
        "",
        3 * ("`l_orderkey` is null",),
    ),
    Case("the second of these", _leave, ROWS - 1),
    Case("a file of two buckets", _span_well, ROWS),
    Case("the second of them", _leave, ROWS),
    Case(
        "a column lacks in a file of two buckets",
        _span_lacking_a_column,
        WITHHELD,
        READABLE,
        "lacks the column o_orderpriority",
        ("lacks the column",),
    ),
    Case("the second one", _leave, WITHHELD, READABLE, "lacks the column", ("lacks the column",)),
    Case("landed twice", _copy, WITHHELD, "files_differ", "-copy.parquet"),
    Case("files gone", _remove, WITHHELD, "row_count", "no file holds a key of it: land it again"),
    Case("lines gone", lambda bucket: bucket.lines.unlink(), WITHHELD, "shrink", "100 are left"),
    Case(
        "few lines",
        lambda bucket: write(bucket.lines, build_lines(bucket.start, 9)),
        WITHHELD,
        "shrink",
        "at most 0.5 of 250 rows may vanish: 109 are left",
    ),
    Case(
        "fewer lines",
        lambda bucket: write(bucket.lines, build_lines(bucket.start, 100)),
        ROWS - 50,
    ),
    Case(
        "lines thrice",
        _change_lines(lambda lines: pa.concat_tables([lines, lines, lines])),
        WITHHELD,
        "row_count_ratio",
        "0.5 to 2.0 times 250",
    ),
    Case("cut in two", _cut, ROWS),
    Case(
        "beside a file of no rows",
        lambda bucket: write(
            bucket.lines.with_name(f"{bucket.start}-none.parquet"), build_lines(0, 0)
        ),
        ROWS,
    ),
    Case(
        "beside a hidden file",
        lambda bucket: bucket.lines.with_name(f".{bucket.start}.parquet").write_bytes(b""),
        ROWS,
    ),
    Case("new: well", _leave, ROWS, new=True),
    Case("new: no files", _remove, WITHHELD, "row_count", "no file holds a key of it", new=True),
    Case(
        "new: few rows",
        lambda bucket: [bucket.orders.unlink(), write(bucket.lines, build_lines(bucket.start, 9))],
        WITHHELD,
        "row_count_ratio",
        "0.5 to 2.0 times 250",
        new=True,
    ),
    Case(
        "new: broken pages",
        lambda bucket: _break_pages(bucket.orders),
        WITHHELD,
        READABLE,
        "parquet can't be read",
        ("can't be read",),
        new=True,
    ),
    # The largest key is its own: the sequence is still in it, so its rows may be few.
    Case(
        "new: the sequence is in it",
        lambda bucket: [
            write(bucket.orders, build_orders(bucket.start, 20)),
            bucket.lines.unlink(),
        ],
        20,
        "row_count_ratio",
        "0.5 to 2.0 times 250",
        new=True,
    ),
]
