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

from backfill_assets.tables.orders import LANDED_LINE_FIELDS, LANDED_ORDER_FIELDS
from backfill_engine.contents.canonical_words import find_arrow_type
from backfill_engine.tables.declarations import Column
from backfill_engine_tests.publishing.hostile_cases import WITHHELD, Case, leave, unreadable

STEP = 100_000
ORDERS, LINES = 100, 150
ROWS = ORDERS + LINES
_VALUES: dict[pa.DataType, Any] = {
    pa.int64(): 7,
    pa.int32(): 1,
    pa.string(): "O",
    pa.decimal128(15, 2): Decimal("0.04"),
    pa.date32(): dt.date(1996, 1, 2),
}


def build_orders(start: int, count: int = ORDERS) -> pa.Table:
    """Orders of a bucket, every hundredth key."""
    return _build(LANDED_ORDER_FIELDS, [start + 100 * n for n in range(count)])


def build_lines(start: int, count: int = LINES) -> pa.Table:
    """Lines of a bucket, likewise."""
    return _build(LANDED_LINE_FIELDS, [start + 100 * n for n in range(count)])


def _build(fields: Sequence[Column], keys: Sequence[int]) -> pa.Table:
    """The first of the fields is the key."""
    types = {field.name: find_arrow_type(field) for field in fields}
    columns = {name: [_VALUES[type_]] * len(keys) for name, type_ in types.items()}
    return pa.table({**columns, fields[0].name: keys}, pa.schema([*types.items()]))


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


def _change_orders(change: Callable[[pa.Table], pa.Table]) -> Callable[[Bucket], None]:
    return lambda bucket: write(bucket.orders, change(build_orders(bucket.start)))


def _change_lines(change: Callable[[pa.Table], pa.Table]) -> Callable[[Bucket], None]:
    return lambda bucket: write(bucket.lines, change(build_lines(bucket.start)))


def _change(column: str, change: Callable[[pa.Table], pa.Table]) -> Callable[[Bucket], None]:
    """Of the file that has the column."""
    return _change_orders(change) if column.startswith("o_") else _change_lines(change)


def _cast(column: str, type_: pa.DataType) -> Callable[[Bucket], None]:
    def cast(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(column)
        return table.set_column(at, column, table[column].cast(type_))

    return _change(column, cast)


def _misfit(name: str, column: str, type_: pa.DataType, found: str) -> Case:
    return unreadable(name, _cast(column, type_), f"has {column} as {found}")


def _drop_keys(table: pa.Table, key: str, *rows: int) -> pa.Table:
    keys = [None if at in rows else value for at, value in enumerate(table[key].to_pylist())]
    return table.set_column(table.schema.get_field_index(key), key, pa.array(keys, pa.int64()))


def _empty_keys(key: str, *rows: int) -> Callable[[Bucket], None]:
    return _change(key, lambda table: _drop_keys(table, key, *rows))


def _without_keys(count: int) -> pa.Table:
    return _drop_keys(build_lines(0, count), "l_orderkey", *range(count))


def _write_lines(count: int) -> Callable[[Bucket], None]:
    return lambda bucket: write(bucket.lines, build_lines(bucket.start, count))


def _write_few_lines(bucket: Bucket) -> None:
    bucket.orders.unlink()
    _write_lines(9)(bucket)


def _write_few_orders(bucket: Bucket) -> None:
    bucket.lines.unlink()
    write(bucket.orders, build_orders(bucket.start, 20))


def _add_file_of_no_rows(bucket: Bucket) -> None:
    write(bucket.lines.with_name(f"{bucket.start}-none.parquet"), build_lines(0, 0))


def _add_hidden_file(bucket: Bucket) -> None:
    bucket.lines.with_name(f".{bucket.start}.parquet").write_bytes(b"")


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


AMOUNT, DAY, KEY = "o_totalprice", "l_shipdate", "`l_orderkey` is null"
BROKEN = "can't be read"
TEXTS, RATIO = pa.dictionary(pa.int32(), pa.string()), "0.5 to 2.0 times 250"
CASES = [
    Case("as it was", leave, ROWS),
    unreadable(
        "orders lack a column",
        _change_orders(lambda orders: orders.drop_columns("o_custkey")),
        "lacks the column o_custkey: land it as it was declared",
    ),
    unreadable(
        "lines lack a column",
        _change_lines(lambda lines: lines.drop_columns(["l_tax", "l_shipdate"])),
        "lacks the column l_tax; lacks the column l_shipdate",
    ),
    _misfit("amounts as doubles", AMOUNT, pa.float64(), "double, not DECIMAL(15,2)"),
    _misfit("amounts of another scale", AMOUNT, pa.decimal128(15, 3), "decimal128(15, 3)"),
    _misfit("days as text", DAY, pa.string(), "string, not DATE"),
    _misfit("days as times", DAY, pa.timestamp("us"), "timestamp[us], not DATE"),
    _misfit("keys without a sign", "o_orderkey", pa.uint64(), "uint64, not BIGINT"),
    _misfit("numbers of 64 bits", "l_linenumber", pa.int64(), "int64, not INT"),
    _misfit("text as bytes", "o_orderstatus", pa.binary(), "binary, not STRING"),
    Case("amounts of fewer digits", _cast(AMOUNT, pa.decimal128(9, 2)), ROWS),
    Case("keys of 32 bits", _cast("o_orderkey", pa.int32()), ROWS),
    Case("text as a dictionary", _cast("l_returnflag", TEXTS), ROWS),
    Case("long text", _cast("o_orderstatus", pa.large_string()), ROWS),
    unreadable(
        "names in capitals",
        _change_orders(lambda orders: orders.rename_columns({"o_custkey": "O_CUSTKEY"})),
        "lacks the column o_custkey",
    ),
    unreadable(
        "a name twice but for capitals",
        _change_orders(lambda orders: orders.append_column("O_CUSTKEY", orders["o_custkey"])),
        "has the column o_custkey more than once",
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
    unreadable(
        "broken pages", lambda bucket: _break_pages(bucket.lines), "can't be read", "parquet"
    ),
    Case("a key that is null", _empty_keys("l_orderkey", 5), ROWS - 1, quarantined=(KEY,)),
    Case(
        "an order's key that is null",
        _empty_keys("o_orderkey", 0),
        ROWS - 1,
        quarantined=("`o_orderkey` is null",),
    ),
    Case(
        "ten keys that are null",
        _empty_keys("l_orderkey", *range(10)),
        WITHHELD,
        "rejects",
        "at most 0.01 of the records",
        10 * (KEY,),
    ),
    Case("a row group of null keys", _add_row_group_without_keys, ROWS, quarantined=(KEY,)),
    Case(
        "null keys in a file of two buckets",
        _span_with_null_keys,
        WITHHELD,
        "rejects",
        "",
        3 * (KEY,),
    ),
    Case("the second of these", leave, ROWS - 1),
    Case("a file of two buckets", _span_well, ROWS),
    Case("the second of them", leave, ROWS),
    unreadable(
        "a column lacks in a file of two buckets",
        _span_lacking_a_column,
        "lacks the column o_orderpriority",
    ),
    unreadable("the second one", leave, "lacks the column"),
    Case("landed twice", _copy, WITHHELD, "files_differ", "-copy.parquet"),
    Case("files gone", _remove, WITHHELD, "row_count", "no file holds a key of it: land it again"),
    Case("lines gone", lambda bucket: bucket.lines.unlink(), WITHHELD, "shrink", "100 are left"),
    Case(
        "few lines",
        _write_lines(9),
        WITHHELD,
        "shrink",
        "at most 0.5 of 250 rows may vanish: 109 are left",
    ),
    Case("fewer lines", _write_lines(100), ROWS - 50),
    Case(
        "lines thrice",
        _change_lines(lambda lines: pa.concat_tables([lines, lines, lines])),
        WITHHELD,
        "row_count_ratio",
        RATIO,
    ),
    Case("cut in two", _cut, ROWS),
    Case("beside a file of no rows", _add_file_of_no_rows, ROWS),
    Case("beside a hidden file", _add_hidden_file, ROWS),
    Case("new: well", leave, ROWS, new=True),
    Case("new: no files", _remove, WITHHELD, "row_count", "no file holds a key of it", new=True),
    Case("new: few rows", _write_few_lines, WITHHELD, "row_count_ratio", RATIO, new=True),
    unreadable(
        "new: broken pages",
        lambda bucket: _break_pages(bucket.orders),
        BROKEN,
        "parquet",
        new=True,
    ),
    # The largest key is its own: the sequence is still in it, so its rows may be few.
    Case("new: the sequence is in it", _write_few_orders, 20, "row_count_ratio", RATIO, new=True),
]
