"""SQL over a Delta table by delta-rs and DataFusion, for answers of a few rows. No JVM."""

from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

_READER_SETTINGS = {"datafusion.execution.parquet.coerce_int96": "us"}  # as Spark writes times


def query_rows(table: DeltaTable, name: str, sql: str) -> list[dict[str, Any]]:
    """Reads all rows that a query answers, by column.

    By DataFusion: Arrow's own reader keeps threads that now and then abort a process at its end.

    Args:
        table: a snapshot.
        name: what the query calls it.
        sql: the query.

    Raises:
        DeltaError, OSError, ArrowException: if a data file can't be read.
    """
    found = QueryBuilder(_READER_SETTINGS).register(name, table).execute(sql)
    return pa.RecordBatchReader.from_stream(found).read_all().to_pylist()
