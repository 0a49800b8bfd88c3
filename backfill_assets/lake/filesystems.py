"""Arrow's file systems by URI: local disks and object stores alike, without a JVM."""

from pyarrow import fs

from backfill_assets.uris import arrow_uri, is_local, local_path


def open_filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    """Opens the file system, and finds the path of `uri` on it.

    Raises:
        OSError: if the store can't be reached.
        ValueError: if nothing is known of its scheme.
    """
    if is_local(uri):
        return fs.LocalFileSystem(), str(local_path(uri))
    return fs.FileSystem.from_uri(arrow_uri(uri))
