"""Paths and URIs, one spelling for Spark, Arrow and delta-rs."""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def absolute_uri(root: str) -> str:
    """Makes a local path absolute (Spark may run elsewhere); leaves a URI as it is."""
    if is_local(root):
        return str(local_path(root).absolute())
    return root.rstrip("/")


def is_local(uri: str) -> bool:
    """Tells whether it is a plain path or begins with `file:`."""
    return "://" not in uri or uri.startswith("file:")


def local_path(uri: str) -> Path:
    """Returns the path of a local URI."""
    if uri.startswith("file:"):
        return Path(unquote(urlsplit(uri).path))
    return Path(uri)


def join_uri(root: str, *parts: str) -> str:
    """Appends path segments."""
    return "/".join((root.rstrip("/"), *parts))


def arrow_uri(uri: str) -> str:
    """Spells a URI as Arrow's file systems know it (Hadoop says `s3a`, everyone else `s3`)."""
    if is_local(uri):
        return str(local_path(uri))
    scheme, rest = uri.split("://", 1)
    return ("s3" if scheme in ("s3a", "s3n") else scheme) + "://" + rest
