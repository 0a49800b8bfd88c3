"""The data files of a table, looked at one by one: which are gone, and how many rows they hold."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

from pyarrow import fs, parquet

from backfill_engine.lake.filesystems import open_filesystem

_READERS = 16


def find_missing_files(uri: str, paths: Sequence[str]) -> list[str]:
    """Finds which of a table's data files (paths as the log has them) are no longer there."""
    filesystem, base = open_filesystem(uri)
    names = [unquote(path) for path in paths]
    found = filesystem.get_file_info([f"{base}/{name}" for name in names])
    return [
        name for name, info in zip(names, found, strict=True) if info.type == fs.FileType.NotFound
    ]


def list_folder(uri: str) -> list[str]:
    """Lists the names in a table's folder, sorted, but for the log's and hidden ones.

    None of a folder that isn't there.
    """
    filesystem, base = open_filesystem(uri)
    found = filesystem.get_file_info(fs.FileSelector(base, allow_not_found=True))
    return sorted(info.base_name for info in found if not info.base_name.startswith(("_", ".")))


def count_file_rows(uri: str, paths: Sequence[str]) -> dict[str, int]:
    """Counts the rows of data files (paths as the log has them) by their footers, by path.

    0 of a file that is gone: whoever reads its rows is told so.
    """
    filesystem, base = open_filesystem(uri)

    def count(path: str) -> int:
        try:
            with filesystem.open_input_file(f"{base}/{unquote(path)}") as file:
                return parquet.read_metadata(file).num_rows
        except FileNotFoundError:
            return 0

    with ThreadPoolExecutor(_READERS) as pool:
        return dict(zip(paths, pool.map(count, paths), strict=True))
