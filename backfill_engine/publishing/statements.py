"""What a certificate will say of a commit, as one hash that the commit itself carries.

A certificate is a document beside the tables, which anyone who can write there can edit. All of it
that is known when a commit is made is hashed into the commit's record, so that whoever reads the
document later can tell whether it still says that.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from backfill_engine.publishing.results import (
    PartitionResult,
    Run,
    describe_failures,
    find_outcomes,
)
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.rules.verdicts import Check


@dataclass(frozen=True)
class StatedPartition:
    """What is known of a partition when the commit that came with its audit is made.

    Attributes:
        partition: its key.
        rows: rows audited.
        checksum: of them.
        checks: outcome by check, of those with rules; what is read back comes only afterwards.
        failures: failed rules in one line, of the same checks.
        accepted: reason by failed check that a person let pass.
        notes: by name of a feature, what it did to the partition.
    """

    partition: str
    rows: int
    checksum: str
    checks: Mapping[str, str]
    failures: str
    accepted: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """All that a certificate says of one commit and that is known when it is made.

    A field that a later release adds must be empty where an earlier one would have said nothing:
    what is empty is no part of the hash.

    Attributes:
        run_id: the Dagster run.
        backfill_id: the backfill that it was part of; None if none.
        asset_key: `layer/name`.
        table_uri: where the table is.
        started_at: when the step began: UTC, ISO 8601.
        run_config: of the run.
        options: how it writes.
        code_version: what the partitions were computed by.
        input_versions: what they were computed from.
        partitions: all that were judged together with the commit, published or not, in any order.
        features: by name of a feature, what it did to the publish.
    """

    run_id: str
    backfill_id: str | None
    asset_key: str
    table_uri: str
    started_at: str
    run_config: Mapping[str, Any]
    options: WriteOptions
    code_version: str
    input_versions: Mapping[str, int | str]
    partitions: Sequence[StatedPartition]
    features: Mapping[str, Any] = field(default_factory=dict)

    def hash(self) -> str:
        """Hashes canonical JSON of it: SHA-256 in hexadecimal digits."""
        rows = [_drop_empty(vars(partition)) for partition in self.partitions]
        content = {
            **_drop_empty(vars(self)),
            "options": self.options.describe(),
            "partitions": sorted(rows, key=lambda row: row["partition"]),
        }
        # By way of the JSON that certificates are written in, so that both know the same values.
        plain = json.loads(to_json(content, inf_nan_mode="null"))
        canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def build_statement(
    run: Run,
    *,
    asset_key: str,
    table_uri: str,
    code_version: str,
    input_versions: Mapping[str, int | str],
    results: Sequence[PartitionResult],
) -> str:
    """Builds the hash that a commit carries.

    Args:
        run: the run that commits.
        asset_key: of the table, `layer/name`.
        table_uri: where it is.
        code_version: what the partitions were computed by.
        input_versions: what they were computed from.
        results: of all partitions judged together with the commit, before they are read back.
    """
    return Statement(
        run_id=run.run_id,
        backfill_id=run.backfill_id,
        asset_key=asset_key,
        table_uri=table_uri,
        started_at=format_start(run),
        run_config=run.config,
        options=run.options,
        code_version=code_version,
        input_versions=input_versions,
        partitions=[_state(result) for result in results],
        features=run.features,
    ).hash()


def format_start(run: Run) -> str:
    """Writes when the step began: UTC, ISO 8601."""
    return run.started_at.isoformat(timespec="milliseconds")


def _state(result: PartitionResult) -> StatedPartition:
    assert not result.verdict.findings.get(Check.READABLE), "nothing was read back yet"
    return StatedPartition(
        partition=result.key,
        rows=result.measures.rows,
        checksum=result.measures.checksum,
        checks=find_outcomes(result.verdict),
        failures=describe_failures(result.verdict),
        accepted={acceptance.check: acceptance.reason for acceptance in result.verdict.accepted},
        notes=result.notes,
    )


def _drop_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
