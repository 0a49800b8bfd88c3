"""What the machine lacks is one line with its cure; a person at a shell reads it last."""

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from backfill_engine.orchestration.records.failures import (
    _is_called_by_a_person,
    describe_in_a_line,
    describe_known_cause,
)


def fill(folder: Path) -> None:
    del folder
    with Path("/dev/full").open("w") as full:
        full.write("x")


def write_in_vain(folder: Path) -> None:
    raise PermissionError(13, "Permission denied", str(folder))  # root would be let in


def open_folder(folder: Path) -> None:
    folder.open()


def list_file(folder: Path) -> None:
    (folder / "file").touch()
    fs.LocalFileSystem().get_file_info(fs.FileSelector(str(folder / "file")))


def read_folder_by_arrow(folder: Path) -> None:
    fs.LocalFileSystem().open_input_file(str(folder))


def grow_too_large(folder: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        (folder / "file").write_text("x" * 11)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def wrap(folder: Path) -> None:
    """As Java's errors come: several lines of text, below another error."""
    del folder
    try:
        raise RuntimeError("java.io.IOException: No space left on device\n\tat java.base/…")
    except RuntimeError as error:
        raise ValueError("the step failed") from error


@pytest.mark.parametrize(
    ("fail", "line"),
    [
        (fill, "[Errno 28] No space left on device: the disk is full: make room, then run it"),
        (write_in_vain, "[Errno 13] Permission denied: '{folder}': this user has no right to a"),
        (open_folder, "[Errno 21] Is a directory: '{folder}': a folder is in the place of a file"),
        (list_file, "[Errno 20] Cannot list directory '{folder}/file'. Detail: [errno 20] Not a"),
        (read_folder_by_arrow, "Cannot open for reading: path '{folder}' is a directory: a folder"),
        (grow_too_large, "[Errno 27] File too large: a file may not grow that large: raise"),
        (wrap, "java.io.IOException: No space left on device: the disk is full: make room"),
    ],
)
def test_what_the_machine_lacks_is_one_line_with_the_cure(
    tmp_path: Path, fail: Callable[[Path], None], line: str
) -> None:
    with pytest.raises(Exception) as caught:
        fail(tmp_path)
    found = describe_known_cause(caught.value)
    assert found is not None
    assert found.startswith(line.replace("{folder}", str(tmp_path)))
    assert "\n" not in found


def test_of_other_errors_nothing_is_known() -> None:
    assert describe_known_cause(KeyError("day")) is None


@pytest.mark.parametrize(
    ("arguments", "called"),
    [
        (["/venv/bin/dagster", "asset", "materialize"], True),
        (["/venv/bin/dg", "launch"], True),
        (["/venv/lib/dagster/__main__.py", "job", "execute"], True),
        (["/venv/bin/dagster", "api", "execute_run"], False),
        (["/venv/lib/dagster/__main__.py", "api", "grpc"], False),
        (["/venv/bin/backfill-assets", "rollback"], False),
        (["/venv/bin/pytest"], False),
    ],
)
def test_only_a_person_is_told_at_the_end(arguments: list[str], *, called: bool) -> None:
    assert _is_called_by_a_person(arguments) is called


def test_an_error_that_only_announces_its_cause_is_told_with_it() -> None:
    trace = (
        "o.load\n\tat a\nCaused by: java.lang.A: outer\n\tat b\nCaused by: B: should be int\n\tat c"
    )
    try:
        raise RuntimeError(trace)
    except RuntimeError:
        with pytest.raises(ValueError, match="State") as caught:
            raise ValueError("Error while instantiating 'State':\n more") from None
    assert describe_in_a_line(caught.value) == "Error while instantiating 'State': B: should be int"
    assert describe_in_a_line(ValueError("no table\nthere are: a")) == "no table"
    assert describe_in_a_line(KeyError()) == "KeyError"
    assert describe_in_a_line(ValueError("there are:")) == "there are:"


def test_a_query_without_memory_names_the_way() -> None:
    error = SparkConnectGrpcException(
        "Resources exhausted: Failed to allocate additional 512.0 KB for ExternalSorter[0]"
    )
    described = describe_known_cause(error)
    assert described is not None
    assert "BACKFILL_CHUNK_BYTES" in described
    assert "--engine spark" in described
