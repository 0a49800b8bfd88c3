"""A process of its own that migrates a table, and is killed while it does.

Arguments: warehouse root, which of its readings of the rows kills it (`1` before the commit, `2`
before the comparison), whether its commit loses rows. The table is pickled on stdin.
"""

import os
import pickle
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from backfill_engine.contents.partition_contents import PartitionReader, ReadBack, read_back
from backfill_engine.lake.partitions import Partition
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.migrating import migrate_columns
from backfill_engine_tests.shared_fixtures import start_session


@dataclass(frozen=True)
class KillingReader(PartitionReader):
    """Reads partitions, until the process is killed.

    Attributes:
        reading: which one kills the process.
        loses: whether rows are told that aren't there, so that the commit seems to lose them.
        read: the versions that were read so far.
    """

    reading: int = 1
    loses: bool = False
    read: list[int] = field(default_factory=list)

    def read_back(self, log: TableLog, partitions: Sequence[Partition]) -> dict[str, ReadBack]:
        """Reads them."""
        self.read.append(log.version)
        if len(self.read) == self.reading:
            os.kill(os.getpid(), signal.SIGKILL)
        found = read_back(log, partitions)
        if self.loses:
            found = {key: ReadBack(held.rows + 1, held.checksum) for key, held in found.items()}
        return found


if __name__ == "__main__":
    root, reading, loses = sys.argv[1:]
    table = pickle.load(sys.stdin.buffer)
    migrate_columns(
        start_session({"spark.driver.memory": "768m", "spark.master": "local[1]"}),
        read_log(Warehouse(root), table),
        run_id="killed",
        reader=KillingReader(reading=int(reading), loses=loses == "True"),
        overrides={},
    )
