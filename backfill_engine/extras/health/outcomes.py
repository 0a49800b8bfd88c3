"""What runs did to tables, by their certificates: how long it took, what changed, what didn't."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.proof.certificates import (
    Certificate,
    CertifiedPartition,
    list_documents,
    read_readable,
)


@dataclass(frozen=True)
class Outcome:
    """What one run did to one table.

    Attributes:
        table: `layer/name`.
        run_id: the run.
        started_at: UTC.
        seconds: of the step, up to its certificate.
        published: partitions.
        withheld: partitions that failed their audit.
        failed: partitions that the step ended before, or broke at.
        again: of those published, the ones that were published before.
        changed: of these, the ones that have other contents now.
        changed_rows: rows in the changed ones now.
    """

    table: str
    run_id: str
    started_at: dt.datetime
    seconds: float
    published: int
    withheld: int
    failed: int
    again: int
    changed: int
    changed_rows: int

    @property
    def layer(self) -> str:
        """The layer of its table."""
        return self.table.partition("/")[0]


def list_outcomes(warehouse: Warehouse, *, since: dt.datetime) -> list[Outcome]:
    """Lists what runs did to tables, oldest first; those whose certificate can't be read are not.

    Args:
        warehouse: beside whose tables the certificates are.
        since: certificates that were written before are not opened.
    """
    documents = [document for document in list_documents(warehouse) if document.written_at >= since]
    outcomes = map(describe_outcome, read_readable(documents))
    return sorted(outcomes, key=lambda outcome: (outcome.started_at, outcome.table))


def describe_outcome(certificate: Certificate) -> Outcome:
    """Counts the partitions of a certificate by what became of them."""
    published = _select(certificate.partitions, "published")
    again = [partition for partition in published if partition.checksum_before is not None]
    changed = [partition for partition in again if partition.checksum != partition.checksum_before]
    return Outcome(
        table=certificate.asset_key,
        run_id=certificate.run_id,
        started_at=dt.datetime.fromisoformat(certificate.started_at),
        seconds=certificate.seconds,
        published=len(published),
        withheld=len(_select(certificate.partitions, "withheld")),
        failed=len(_select(certificate.partitions, "failed")),
        again=len(again),
        changed=len(changed),
        changed_rows=sum(partition.rows for partition in changed),
    )


def _select(rows: Sequence[CertifiedPartition], status: str) -> list[CertifiedPartition]:
    return [row for row in rows if row.status == status]


def find_quantile(weighted: Sequence[tuple[float, int]], share: float) -> float:
    """Finds the least value that `share` of the weight does not exceed; 0 of none.

    The quantile "inverted distribution function" of Hyndman and Fan (1996), definition 1.

    Args:
        weighted: values and their weights, integers above 0.
        share: above 0, up to 1.
    """
    ordered = sorted(weighted)
    total = sum(weight for _, weight in ordered)
    sums = accumulate(weight for _, weight in ordered)
    reached = (
        value for (value, _), sum_ in zip(ordered, sums, strict=True) if sum_ >= share * total
    )
    return next(reached, 0.0)
