"""What is there of sources without files: a text for each partition, not sizes and times."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backfill_engine.errors import LandingError
from backfill_engine.lake.landing import FileFault, LandedFiles, LandingFile, summarize_evidence
from backfill_engine.lake.partitions import Partition
from backfill_engine.rules.measured import Landed
from backfill_engine.sources.source import Listing


@dataclass(frozen=True)
class EvidenceListing(Listing):
    """A `Listing` by texts: another text means that the partition's rows changed.

    Attributes:
        evidence: by partition key; absent are partitions of which nothing is there.
        rows: by partition key, how many there are; None where only reading tells.
        not_read: what the source holds beside the rows of partitions, in words.
    """

    evidence: Mapping[str, str]
    rows: Mapping[str, int] | None = None
    not_read: tuple[str, ...] = ()

    @property
    def missing(self) -> Sequence[Partition]:
        """Listed partitions of which nothing is there."""
        return tuple(part for part in self.partitions if part.key not in self.evidence)

    @property
    def faults(self) -> Sequence[FileFault]:
        """None: what can't be asked can't be listed."""
        return ()

    def fingerprint(self) -> str:
        """Counts the partitions that are there, and hashes their evidence."""
        digest, found = hashlib.sha256(), self.list_evidence()
        for key, text in found.items():
            digest.update(f"{key}\0{text}\n".encode())
        return f"{len(found)} partitions {digest.hexdigest()[:16]}"

    def list_landed(self) -> Mapping[str, Sequence[LandingFile]]:
        """Lists no files."""
        return {}

    def list_evidence(self) -> dict[str, str]:
        """Lists the evidence of listed partitions, by key."""
        keys = (partition.key for partition in self.partitions)
        return {key: self.evidence[key] for key in keys if key in self.evidence}

    def describe_files(self) -> dict[str, LandedFiles]:
        """Describes the evidence of each listed partition, as of no file."""
        return {
            partition.key: summarize_evidence(self.evidence.get(partition.key, ""))
            for partition in self.partitions
        }

    def count_records(self) -> Mapping[str, int]:
        """Counts the rows of listed partitions, by key, where they are known."""
        return {} if self.rows is None else {key: self.rows[key] for key in self.list_evidence()}

    @property
    def is_counted_by_reading(self) -> bool:
        """Whether counting reads all: listing has asked already."""
        return False

    def count_known(self) -> int | None:
        """Counts the rows of all listed partitions, where they are known."""
        return None if self.rows is None else sum(self.count_records().values())

    def measure_bytes(self) -> Mapping[str, int]:
        """Measures nothing."""
        return {}

    def describe_landed(self) -> Mapping[str, Landed]:
        """Describes what is there, by partition key; that nothing is there is no evidence."""
        return {
            partition.key: Landed(
                lack=f"{self.dataset} has no row of it",
                cure="add its rows there",
                not_read=self.not_read,
            )
            for partition in self.partitions
        }

    def find_broken(self, error: str) -> Sequence[FileFault]:
        """Finds no file.

        Raises:
            LandingError: if `error`, Spark's message, has what was raised in a task.
        """
        if raised := re.search(r"LandingError: (.+)", error):
            raise LandingError(raised[1])
        return ()
