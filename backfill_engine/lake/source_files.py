"""The names of landed files, as Spark takes them and as it gives them."""

import re
from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from backfill_engine.uris import is_local

_PATTERN = re.compile(r"([\[\]{}*?\\])")


def plan_reads(root: str, uris: Iterable[str]) -> list[tuple[dict[str, str], list[str]]]:
    """Plans how Spark reads landed files as they are, whatever their names.

    On local disks Hadoop would hold a file to the sums of `.name.crc` beside it, which may be of
    its predecessor, and which can't be looked for where the name has a colon.

    Args:
        root: of the landing zone.
        uris: of the files, which are beside the root or below it.

    Returns:
        The options and the paths of each reader; one reader but for very odd names.
    """
    options: dict[str, str] = {}
    if is_local(root):
        options["fs.file.impl"] = "org.apache.hadoop.fs.RawLocalFileSystem"
        # Else the one that is open already, with sums, would be taken.
        options["fs.file.impl.disable.cache"] = "true"
    paths: list[str] = []
    reads = [(options, paths)]
    for uri in uris:
        if _PATTERN.search(uri) and ":" in re.sub("^[a-z0-9]+:/", "", uri):
            # Hadoop can't look for a pattern below a colon; Spark takes a name as it is only alone.
            reads.append(({**options, "__globPaths__": "false"}, [uri]))
        else:
            # A file that is named like a pattern must still be itself.
            paths.append(_PATTERN.sub(r"\\\1", uri))
    return [read for read in reads if read[1]]


def find_path_below_dataset(levels: int) -> Column:
    """Builds the path, STRING, of a row's file below its data set; percent-encoded.

    Args:
        levels: how many folders it lies in there.
    """
    return F.substring_index("_metadata.file_path", "/", -levels - 1)


def build_source_file(dataset: str, levels: int) -> Column:
    """Builds the name, STRING, of a row's file below the landing root."""
    return F.concat_ws("/", F.lit(dataset), _decode(find_path_below_dataset(levels)))


def _decode(path: Column) -> Column:
    """Undoes the percent-encoding of `_metadata`; a plus sign is itself there."""
    decoded = F.url_decode(F.regexp_replace(path, r"\+", "%2B"))
    return F.when(path.contains("%"), decoded).otherwise(path)  # seldom, and dear
