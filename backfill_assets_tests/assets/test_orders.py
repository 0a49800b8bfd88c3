"""Buckets of integers: TPC-H's orders over three layers, against what pandas makes of them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from backfill_assets.samples.orders import land_orders
from backfill_engine.lake.table_log import read_log
from backfill_engine.proof.certificates import find_certificates
from backfill_engine_tests.commands import Project
from backfill_engine_tests.pipeline.running import Pipeline, copy_pipeline, open_pipeline
from backfill_engine_tests.pipeline.watching import describe, watch
from backfill_engine_tests.project import CUSTOMER_ORDERS, RAW_ORDERS, STAGING_ORDERS

LAYERS = (RAW_ORDERS.key, STAGING_ORDERS.key, CUSTOMER_ORDERS.key)
FIRST, LAST = "0000000", "0200000"
SCALE = 0.04
"""60,000 orders with keys up to 240,000: two buckets, and half of a third."""


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("orders_landing")
    assert land_orders(str(root), scale=SCALE).largest_key == 240_000
    return root


@pytest.fixture(scope="module")
def published(spark: SparkSession, landing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All buckets over all layers, published in one run; tests copy it."""
    root = tmp_path_factory.mktemp("orders")
    shutil.copytree(landing, root / "landing")
    with open_pipeline(root) as pipeline:
        run = pipeline.run(*LAYERS, first=FIRST, last=LAST)
        assert run.success, run.message
    return root


@pytest.fixture(scope="module")
def reading(published: Path) -> Iterator[Pipeline]:
    """The pipeline for tests that only read."""
    with open_pipeline(published) as pipeline:
        yield pipeline


@pytest.fixture
def orders(published: Path, tmp_path: Path) -> Iterator[Pipeline]:
    """A copy, for the test to go on from."""
    with copy_pipeline(published, tmp_path) as pipeline:
        yield pipeline


def read_landed(landing: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Orders and lines; amounts as cents and shares as percent, exactly."""
    orders = pq.read_table(landing / "orders" / "orders").to_pandas()
    lines = pq.read_table(landing / "orders" / "lineitem").to_pandas()
    for name in ("l_extendedprice", "l_discount"):
        lines[name] = [int(value * 100) for value in lines[name]]
    orders["o_totalprice"] = [int(value * 100) for value in orders["o_totalprice"]]
    return orders, lines


def test_each_layer_is_one_commit_of_all_buckets(reading: Pipeline) -> None:
    for table in (RAW_ORDERS, STAGING_ORDERS, CUSTOMER_ORDERS):
        (commit,) = [
            commit for commit in read_log(reading.warehouse, table).commits if commit.record
        ]
        assert commit.record is not None
        assert list(commit.record.rows) == [FIRST, "0100000", LAST]
        assert commit.record.predicate == "(`order_bucket` >= 0 AND `order_bucket` < 300000)"
        assert reading.find_days(table.key, "MATERIALIZED") == [FIRST, "0100000", LAST]


def test_orders_and_customers_are_what_pandas_makes_of_the_source(
    reading: Pipeline, landing: Path
) -> None:
    orders, lines = read_landed(landing)
    counts = read_log(reading.warehouse, RAW_ORDERS).count_rows()
    both = pd.concat([orders["o_orderkey"], lines["l_orderkey"]]) // 100_000 * 100_000
    assert counts == {f"{key:07}": rows for key, rows in both.value_counts().items()}

    lines["net"] = lines["l_extendedprice"] * (100 - lines["l_discount"])
    lines["late"] = lines["l_receiptdate"] > lines["l_commitdate"]
    lines["returned"] = lines["l_returnflag"] == "R"
    sums = lines.groupby("l_orderkey").agg(
        net=("net", "sum"), lines=("net", "size"), late=("late", "sum"), back=("returned", "sum")
    )
    expected = orders.set_index("o_orderkey").join(sums)
    expected["net"] = (expected["net"] + 50) // 100
    found = reading.warehouse.open(STAGING_ORDERS).to_pandas().set_index("order_key").sort_index()
    assert len(found) == len(expected) == 60_000
    for column, source_column in (
        ("customer_key", "o_custkey"),
        ("total_cents", "o_totalprice"),
        ("order_date", "o_orderdate"),
        ("order_status", "o_orderstatus"),
        ("net_cents", "net"),
        ("lines", "lines"),
        ("late_lines", "late"),
        ("returned_lines", "back"),
    ):
        assert found[column].tolist() == expected[source_column].tolist(), column

    expected["bucket"] = expected.index // 100_000 * 100_000
    by_customer = expected.groupby(["bucket", "o_custkey"]).agg(
        orders=("net", "size"), net=("net", "sum"), lines=("lines", "sum"), late=("late", "sum")
    )
    features = reading.warehouse.open(CUSTOMER_ORDERS).to_pandas()
    features = features.set_index(["order_bucket", "customer_key"]).sort_index()
    assert list(features.index) == list(by_customer.index)
    assert features["orders"].tolist() == by_customer["orders"].tolist()
    assert features["net_cents"].tolist() == by_customer["net"].tolist()
    assert features["late_share"].tolist() == (by_customer["late"] / by_customer["lines"]).tolist()


def test_only_the_bucket_that_the_sequence_is_in_is_provisional(reading: Pipeline) -> None:
    for key in LAYERS:
        provisional = {
            bucket: reading.read_materializations(key, bucket)[0].metadata.get("provisional")
            for bucket in (FIRST, "0100000", LAST)
        }
        assert [bucket for bucket, text in provisional.items() if text] == [LAST]
    (latest, *_) = reading.read_materializations(RAW_ORDERS.key, LAST)
    assert "landed up to 240000" in str(latest.metadata["provisional"].value)


def test_buckets_beyond_the_sequence_are_withheld_as_never_landed(orders: Pipeline) -> None:
    run = orders.run(RAW_ORDERS.key, first=LAST, last="0300000")
    assert not run.success
    assert "0300000: partition_is_complete: landing_files_exist" in run.message
    assert orders.find_days(RAW_ORDERS.key, "FAILED") == ["0300000"]


def test_a_chunk_is_as_many_keys_as_its_step_says(orders: Pipeline) -> None:
    before = orders.read_contents_checksums(CUSTOMER_ORDERS)
    ops = {CUSTOMER_ORDERS.key: {"chunk": "step=200000", "restart": True}}
    run = orders.run(CUSTOMER_ORDERS.key, first="0100000", last=LAST, ops=ops)
    assert run.success, run.message
    (certificate,) = find_certificates(orders.warehouse, run.id)
    assert [(chunk.first, chunk.last, chunk.status) for chunk in certificate.chunks] == [
        ("0100000", "0100000", "published"),
        (LAST, LAST, "published"),
    ]
    assert len(certificate.commits) == 2
    assert orders.read_contents_checksums(CUSTOMER_ORDERS) == before


def test_a_bucket_with_an_unreadable_file_is_withheld_and_the_others_go_on(
    orders: Pipeline, tmp_path: Path
) -> None:
    folder = tmp_path / "landing" / "orders" / "lineitem"
    (path,) = folder.glob("*.parquet")
    lines = pq.read_table(path)
    keys = lines["l_orderkey"].to_pylist()
    cut = next(at for at, key in enumerate(keys) if key >= 100_000)
    pq.write_table(lines.slice(0, cut), folder / "first.parquet")
    pq.write_table(lines.slice(cut), folder / "second.parquet")
    path.unlink()
    broken = bytearray((folder / "first.parquet").read_bytes())
    broken[1000:200_000] = bytes(199_000)
    (folder / "first.parquet").write_bytes(broken)
    before = orders.read_contents_checksums(RAW_ORDERS)
    run = orders.run(RAW_ORDERS.key, first=FIRST, last=LAST)
    assert not run.success
    assert orders.find_days(RAW_ORDERS.key, "FAILED") == [FIRST]
    assert "files_are_readable (orders/lineitem/first.parquet can't be read)" in run.message
    assert orders.read_contents_checksums(RAW_ORDERS)[FIRST] == before[FIRST]


def test_a_source_that_outgrew_the_key_space_is_said_and_nothing_is_written(
    landing: Path, tmp_path: Path
) -> None:
    small = Project(tmp_path, landing, (("BACKFILL_ORDER_KEY_SPACE", "200000"),))
    run = small.materialize(*LAYERS, partitions="0000000...0100000")
    assert run.returncode != 0
    output = run.stdout + run.stderr
    assert "holds keys from 1 to 240000, outside of the key space 0 to 199999" in output
    assert "BACKFILL_ORDER_KEY_SPACE" in output
    assert not (small.warehouse / "raw").exists()


def test_other_steps_than_the_tables_are_refused(landing: Path, published: Path) -> None:
    other = Project(
        published / "other", landing, (("BACKFILL_ORDER_KEY_STEP", "50000"),)
    )  # the warehouse of `published`, in other buckets
    shutil.copytree(published / "warehouse", other.warehouse)
    run = other.materialize(RAW_ORDERS.key, partitions="0000000...0050000")
    assert run.returncode != 0
    assert "is partitioned by buckets of 100000, not by buckets of 50000" in run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.by_hand
def test_a_new_file_that_extends_the_keys_reaches_only_the_bucket_that_it_extends(
    orders: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = watch(orders, monkeypatch)
    assert sensor.tick() == []
    before = read_log(orders.warehouse, STAGING_ORDERS).publishes[LAST]
    orders_landed = land_more(orders, 240_000)
    assert sensor.settle() == [(key, LAST, LAST, "1 changed") for key in LAYERS]
    after = read_log(orders.warehouse, STAGING_ORDERS).publishes[LAST]
    assert after.rows == before.rows + orders_landed
    # Once keys go on beyond it the bucket is complete, though no file of its own has changed.
    land_more(orders, 340_000)
    assert [describe(request) for request in sensor.look()] == [
        (RAW_ORDERS.key, LAST, "0300000", "1 due, 1 new")
    ]


def land_more(orders: Pipeline, offset: int) -> int:
    """Lands the first orders once more, with their lines, under higher keys; returns how many."""
    counts = []
    for folder, name in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
        files = (orders.zone.root / "orders" / folder).glob("*.parquet")
        (path,) = (file for file in files if not file.name.startswith("then_"))
        landed = pq.read_table(path)  # ascending by key
        first = landed.slice(0, sum(key < 1_000 for key in landed[name].to_pylist()))
        keys = [key + offset for key in first[name].to_pylist()]
        shifted = pa.chunked_array([keys], first.schema.field(name).type)
        more = first.set_column(first.schema.get_field_index(name), name, shifted)
        pq.write_table(more, path.with_name(f"then_{offset}.parquet"))
        counts.append(len(set(keys)))
    return counts[-1]
