"""What landed of a sample, file by file."""

from pathlib import Path

Files = dict[str, tuple[bytes, int]]
"""Contents, and time of the last change in nanoseconds, by path below a folder."""


def read_files(folder: Path) -> Files:
    """All files below a folder, in the order of their paths."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
