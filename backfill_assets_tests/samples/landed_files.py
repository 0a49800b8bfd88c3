"""What landed of a sample, file by file."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Files = dict[str, tuple[bytes, int]]
"""Contents, and time of the last change in nanoseconds, by path below a folder."""


def read_files(folder: Path) -> Files:
    """All files below a folder, in the order of their paths."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@dataclass(frozen=True)
class TwoLandings:
    """Reports and files of two landings into one root; in between some files were spoiled."""

    root: Path
    first: Any
    files_of_first: Files
    second: Any
    files_of_second: Files

    @property
    def rewritten(self) -> set[str]:
        """The files that the second landing wrote; it left what the first one did."""
        before, after = self.files_of_first, self.files_of_second
        assert {name: after[name][0] for name in after} == {
            name: before[name][0] for name in before
        }
        return {name for name in before if before[name][1] != after[name][1]}


def land_twice(
    root: Path, folder: str, land: Callable[[str], Any], spoiled: Iterable[str]
) -> TwoLandings:
    """Lands a sample, spoils or removes some files, and lands it again."""
    first = land(str(root))
    files_of_first = read_files(root / folder)
    for name in spoiled:
        path = root / folder / name
        path.write_bytes(b"spoiled") if path.stat().st_size else path.unlink()
    second = land(str(root))
    return TwoLandings(root, first, files_of_first, second, read_files(root / folder))
