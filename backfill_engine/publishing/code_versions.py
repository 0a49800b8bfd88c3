"""Code versions: what a partition was computed by, as a hash.

A version covers what a computation can reach in code that is no installed library: functions,
classes, constants by value, closures, default arguments, modules that a function imports; and the
files that it declares. See `reached_code` for how this is followed. It differs neither between two
checkouts or processes nor by comments, docstrings and layout.

- An installed library counts by its version, if the computation reaches it. Spark always counts.
- The engine, which plans, reads, writes and audits, counts for no table: `code_origins` has its
  rooms. What is declared of the table itself counts, with its rules, but no column's comment.
- A module that a function imports is read as text, and counts as a whole with all that it imports:
  it needn't be loaded, and is not loaded for this.
- A value counts as it is when the version is computed, before any run. One that can't be pickled,
  such as a lock, counts by its type.
- Code whose source isn't at hand counts as it was compiled, which each Python does otherwise.
- What a name in a text decides can't be followed (`getattr(module, name)`): then all of the module
  counts. Methods of what a function is given are the engine's or Spark's.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from backfill_engine.publishing.reached_code import ReachedCode
from backfill_engine.sources.source import Source
from backfill_engine.tables.declarations import Table


def compute_code_version(
    compute: Callable[..., object],
    table: Table,
    landing: Source | None = None,
    *,
    count_source: Callable[..., object] | None = None,
    files: Sequence[Path] = (),
) -> str:
    """Computes a code version: 16 hexadecimal digits of SHA-256.

    Args:
        compute: of the rows.
        table: as declared.
        landing: what is read of the landing zone, as declared.
        count_source: of the records that each partition must account for.
        files: that `compute` reads, by their contents.
    """
    reached = ReachedCode()
    reached.add_library("pyspark")
    reached.add_declaration(table)
    reached.add_function(compute)
    reached.add(landing, count_source)
    reached.add(*(hashlib.sha256(file.read_bytes()).hexdigest() for file in files))
    return reached.finish()[:16]
