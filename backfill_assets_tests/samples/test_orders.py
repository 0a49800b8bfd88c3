"""The orders sample as files on disk; counted from the rows, without this project's code."""

import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from backfill_assets.samples.orders import OrdersSampleReport, compute_parts, land_orders
from backfill_assets_tests.samples.landed_files import Files, read_files
from backfill_engine import cli
from backfill_engine.errors import BackfillError

SMALL, DOUBLE, TWO_PARTS = 0.001, 0.002, 0.26
SMALL_REPORT = OrdersSampleReport(orders=1_500, lines=6_005, largest_key=5_988, files_written=2)
ONE_FILE_EACH = ["lineitem/lineitem.01.parquet", "orders/orders.01.parquet"]


@pytest.fixture(scope="session")
def landed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, OrdersSampleReport]:
    """A small landing and its report; each run of the tool takes a second, however small."""
    root = tmp_path_factory.mktemp("landed")
    return root, land_orders(str(root), scale=SMALL)


@pytest.fixture
def small(landed: tuple[Path, OrdersSampleReport], tmp_path: Path) -> Path:
    """A copy of the small landing, to be changed."""
    return Path(shutil.copytree(landed[0], tmp_path / "small"))


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A landing root without anything."""
    path = tmp_path / "empty"
    path.mkdir()
    return path


def read_sample(root: Path) -> Files:
    """Its files; nothing but the sample's folder may be below the root."""
    assert [path.name for path in root.iterdir()] == ["orders"]
    return read_files(root / "orders")


def read_keys(root: Path, table: str, column: str) -> list[int]:
    paths = sorted((root / "orders" / table).iterdir())
    return [key for path in paths for key in pq.read_table(path)[column].to_pylist()]


def replace_tool(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str | None) -> None:
    """Makes `script` the tool beside the interpreter, or leaves no tool to be found."""
    folder.mkdir()
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    if script is not None:
        tool = folder / "tpchgen-cli"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)


def run_command(root: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str | int | None:
    """Exit code of `sample orders`."""
    monkeypatch.setenv("BACKFILL_LANDING", str(root))
    monkeypatch.setattr(sys, "argv", ["backfill-assets", "sample", "orders", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code


def test_report_counts_what_the_files_hold(landed: tuple[Path, OrdersSampleReport]) -> None:
    root, report = landed
    orders = read_keys(root, "orders", "o_orderkey")
    lines = read_keys(root, "lineitem", "l_orderkey")
    assert (len(orders), len(lines), max(orders)) == (1_500, 6_005, 5_988)
    assert len(set(orders)) == 1_500
    assert set(lines) == set(orders)
    assert report == SMALL_REPORT
    assert list(read_sample(root)) == ONE_FILE_EACH


def test_second_landing_writes_only_what_differs(small: Path) -> None:
    before = read_sample(small)
    spoiled = small / "orders" / ONE_FILE_EACH[1]
    content = spoiled.read_bytes()
    # As many bytes as before, so that sizes alone don't tell.
    spoiled.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert land_orders(str(small), scale=SMALL).files_written == 1
    after = read_sample(small)
    assert spoiled.read_bytes() == content
    assert after[ONE_FILE_EACH[0]] == before[ONE_FILE_EACH[0]]


def test_another_scale_takes_the_place_of_the_first(small: Path) -> None:
    before = read_sample(small)
    report = land_orders(str(small), scale=TWO_PARTS)
    names = [f"{table}/{table}.0{n}.parquet" for table in ("lineitem", "orders") for n in (1, 2)]
    assert list(read_sample(small)) == names
    first, second = (
        pq.read_table(path, columns=["o_orderkey"])["o_orderkey"].to_numpy()
        for path in sorted((small / "orders" / "orders").iterdir())
    )
    lines = sum(len(pq.read_table(path, columns=["l_orderkey"])) for path in small.rglob("lin*.p*"))
    assert len(first) + len(second) == 390_000
    assert first.max() < second.min()
    assert report == OrdersSampleReport(
        orders=390_000, lines=lines, largest_key=second.max(), files_written=4
    )
    foreign = small / "orders" / "orders" / "orders.mine.parquet"
    foreign.write_bytes(b"")
    assert land_orders(str(small), scale=SMALL) == SMALL_REPORT
    foreign.unlink()
    after = read_sample(small)
    assert {name: content for name, (content, _) in after.items()} == {
        name: content for name, (content, _) in before.items()
    }


def test_files_of_an_earlier_landing_stay_until_all_new_ones_are_there(empty: Path) -> None:
    earlier = empty / "orders" / "orders" / "orders.07.parquet"
    earlier.parent.mkdir(parents=True)
    earlier.write_bytes(b"earlier")
    in_the_way = empty / "orders" / "lineitem" / "lineitem.01.parquet"
    in_the_way.mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        land_orders(str(empty), scale=SMALL)
    names = [path.name for path in sorted(earlier.parent.iterdir())]
    assert names == ["orders.01.parquet", "orders.07.parquet"]
    assert [path.name for path in empty.iterdir()] == ["orders"]


@pytest.mark.parametrize(
    ("scale", "parts"),
    [
        (0.001, 1),
        (0.25, 1),
        (0.26, 2),
        (1, 4),
        (1.01, 5),
        (16, 64),
        (100, 64),
    ],
)
def test_parts_grow_with_the_scale_up_to_a_cap(scale: float, parts: int) -> None:
    assert compute_parts(scale) == parts


@pytest.mark.parametrize("scale", [0, -1, 100.5, float("nan"), float("inf")])
def test_scale_out_of_bounds_is_refused(empty: Path, scale: float) -> None:
    with pytest.raises(BackfillError, match=f"above 0 and up to 100 .*, not {scale:g}$"):
        land_orders(str(empty), scale=scale)
    assert not list(empty.iterdir())


def test_failing_tool_is_quoted_and_leaves_what_was_there(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_sample(small)
    # The ninth argument is the folder to write to.
    script = 'echo half >"$9/orders.1.parquet" || exit 0\necho begun >&2\necho full >&2\nexit 3'
    replace_tool(tmp_path / "bin", monkeypatch, script)
    with pytest.raises(BackfillError, match=r"^tpchgen-cli failed at scale 0\.002: full$"):
        land_orders(str(small), scale=DOUBLE)
    assert read_sample(small) == before


def test_silently_failing_tool_is_told_by_its_exit_code(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_tool(tmp_path / "bin", monkeypatch, "exit 3")
    with pytest.raises(BackfillError, match=r": exit code 3$"):
        land_orders(str(empty), scale=SMALL)
    assert not list(empty.iterdir())


def test_missing_package_is_named_with_its_cure(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_tool(tmp_path / "bin", monkeypatch, script=None)
    with pytest.raises(BackfillError, match=r"tpchgen-cli: pip install 'backfill-assets\[sample"):
        land_orders(str(empty), scale=SMALL)


def test_object_stores_are_refused() -> None:
    with pytest.raises(BackfillError, match="local paths only, not s3a://bucket/landing"):
        land_orders("s3a://bucket/landing", scale=SMALL)


def test_command_reports_what_it_landed(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not run_command(small, monkeypatch, "--scale", "0.001")
    assert capsys.readouterr().out == (
        f"landed 1,500 orders up to key 5,988 with 6,005 lines below {small} "
        "(0 files written, the others had the same bytes)\n"
    )
