"""A source of two functions: its fingerprints are its evidence, and no row of it is lost."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession

from backfill_engine import DeclarationError, FunctionSource, Partition, table_asset
from backfill_engine.errors import LandingError
from backfill_engine.grains.dates import DAYS
from backfill_engine.lake.landing import NOTHING_LANDED
from backfill_engine.publishing.reached_code import compute_code_version
from backfill_engine.sources.function_source import FunctionListing
from backfill_engine_tests.shared_fixtures import build_days
from backfill_engine_tests.sources.landed_tables import build_landed_table

TABLE = build_landed_table(DAYS, by="day")
FIRST, SECOND, THIRD = build_days("2024-01-01", 3)
RATES = {FIRST.key: "a", SECOND.key: "b", THIRD.key: ""}
"""What there is of each day; of the third nothing."""


def read_rates(spark: SparkSession, partitions: Sequence[Partition]) -> DataFrame:
    rows = [(part.slice.start, 1.5) for part in partitions for _ in range(2)]
    return spark.createDataFrame(rows, "day date, rate double")


def list_rates(rates: object = RATES, read: object = read_rates) -> FunctionListing:
    source = FunctionSource("rates", read=read, fingerprint=lambda _partitions: rates)  # type: ignore[arg-type,return-value]
    return source.list_files("", TABLE, (THIRD, FIRST, SECOND))


def test_a_day_without_a_fingerprint_is_not_there() -> None:
    listing = list_rates()
    assert (listing.partitions, listing.missing) == ((FIRST, SECOND, THIRD), (THIRD,))
    described = listing.describe_files()
    assert described[THIRD.key] == NOTHING_LANDED
    assert described[FIRST.key] != described[SECOND.key] != NOTHING_LANDED
    assert listing.describe_landed()[THIRD.key].why_never_landed == (
        "rates has no row of it: add its rows there"
    )
    assert (listing.count_records(), listing.count_known()) == ({}, None)
    assert listing.restrict([THIRD]).list_evidence() == {}


def test_another_text_changes_its_day_alone() -> None:
    now = list_rates({**RATES, SECOND.key: "c"})
    before, after = list_rates().describe_files(), now.describe_files()
    assert [key for key in before if before[key] != after[key]] == [SECOND.key]
    assert now.fingerprint() != list_rates().fingerprint() == list_rates().fingerprint()


def test_what_changes_while_it_is_read_is_refused() -> None:
    rates = dict(RATES)
    listing = list_rates(rates)
    listing.check_unchanged()
    rates[SECOND.key] = "c"
    with pytest.raises(LandingError, match="files or rows of 2024-01-02 changed while they"):
        listing.check_unchanged()


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        (None, "returned None: return a dict of texts by partition key"),
        ({FIRST.key: 1}, "returned {'2024-01-01': 1}: return a dict of texts"),
    ],
)
def test_what_is_no_fingerprint_is_refused(rates: object, why: str) -> None:
    with pytest.raises(LandingError, match=f"`fingerprint` of rates {why}"):
        list_rates(rates)


def test_a_function_that_fails_is_named() -> None:
    def fail(partitions: Sequence[Partition]) -> Mapping[str, str]:
        raise OSError(f"no answer for {len(partitions)} days")

    source = FunctionSource("rates", read=read_rates, fingerprint=fail)
    with pytest.raises(LandingError, match="`fingerprint` of rates failed: OSError: no answer for"):
        source.list_files("", TABLE, (FIRST, SECOND))
    assert source.list_files("", TABLE, ()).partitions == ()


def test_what_reads_is_part_of_the_code_version_and_what_looks_is_not() -> None:
    def find_version(source: FunctionSource) -> str:
        return compute_code_version(read_rates, TABLE, source)

    source = FunctionSource("rates", read=read_rates, fingerprint=lambda _: RATES)
    other_look = replace(source, fingerprint=lambda _: {})
    other_read = replace(source, read=lambda spark, _: spark.range(1))
    assert find_version(other_look) == find_version(source) != find_version(other_read)


def test_it_needs_a_name_and_two_functions() -> None:
    with pytest.raises(DeclarationError, match="give it a name, and two functions"):
        FunctionSource("rates", read=read_rates, fingerprint=RATES)  # type: ignore[arg-type]
    source = FunctionSource("rates", read=read_rates, fingerprint=lambda _: RATES)
    assert table_asset(TABLE, landing=source)


def test_rows_are_read_once_and_counted_by_day(spark: SparkSession) -> None:
    calls: list[int] = []

    def read(session: SparkSession, partitions: Sequence[Partition]) -> DataFrame:
        calls.append(len(partitions))
        return read_rates(session, partitions[:2])

    listing = list_rates(read=read)
    rows = listing.read(spark)
    assert listing.count(spark) == {FIRST.key: 2, SECOND.key: 2, THIRD.key: 0}
    assert {tuple(row) for row in rows.collect()} == {
        (dt.date(2024, 1, 1), 1.5, "rates"),
        (dt.date(2024, 1, 2), 1.5, "rates"),
    }
    assert listing.restrict([FIRST]).read(spark).count() == 2
    assert calls == [3, 1]
    with pytest.raises(LandingError, match="rates has no kind of file called `a`"):
        listing.read(spark, "a")


def test_rows_of_no_day_that_was_asked_for_are_counted_and_refused(spark: SparkSession) -> None:
    def read(session: SparkSession, partitions: Sequence[Partition]) -> DataFrame:
        strays = session.createDataFrame([(dt.date(2002, 1, 1), 1.0)] * 4, "day date, rate double")
        return read_rates(session, partitions).unionByName(strays)

    with pytest.raises(LandingError, match=r"4 rows of no partition .* such as `day` 2002-01-01"):
        list_rates(read=read).read(spark)

    def read_null(session: SparkSession, partitions: Sequence[Partition]) -> DataFrame:
        nothing = session.createDataFrame([(None, 1.0)], "day date, rate double")
        return read_rates(session, partitions).unionByName(nothing)

    with pytest.raises(LandingError, match=r"1 rows of no partition .* such as `day` None"):
        list_rates(read=read_null).count(spark)

    with pytest.raises(LandingError, match="returned no column `day`, which says the partition"):
        list_rates(read=lambda session, _: session.range(1)).read(spark)
