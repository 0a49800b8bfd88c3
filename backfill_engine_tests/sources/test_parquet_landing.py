"""Parquet files by the keys in their footers: which files matter to which buckets, and how much."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.grains.buckets import Buckets
from backfill_engine.lake.landing import FileFault, LandingFile
from backfill_engine.lake.partitions import build_partition
from backfill_engine.sources.parquet_footers import ParquetFile, RowGroup
from backfill_engine.sources.parquet_landing import ParquetLanding, ParquetListing
from backfill_engine_tests.sources.landed_tables import build_landed_table

GRAIN = Buckets(100, 1000)
KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
LANDING = ParquetLanding("orders", tuple(KEYS.items()), "ORDER_KEY_SPACE")
BUCKETS = [build_partition(GRAIN, start) for start in range(0, 1000, 100)]


def land(root: Path, name: str, keys: Sequence[int], kind: str = "orders") -> Path:
    """Lands a file of `keys`, in row groups of ten rows."""
    return land_table(
        root, name, pa.table({"text": ["x" * 40] * len(keys), KEYS[kind]: keys}), kind
    )


def land_table(
    root: Path, name: str, table: pa.Table, kind: str = "orders", *, statistics: bool = True
) -> Path:
    path = root / "orders" / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=10, write_statistics=statistics)
    return path


def touch(path: Path) -> None:
    """Makes it a nanosecond younger, of the same size."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def list_orders(root: Path, *numbers: int) -> ParquetListing:
    """A listing for the buckets of these numbers, else for all."""
    buckets = (BUCKETS[number] for number in numbers or range(len(BUCKETS)))
    return LANDING.list_files(str(root), build_landed_table(GRAIN), buckets)


def list_spans(listing: ParquetListing) -> list[tuple[str, str, list[tuple[int, int]]]]:
    return [
        (
            file.name,
            Path(file.file.uri).name,
            [(group.smallest, group.largest) for group in file.row_groups],
        )
        for file in listing.files
    ]


def refuse(root: Path) -> str:
    with pytest.raises(LandingError) as caught:
        list_orders(root, 0)
    return str(caught.value)


def find_uris(listing: ParquetListing, name: str) -> list[str]:
    return [landed.file.uri for landed in listing.find_files(name)]


def test_files_are_listed_with_the_keys_of_their_row_groups(tmp_path: Path) -> None:
    land(tmp_path, "b.parquet", range(5, 30))
    land(tmp_path, "a.parquet", [700, 3])
    land(tmp_path, "a.parquet", [3, 3, 4], "lineitem")
    assert list_spans(list_orders(tmp_path, 9)) == [
        ("orders", "a.parquet", [(3, 700)]),
        ("orders", "b.parquet", [(5, 14), (15, 24), (25, 29)]),
        ("lineitem", "a.parquet", [(3, 4)]),
    ]


def test_listed_uris_sizes_and_times_are_those_of_the_files(tmp_path: Path) -> None:
    path = land(tmp_path, "a.parquet", [1])
    (only,) = list_orders(tmp_path).files
    stat = path.stat()
    assert only.file == LandingFile(str(path), stat.st_size, stat.st_mtime_ns)


@pytest.mark.parametrize(
    "name", [".a.parquet", "_a.parquet", "_SUCCESS", "a.parquet.part", "a.csv", "nested/a.parquet"]
)
def test_hidden_unfinished_and_other_files_are_not_data(tmp_path: Path, name: str) -> None:
    other = land(tmp_path, "data.parquet", [1]).parent / name
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(b"whatever it is, its footer is not read")
    assert [file for _, file, _ in list_spans(list_orders(tmp_path))] == ["data.parquet"]


def test_a_link_that_leads_nowhere_may_hold_any_key(tmp_path: Path) -> None:
    folder = land(tmp_path, "data.parquet", [1]).parent
    (folder / ".more.parquet.Ab3dE9").write_bytes(b"PAR1")
    (folder / "_temporary").mkdir()
    (folder / "gone.parquet").symlink_to("nowhere")
    (folder / ".data.parquet.crc").touch()
    faults = list_orders(tmp_path, 0, 3).faults
    assert [(fault.partition.key, fault.name) for fault in faults] == [
        (BUCKETS[bucket].key, "orders/orders/gone.parquet") for bucket in (0, 3)
    ]


def test_the_same_rows_are_found_however_they_are_packed(tmp_path: Path) -> None:
    first = land(tmp_path, "a.parquet", [1, 5, 9])
    table = pq.read_table(first)
    pq.write_table(table, first.with_name("b.parquet"), compression="gzip")
    land(tmp_path, "c.parquet", [1, 6, 9])
    found = list_orders(tmp_path, 0).describe_landed()[BUCKETS[0].key].repeated
    assert found == ("orders/orders/b.parquet holds the same as orders/orders/a.parquet",)


def test_landing_zone_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LandingNotFoundError, match=r"nowhere isn't there: mount it or set"):
        list_orders(tmp_path / "nowhere", 0, 1)


def test_landing_zone_without_files_is_empty(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    listing = list_orders(tmp_path, 0, 1)
    assert (listing.files, listing.missing) == ((), tuple(BUCKETS[:2]))
    assert listing.unfinished == {}
    assert listing.largest_key is None


def test_partitions_are_listed_once_and_ascending(tmp_path: Path) -> None:
    land(tmp_path, "a.parquet", [1])
    assert list_orders(tmp_path, 3, 1, 3).partitions == (BUCKETS[1], BUCKETS[3])


def test_only_files_that_may_hold_keys_of_the_partitions_are_found(tmp_path: Path) -> None:
    first = land(tmp_path, "first.parquet", [0, 99])
    both = land(tmp_path, "both.parquet", [99, 100])
    land(tmp_path, "third.parquet", [200])
    # Each row group is looked at by itself: this file has nothing between 10 and 500.
    apart = land(tmp_path, "apart.parquet", [*range(10), *range(500, 510)])
    lines = land(tmp_path, "lines.parquet", [150], "lineitem")
    assert find_uris(list_orders(tmp_path, 0), "orders") == [str(apart), str(both), str(first)]
    assert find_uris(list_orders(tmp_path, 1), "orders") == [str(both)]
    assert find_uris(list_orders(tmp_path, 1), "lineitem") == [str(lines)]
    assert find_uris(list_orders(tmp_path, 5), "orders") == [str(apart)]
    assert find_uris(list_orders(tmp_path, 9), "orders") == []


@pytest.mark.parametrize(
    ("largest", "missing", "unfinished"),
    [
        (198, range(2, 10), ["0000100"]),
        (199, range(2, 10), []),
        (200, range(3, 10), ["0000200"]),
        (998, [], ["0000900"]),
        (999, [], []),
    ],
)
def test_sequence_has_come_to_its_largest_key(
    tmp_path: Path, largest: int, missing: Sequence[int], unfinished: list[str]
) -> None:
    land(tmp_path, "a.parquet", [largest, 3])
    land(tmp_path, "a.parquet", [3, 4], "lineitem")
    listing = list_orders(tmp_path)
    assert listing.missing == tuple(BUCKETS[n] for n in missing)
    assert listing.unfinished == {
        key: f"orders has landed up to {largest} of it" for key in unfinished
    }


def test_bucket_without_keys_below_the_largest_is_not_missing(tmp_path: Path) -> None:
    land(tmp_path, "a.parquet", [5])
    land(tmp_path, "a.parquet", [505], "lineitem")  # the largest key may be of any kind
    assert list_orders(tmp_path, 3, 6).missing == (BUCKETS[6],)


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ((7, 1000), "holds keys from 7 to 1000, outside of the key space 0 to 999"),
        ((-1, 7), "holds keys from -1 on, and no partition holds negative ones"),
    ],
    ids=["too large", "negative"],
)
@pytest.mark.parametrize("kind", KEYS)
def test_key_outside_of_the_space_is_refused_whatever_is_asked_for(
    tmp_path: Path, keys: tuple[int, int], fault: str, kind: str
) -> None:
    land(tmp_path, "a.parquet", range(700, 710))
    land(tmp_path, "b.parquet", [*range(700, 710), *keys], kind)
    message = refuse(tmp_path)
    assert message.startswith(f"orders/{kind}/b.parquet {fault}")
    assert "nothing was written" in message
    assert "\n" not in message


def test_too_large_a_key_names_the_setting_that_makes_room(tmp_path: Path) -> None:
    land(tmp_path, "a.parquet", [1000])
    assert refuse(tmp_path).endswith("set ORDER_KEY_SPACE higher, then run again")


def test_largest_key_of_the_space_is_not_refused(tmp_path: Path) -> None:
    land(tmp_path, "a.parquet", [0, 999])
    assert list_orders(tmp_path).largest_key == 999


def test_file_without_statistics_is_refused(tmp_path: Path) -> None:
    land(tmp_path, "a.parquet", [1])
    land_table(tmp_path, "b.parquet", pa.table({"o_orderkey": [1]}), statistics=False)
    assert refuse(tmp_path) == (
        "orders/orders/b.parquet doesn't say which o_orderkey it holds: write it with statistics, "
        "and with keys that aren't null"
    )


def test_file_without_rows_needs_no_statistics_and_holds_nothing(tmp_path: Path) -> None:
    table = pa.table({"o_orderkey": pa.array([], pa.int64())})
    land_table(tmp_path, "a.parquet", table, statistics=False)
    listing = list_orders(tmp_path)
    assert list_spans(listing) == [("orders", "a.parquet", [])]
    assert listing.missing == tuple(BUCKETS)
    assert find_uris(listing, "orders") == []


@pytest.mark.parametrize(
    "kept", [slice(0), slice(4), slice(-200), slice(-1)], ids=["none", "magic", "pages", "not all"]
)
def test_file_that_is_not_parquet_may_hold_keys_of_any_partition(
    tmp_path: Path, kept: slice
) -> None:
    path = land(tmp_path, "a.parquet", range(50))
    path.write_bytes(path.read_bytes()[kept])
    fault = "can't be read as Parquet: land it again"
    assert list_orders(tmp_path, 0, 9).faults == [
        FileFault(BUCKETS[n], "orders/orders/a.parquet", fault) for n in (0, 9)
    ]


def test_fingerprint_is_of_the_files_that_may_hold_keys_of_the_partitions(tmp_path: Path) -> None:
    own = land(tmp_path, "own.parquet", [100, 120])
    lines = land(tmp_path, "lines.parquet", [110], "lineitem")
    other = land(tmp_path, "other.parquet", [300])
    found = [list_orders(tmp_path, 1).fingerprint()]
    assert found[0].startswith("2 files ")
    touch(other)
    land(tmp_path, "more.parquet", [200, 900])
    assert list_orders(tmp_path, 1).fingerprint() == found[0]
    for change in (
        lambda: touch(own),
        lambda: touch(lines),
        lambda: land(tmp_path, "new.parquet", [199]),
        lines.unlink,
    ):
        change()
        found.append(list_orders(tmp_path, 1).fingerprint())
    assert len(set(found)) == len(found)


def refuse_changed(listing: ParquetListing) -> str:
    with pytest.raises(LandingError, match="changed while they were read") as caught:
        listing.check_unchanged()
    assert "\n" not in str(caught.value)
    return str(caught.value).partition(" changed")[0]


def test_unchanged_files_pass_the_check(tmp_path: Path) -> None:
    path = land(tmp_path, "a.parquet", [100, 200])
    other = land(tmp_path, "b.parquet", [300])
    listing = list_orders(tmp_path, 1, 2)
    listing.check_unchanged()
    (path.parent / "_SUCCESS").touch()
    other.unlink()  # none of its keys are of these partitions
    listing.check_unchanged()


@pytest.mark.parametrize("change", [touch, Path.unlink], ids=["rewritten", "vanished"])
@pytest.mark.parametrize("kind", KEYS)
def test_changed_file_fails_the_check_of_the_partitions_that_it_may_hold(
    tmp_path: Path, change: Callable[[Path], None], kind: str
) -> None:
    land(tmp_path, "a.parquet", [5, 450])
    path = land(tmp_path, "b.parquet", [105, 205], kind)
    listing = list_orders(tmp_path, 0, 1, 2, 4)
    change(path)
    assert refuse_changed(listing) == "files or rows of 0000100, 0000200"


def test_added_file_fails_the_check_of_all_partitions(tmp_path: Path) -> None:
    land(tmp_path, "a.parquet", [5])
    listing = list_orders(tmp_path, 0, 3)
    land(tmp_path, "b.parquet", [105], "lineitem")
    assert refuse_changed(listing) == "files or rows of 0000000, 0000300"


def test_part_of_a_listing_is_about_its_partitions(tmp_path: Path) -> None:
    first = land(tmp_path, "a.parquet", [5, 50])
    land(tmp_path, "b.parquet", [105, 150])
    listing = list_orders(tmp_path, 0, 1, 2)
    part = listing.restrict([BUCKETS[2], BUCKETS[1]])
    assert part == list_orders(tmp_path, 1, 2)
    assert part.fingerprint() == list_orders(tmp_path, 1).fingerprint() != listing.fingerprint()
    described = part.describe_files()
    assert [(key, found.files) for key, found in described.items()] == [
        ("0000100", 1),
        ("0000200", 0),
    ]
    assert described["0000100"].bytes == (first.parent / "b.parquet").stat().st_size
    assert part.fingerprint() == f"1 files {described['0000100'].fingerprint}"
    assert part.missing == (BUCKETS[2],)
    assert set(part.measure_bytes()) == {"0000100", "0000200"}
    first.unlink()
    part.check_unchanged()
    assert refuse_changed(listing) == "files or rows of 0000000"


@st.composite
def draw_row_groups(draw: st.DrawFn) -> list[RowGroup]:
    spans = draw(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), max_size=8))
    return [RowGroup(min(span), max(span), draw(st.integers(0, 10_000))) for span in spans]


@given(groups=draw_row_groups())
def test_bytes_are_shared_among_the_buckets_that_may_hold_them(groups: list[RowGroup]) -> None:
    table = build_landed_table(GRAIN)
    files = tuple(
        ParquetFile("orders", LandingFile(f"{n}.parquet", 0, 0), (group,))
        for n, group in enumerate(groups)
    )
    listing = ParquetListing(LANDING, "/landing", table, tuple(BUCKETS), files)
    sizes = listing.measure_bytes()
    assert list(sizes) == [bucket.key for bucket in BUCKETS]
    # Each share is rounded down.
    lost = sum(group.bytes for group in groups) - sum(sizes.values())
    assert 0 <= lost <= len(BUCKETS) * len(groups)
    for bucket in BUCKETS:
        overlapping = [group for group in groups if group.overlaps(bucket)]
        assert sizes[bucket.key] <= sum(group.bytes for group in overlapping)
        assert listing.restrict([bucket]).measure_bytes() == {bucket.key: sizes[bucket.key]}


def test_bytes_are_those_of_the_row_groups(tmp_path: Path) -> None:
    paths = [
        land(tmp_path, "a.parquet", range(95, 115)),
        land(tmp_path, "a.parquet", range(95), "lineitem"),
    ]
    total = sum(
        footer.row_group(n).total_byte_size
        for footer in map(pq.read_metadata, paths)
        for n in range(footer.num_row_groups)
    )
    sizes = list_orders(tmp_path).measure_bytes()
    assert total - 10 <= sum(sizes.values()) <= total
    assert {key for key, size in sizes.items() if size} == {"0000000", "0000100"}
    assert sizes["0000000"] > sizes["0000100"]


def corrupt(path: Path) -> None:
    """Overwrites data pages and leaves the footer."""
    content = path.read_bytes()
    group = pq.read_metadata(path).row_group(0)
    pages = slice(4, 4 + sum(group.column(n).total_compressed_size for n in range(2)))
    path.write_bytes(content[:4] + b"\xff" * (pages.stop - 4) + content[pages.stop :])


def find_broken(listing: ParquetListing, error: str = "no file is named") -> list[tuple[str, str]]:
    return [(broken.partition.key, broken.name) for broken in listing.find_broken(error)]


def test_broken_pages_are_found_with_the_partitions_that_they_may_hold(tmp_path: Path) -> None:
    land(tmp_path, "good.parquet", [5, 450])
    corrupt(land(tmp_path, "bad.parquet", [105, 205]))
    corrupt(land(tmp_path, "bad.parquet", [195, 205], "lineitem"))
    corrupt(land(tmp_path, "elsewhere.parquet", [700]))
    assert find_broken(list_orders(tmp_path, 0, 1, 2, 4), "good.parquet") == [
        ("0000100", "orders/orders/bad.parquet"),
        ("0000100", "orders/lineitem/bad.parquet"),
        ("0000200", "orders/orders/bad.parquet"),
        ("0000200", "orders/lineitem/bad.parquet"),
    ]


def test_file_that_vanished_is_broken(tmp_path: Path) -> None:
    path = land(tmp_path, "a.parquet", [105])
    listing = list_orders(tmp_path)
    path.unlink()
    assert find_broken(listing) == [("0000100", "orders/orders/a.parquet")]


def test_where_all_files_can_be_read_the_error_names_the_broken_one(tmp_path: Path) -> None:
    land(tmp_path, "a.parquet", [105])
    path = land(tmp_path, "b.parquet", [105])
    listing = list_orders(tmp_path, 0, 1)
    assert find_broken(listing) == []
    assert find_broken(listing, f"while reading file file://{path}: boom") == [
        ("0000100", "orders/orders/b.parquet")
    ]


@pytest.mark.parametrize(
    "columns",
    [
        {"text": ["x"], "k": ["1"]},
        {"text": ["x"], "o_orderkey": ["1"]},
        {"text": ["x"], "o_orderkey": [1.5]},
        {"text": ["x"], "inner": [{"o_orderkey": 900}]},
    ],
    ids=["none", "text", "double", "nested"],
)
def test_only_a_column_of_integers_is_the_key(tmp_path: Path, columns: dict[str, list]) -> None:
    land_table(tmp_path, "a.parquet", pa.table(columns))
    fault = "has no integer column o_orderkey: land it as it was declared"
    assert list_orders(tmp_path, 4).faults == [
        FileFault(BUCKETS[4], "orders/orders/a.parquet", fault)
    ]


def test_a_nested_column_of_the_same_name_is_not_the_key(tmp_path: Path) -> None:
    table = pa.table({"inner": [{"o_orderkey": 900}], "o_orderkey": [1]})
    land_table(tmp_path, "a.parquet", table)
    assert list_spans(list_orders(tmp_path)) == [("orders", "a.parquet", [(1, 1)])]


def test_the_last_bucket_is_finished_at_the_end_of_the_space(tmp_path: Path) -> None:
    land(tmp_path, "a.parquet", [1, 949])
    grain = Buckets(100, 950)
    table, last = build_landed_table(grain), build_partition(grain, 900)
    assert LANDING.list_files(str(tmp_path), table, [last]).unfinished == {}


def test_rows_of_files_count_where_all_their_buckets_are_listed(tmp_path: Path) -> None:
    land(tmp_path, "a.parquet", range(95, 105))
    land(tmp_path, "b.parquet", range(200, 220))
    assert list_orders(tmp_path).count_known() == 30
    assert list_orders(tmp_path, 0, 1).count_known() == 10
    assert list_orders(tmp_path, 2).count_known() == 20
    assert list_orders(tmp_path, 1, 2).count_known() is None
    assert list_orders(tmp_path, 5).count_known() == 0
