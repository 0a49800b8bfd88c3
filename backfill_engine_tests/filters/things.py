"""The table that the filters of these tests are on, and rows of it."""

import datetime as dt
from decimal import Decimal

from backfill_engine.tables.declarations import Column, Table, required

TABLE = Table(
    layer="raw",
    name="things",
    partition_by="day",
    columns=(
        required("day", "DATE", "Day"),
        required("id", "BIGINT", "Number"),
        Column("name", "STRING", "Name"),
        Column("amount", "DOUBLE", "Amount"),
        Column("price", "DECIMAL(10,2)", "Price"),
        Column("ok", "BOOLEAN", "Whether it is"),
        Column("at", "TIMESTAMP", "Instant"),
        Column("tags", "ARRAY<STRING>", "Tags"),
        Column("odd-name", "INT", "A name that needs quotes"),
    ),
)

AT = dt.datetime(2024, 1, 1, 10, 0, 0, 123456, tzinfo=dt.UTC)
ROWS = [
    (dt.date(2024, 1, 1), 1, "a", 0.5, Decimal("1.10"), True, AT, ["x"], 1),
    (dt.date(2024, 2, 29), 2, "it's", -2.5, None, False, AT + dt.timedelta(days=90), None, None),
    (dt.date(1500, 3, 1), 3, r"back\slash", 2.45, Decimal("20.00"), None, None, [], 2),
    (dt.date(2024, 1, 2), 4, None, None, Decimal("-3.50"), False, AT, ["y"], 3),
    (dt.date(1, 1, 1), 5, "b%", 0.0, Decimal("5.00"), True, AT - dt.timedelta(hours=2), None, 0),
    (dt.date(2025, 1, 1), 6, "\U0001f600é", 1e3, Decimal("0.01"), True, None, None, 0),
    (dt.date(2025, 1, 1), 7, " a ", 3.4, None, None, None, None, 0),
    (dt.date(2025, 1, 1), 2**62, "q\u00027" + "7\\%\\_\0\x1a\ba\n", -9.0, None, None, None, [], 0),
    (dt.date(2025, 1, 1), 8, "q277\\%\\_\0\x1a\ba\n", -9.0, None, None, None, [], 0),
    (dt.date(2025, 1, 1), 9, "bx", 0.0, Decimal("2.00"), False, None, None, 0),
]
