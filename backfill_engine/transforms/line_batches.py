"""Reads whole batches of JSON lines by Arrow, where it reads what `LineParser` parses.

Arrow refuses a value of another type, an undeclared field and one that is there twice.
What it takes otherwise than the parser is looked for here: such a batch is left to the parser, as
is one that Arrow refuses, and so are fields whose values Arrow can't read as strictly.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.json import ParseOptions, ReadOptions, read_json

from backfill_engine.audit_columns import FIELD_SEPARATOR, FIELDS_SEEN
from backfill_engine.tables.columns import Column

_READ_AS = {
    "BOOLEAN": pa.bool_(),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), pa.int64()),
    **dict.fromkeys(("FLOAT", "DOUBLE"), pa.float64()),
    **dict.fromkeys(("STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"), pa.string()),
}
_MOST_LETTERS = 2**28


@dataclass(frozen=True)
class BatchReader:
    """Reads lines by declared fields.

    Attributes:
        fields: what a line may hold.
        converters: for each field, what returns the value of its type that a JSON value is, if any.
    """

    fields: Sequence[Column]
    converters: Sequence[Callable[[Any], Any]]

    def read(self, texts: Sequence[str], schema: pa.Schema) -> Mapping[str, pa.Array] | None:
        """Reads lines.

        Args:
            texts: the lines, none of them blank.
            schema: has the fields.

        Returns:
            By name the fields, and `_fields_seen`; None if the parser has to parse these lines.
        """
        if self._options is None or not _are_objects(texts):
            return None
        text = "\n".join(texts).encode()
        block = ReadOptions(use_threads=False, block_size=len(text) + 1)
        found: dict[str, pa.Array] = {}
        try:
            read = read_json(pa.BufferReader(text), block, self._options)
            if len(read) != len(texts):
                return None
            for field, convert in zip(self.fields, self.converters, strict=True):
                landed = read.column(field.name).combine_chunks()
                values = _convert(landed, field, convert, schema.field(field.name).type)
                if values is None or (values.null_count and not field.nullable):
                    return None
                found[field.name] = values
        except pa.ArrowInvalid:
            return None
        return {**found, FIELDS_SEEN: self._find_keys(texts, [*found.values()])}

    @cached_property
    def _options(self) -> ParseOptions | None:
        """How Arrow parses the fields; None if it can't."""
        types = [
            None if field.lenient else _READ_AS.get(field.parsed_type.kind) for field in self.fields
        ]
        if None in types or any(FIELD_SEPARATOR in field.name for field in self.fields):
            return None
        names = [field.name for field in self.fields]
        return ParseOptions(
            explicit_schema=pa.schema(zip(names, types, strict=True)),
            unexpected_field_behavior="error",
        )

    def _find_keys(self, texts: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
        """Finds the keys of each line: all fields, or those of a line where something is null."""
        keys = [FIELD_SEPARATOR.join(field.name for field in self.fields)] * len(texts)
        nulls = [column.is_null().to_numpy(zero_copy_only=False) for column in columns]
        for at in np.flatnonzero(np.logical_or.reduce(nulls)).tolist():
            keys[at] = FIELD_SEPARATOR.join(json.loads(texts[at]))
        return pa.array(keys, pa.string())


def _are_objects(texts: Sequence[str]) -> bool:
    """Tells whether each line begins and ends as an object, and all fit into Arrow's block.

    Only an object begins and ends a line then, and none spans two of them, as values of fields
    aren't nested: as many rows as lines are one a line. Nor does a text begin with `null`, with
    which Arrow crashes.
    """
    fits = sum(map(len, texts)) < _MOST_LETTERS
    return bool(texts) and fits and all(text[:1] == "{" and text[-1:] == "}" for text in texts)


def _convert(
    landed: pa.Array, field: Column, convert: Callable[[Any], Any], type_: pa.DataType
) -> pa.Array | None:
    """Converts what Arrow read; None where a value isn't one of the field's type."""
    if landed.type == pa.string():
        if field.type == "STRING":
            return landed
        # Days and moments are few: those of the partition that landed.
        read = landed.dictionary_encode()
        found = pa.array(map(convert, read.dictionary.to_pylist()), type_)
        return None if found.null_count else found.take(read.indices)
    if not pa.types.is_floating(type_):
        return landed.cast(type_)
    values = landed.cast(type_, safe=False)
    # Arrow takes NaN and Infinity, too.
    numbers = values.drop_null().to_numpy(zero_copy_only=False)
    return values if np.isfinite(numbers).all() else None
