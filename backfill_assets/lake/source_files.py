"""The names of landed files, as Spark takes them and as it gives them."""

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from backfill_assets.uris import is_local

_SPECIAL = r"([\[\]{}*?\\])"


def find_read_options(root: str) -> dict[str, str]:
    """Finds the options with which Spark reads landed files as they are.

    On local disks Hadoop would hold a file to the sums of `.name.crc` beside it, which may be of
    its predecessor, and which can't be looked for where the name has a colon.
    """
    if not is_local(root):
        return {}
    return {
        "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        # Else the one that is open already, with sums, would be taken.
        "fs.file.impl.disable.cache": "true",
    }


def find_path_below_dataset(levels: int) -> Column:
    """Builds the path, STRING, of a row's file below its data set; percent-encoded.

    Args:
        levels: how many folders it lies in there.
    """
    return F.substring_index("_metadata.file_path", "/", -levels - 1)


def build_source_file(dataset: str, levels: int) -> Column:
    """Builds the name, STRING, of a row's file below the landing root."""
    return F.concat_ws("/", F.lit(dataset), _decode(find_path_below_dataset(levels)))


def escape_pattern(uri: str) -> str:
    """Escapes what Spark would take for a pattern in a path.

    A file that is named like a pattern must still be itself. In a pattern, Hadoop can't have a
    colon outside of brackets.
    """
    if not re.search(_SPECIAL, uri):
        return uri
    scheme = re.match(r"([a-z][a-z0-9+.-]*:(?=/))?", uri)
    at = scheme.end() if scheme else 0
    return uri[:at] + re.sub(_SPECIAL, r"\\\1", uri[at:]).replace(":", "[:]")


def _decode(path: Column) -> Column:
    """Undoes the percent-encoding of `_metadata`; a plus sign is itself there."""
    decoded = F.url_decode(F.regexp_replace(path, r"\+", "%2B"))
    return F.when(path.contains("%"), decoded).otherwise(path)  # seldom, and dear
