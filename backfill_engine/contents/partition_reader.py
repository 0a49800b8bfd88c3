"""Decides where partitions are read back: in this process, or in Spark's tasks.

Whoever wants rows and checksums of partitions at a version goes this way. Loads without Spark,
which is imported once tasks are to read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_engine.contents.partition_contents import ReadBack, read_back
from backfill_engine.lake.partitions import Partition, find_folder
from backfill_engine.lake.table_log import TableLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Of these a file is all there is of its rows: no deletion vectors, no other names of columns.
_PLAIN_FEATURES = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
_OUTPUT_OF_INPUT = 4
"""Most bytes that a commit is taken to have, for one of its inputs."""


@dataclass(frozen=True)
class PartitionReader:
    """Reads partitions back: large ones in Spark's tasks, where it is given a session.

    Attributes:
        open_session: gives the session, started at the first call; None where there is none.
        task_bytes: bytes of data files from which on tasks read; None for never.
    """

    open_session: "Callable[[], SparkSession] | None" = None
    task_bytes: int | None = None

    def read_back(self, log: TableLog, partitions: Sequence[Partition]) -> dict[str, ReadBack]:
        """Reads rows and checksums of partitions; only these come to this process from tasks.

        Args:
            log: of the table, at the version to read.
            partitions: what to read; disjoint.

        Returns:
            What `contents.partition_contents.read_back` returns, either way.

        Raises:
            SparkUnavailableError: if there can be no session, or Spark's workers lack what the
                tasks need.
        """
        if self.open_session is None or self.task_bytes is None or not partitions:
            return read_back(log, partitions)
        sizes = log.sum_folder_bytes()
        folders = {find_folder(log.table, partition) for partition in partitions}
        size = sum(sizes.get(folder, 0) for folder in folders)
        # Most are small: what only tasks need to know is looked up only where they read.
        if size < self.task_bytes or not _has_plain_files(log):
            return read_back(log, partitions)
        from backfill_engine.contents.task_read_back import read_back_in_tasks

        return read_back_in_tasks(self.open_session(), log, partitions)

    def check_workers(self, log: TableLog, *, input_bytes: int) -> None:
        """Sees before a commit that tasks can read it back, if it may be one for them.

        Args:
            log: of the table, which need not exist yet.
            input_bytes: of what the commit is computed from.

        Raises:
            SparkUnavailableError: if Spark's workers lack what the tasks need.
        """
        if self.open_session is None or self.task_bytes is None:
            return
        if input_bytes * _OUTPUT_OF_INPUT < self.task_bytes:
            return
        from backfill_engine.contents.task_read_back import check_workers

        check_workers(self.open_session(), log)


IN_THIS_PROCESS = PartitionReader()
"""Reads all of it here, whatever the size."""


def _has_plain_files(log: TableLog) -> bool:
    protocol = log.open_snapshot().protocol()
    if protocol.min_reader_version == 1:
        return True
    features = protocol.reader_features
    return features is not None and _PLAIN_FEATURES.issuperset(features)
