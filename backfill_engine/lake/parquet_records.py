"""Reads the records of landed Parquet files, and counts them apart from that."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from backfill_engine.audit_columns import ENGINE_PREFIX, LANDED_FILE
from backfill_engine.errors import LandingError
from backfill_engine.lake.landing import relative_name
from backfill_engine.lake.parquet_footers import ParquetFile
from backfill_engine.lake.parquet_landing import ParquetListing
from backfill_engine.lake.placement import build_number
from backfill_engine.lake.slices import Partition, build_predicate
from backfill_engine.lake.source_files import (
    build_source_file,
    plan_reads,
)
from backfill_engine.tables.declarations import Table, build_ddl

_NUMBER, _KEY = f"{ENGINE_PREFIX}number", f"{ENGINE_PREFIX}key"


def read_records(
    spark: SparkSession,
    listing: ParquetListing,
    name: str,
    table: Table,
    partitions: Sequence[Partition],
) -> DataFrame:
    """Reads the records of one kind that belong to `partitions`.

    A record without a key belongs to the bucket of the smallest key of its file.

    Returns:
        The declared fields; the table's partition column; `source_file` STRING.

    Raises:
        LandingError: if no file of the kind is there.
    """
    of_kind = [landed for landed in listing.files if landed.name == name]
    if not of_kind:
        raise LandingError(f"nothing has landed in {listing.dataset}/{name}: land it, then run it")
    types = {column.name: column.type for column in table.columns}
    by = table.partition_by
    files = listing.find_files(name)
    key, fields = dict(listing.folders.keys)[name], listing.folders.find_fields(name)
    if not files and fields:
        columns = f"{build_ddl(fields, constraints=False)}, `{by}` {types[by]}"
        return spark.createDataFrame([], f"{columns}, {LANDED_FILE} string")
    # Where no file holds a key of the partitions, any file still tells the columns.
    rows = _open(spark, listing, name, files or of_kind[:1])
    wanted = build_predicate(key, (partition.slice for partition in partitions))
    homes = _find_homes(listing, files, partitions)
    if homes:
        is_homeless = F.col(key).isNull() & F.col(LANDED_FILE).isin(list(homes))
        rows = rows.where(f"({wanted}) OR `{key}` IS NULL").where(F.expr(wanted) | is_homeless)
    else:
        rows = rows.where(wanted)
    step = F.lit(listing.folders.grain.step)
    bucket = F.coalesce(F.col(key) - F.pmod(F.col(key), step), _look_up(homes))
    return rows.select(
        *(column for column in rows.columns if column != LANDED_FILE),
        bucket.cast(types[by]).alias(by),
        LANDED_FILE,
    )


def count_records(
    spark: SparkSession, listing: ParquetListing, partitions: Iterable[Partition]
) -> dict[str, int]:
    """Counts the records by partition key, as many as the footers say that there are.

    The files that span several buckets are read, only for their keys, and whatever their window;
    what a footer counts beyond these keys belongs to the bucket of the file's smallest key.
    """
    grain = listing.folders.grain
    counted: Counter[int] = Counter()
    spanning: list[ParquetFile] = []
    for landed in listing.overlapping:
        if grain.find_number(landed.smallest) == grain.find_number(landed.largest):
            counted[grain.find_number(landed.smallest)] += landed.rows
        else:
            spanning.append(landed)
    by_file = _count_keys(spark, listing, spanning)
    for landed in spanning:
        keyed = by_file[relative_name(landed.file.uri, listing.folders.root)]
        counted.update(keyed)
        counted[grain.find_number(landed.smallest)] += landed.rows - keyed.total()
    return {
        partition.key: counted[grain.find_number(partition.slice.start)]  # type: ignore[arg-type]
        for partition in partitions
    }


def _count_keys(
    spark: SparkSession, listing: ParquetListing, files: Sequence[ParquetFile]
) -> dict[str, Counter[int]]:
    """Counts keys by file, below the root, and number of their bucket: in one job."""
    found = {relative_name(one.file.uri, listing.folders.root): Counter[int]() for one in files}
    kinds: list[DataFrame] = []
    for name, key in listing.folders.keys:
        of_kind = [landed for landed in files if landed.name == name]
        if of_kind:
            rows = _open(spark, listing, name, of_kind)
            kinds.append(rows.select(LANDED_FILE, F.col(key).cast("bigint").alias(_KEY)))
    if kinds:
        keys = reduce(DataFrame.unionByName, kinds).where(f"{_KEY} IS NOT NULL")
        number = build_number(listing.folders.grain, _KEY).alias(_NUMBER)
        for row in keys.groupBy(LANDED_FILE, number).count().collect():
            found[row[0]][row[1]] = row[2]
    return found


def _open(
    spark: SparkSession, listing: ParquetListing, name: str, files: Iterable[ParquetFile]
) -> DataFrame:
    fields = listing.folders.find_fields(name)
    frames: list[DataFrame] = []
    uris = (landed.file.uri for landed in files)
    for options, paths in plan_reads(listing.folders.root, uris):
        reader = spark.read.options(**options)
        if fields:
            # Of the footer of one file Spark would make the columns of all.
            reader = reader.schema(build_ddl(fields, constraints=False))
        rows = reader.parquet(*paths)
        if LANDED_FILE in map(str.lower, rows.columns):
            raise LandingError(
                f"{listing.dataset}/{name} has a column `{LANDED_FILE}`, which says where a record "
                "landed: declare the landing's fields without it; nothing was written"
            )
        frames.append(rows.withColumn(LANDED_FILE, build_source_file(listing.dataset, 1)))
    return reduce(DataFrame.unionByName, frames)


def _find_homes(
    listing: ParquetListing, files: Iterable[ParquetFile], partitions: Iterable[Partition]
) -> dict[str, int]:
    """Finds the first key of the bucket of records without one, by file that may hold any."""
    grain = listing.folders.grain
    starts = {partition.slice.start for partition in partitions}
    homes = {
        relative_name(landed.file.uri, listing.folders.root): landed.smallest // grain.step
        for landed in files
        if landed.null_keys != 0
    }
    return {
        name: number * grain.step for name, number in homes.items() if number * grain.step in starts
    }


def _look_up(homes: dict[str, int]) -> Column:
    if not homes:
        return F.lit(None).cast("bigint")
    names = F.create_map(*(F.lit(part) for home in homes.items() for part in home))
    return names[F.col(LANDED_FILE)].cast("bigint")
