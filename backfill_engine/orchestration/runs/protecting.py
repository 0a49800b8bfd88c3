"""What protection keeps from being published: the refusal of a run, and what sensors leave out.

See `lake.protections`. A run is refused before any of its assets does anything, however it was
started; what asks for runs by itself leaves protected partitions out.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dagster import DagsterInstance, DagsterRun

from backfill_engine.errors import ProtectedError
from backfill_engine.lake.protections import Protection, Protections, read_protections
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import find_run_assets
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import describe_ranges, find_ranges, shorten
from backfill_engine.orchestration.instance.recovered_runs import enter_again
from backfill_engine.orchestration.runs.features import StepRequest
from backfill_engine.orchestration.runs.run_options import read_override
from backfill_engine.orchestration.runs.run_tags import OVERRIDE_TAG, REFUSED_TAG
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.tables.declarations import Table

_LISTED = 7
_CURE = (
    "leave them out, lift it with `backfill-assets protect --lift` or in the declaration, or say "
    "why they are to be written all the same"
)


@dataclass(frozen=True)
class ProtectionHook(PublishHook):
    """Keeps why protected partitions were published all the same.

    Attributes:
        overrides: a person's reason, with that of the protection, by partition key.
    """

    name: ClassVar[str] = "override_protection"
    overrides: Mapping[str, str]

    def describe_partition(self, key: str) -> str:
        """Describes why the partition was published though it is protected."""
        return self.overrides.get(key, "")


def describe_protected(
    table: Table, protected: Mapping[str, Protection], *, most: int | None = None
) -> list[str]:
    """Says which partitions of a table are protected and why, a text for each reason."""
    texts = {key: protection.describe() for key, protection in protected.items()}
    return describe_ranges(find_partitions_def(table), texts, most=most)


@dataclass(frozen=True)
class ProtectionInForce:
    """What one decision, or declaration, protects now.

    Attributes:
        table: `layer/name`.
        ranges: first and last key of the partitions that there are.
        and_later: whether those that are still to come are protected by it, too.
        reason: why.
        by: who decided it; empty where it is declared with the table.
        since: when, UTC; None likewise.
    """

    table: str
    ranges: Sequence[tuple[str, str]]
    and_later: bool
    reason: str
    by: str
    since: dt.datetime | None


def list_in_force(table: Table, protections: Protections) -> list[ProtectionInForce]:
    """Lists what is protected of a table now; what was lifted, or decided anew, is left out."""
    listed = protections.list_of(table)
    if not listed:
        return []
    partitions_def = find_partitions_def(table)
    winners: dict[Protection, list[str]] = {protection: [] for protection in listed}
    for key, protection in protections.find(table, partitions_def.get_partition_keys()).items():
        winners[protection].append(key)
    last = (
        next((protection for protection in listed if protection.last is None), None)
        if table.grain.cron
        else None
    )
    return [
        ProtectionInForce(
            table.key,
            find_ranges(partitions_def, keys),
            protection is last,
            protection.reason,
            protection.by,
            protection.at,
        )
        for protection, keys in winners.items()
        if protection.protected and (keys or protection is last)
    ]


def refuse_protected(
    warehouse: Warehouse, table: Table, keys: Iterable[str], *, override: str, how: str
) -> dict[str, str]:
    """Refuses to write protected partitions of a table, unless a person says why.

    Args:
        warehouse: where the table is.
        table: the table.
        keys: the partitions that are to be written.
        override: the person's reason; empty if there is none.
        how: how a reason is given there.

    Returns:
        By key, of the partitions that are protected: why they are written all the same.

    Raises:
        ProtectedError: if any is protected and there is no such reason.
    """
    protected = read_protections(warehouse).find(table, keys)
    if protected and not override:
        raise ProtectedError(_describe_refusal({table: protected}, how))
    return {key: _describe_override(override, protection) for key, protection in protected.items()}


def protect_partitions(request: StepRequest) -> ProtectionHook:
    """Refuses a run that would publish protected partitions of any of its assets.

    All of it, also what isn't protected: a person asked for the whole. Those of its assets that it
    has published already don't count, as their protection came too late. What is protected stays
    as it is in the instance, too: what is published shows as published. A tag says of the run that
    it was refused, so that nobody takes that for its work.

    Returns:
        The hook that keeps why protected partitions of the step's table are published.

    Raises:
        ProtectedError: if one is protected, and the run has no reason for it; nothing was written.
        BackfillError: if what is protected can't be read.
    """
    run, instance = request.run, request.instance
    protections = read_protections(request.warehouse)
    assets = sorted(find_run_assets(instance, run))
    tables = [request.catalog.find_table(key.to_user_string()) for key in assets]
    found = {table: protections.find(table, request.keys) for table in tables}
    overrides = {
        table: read_override(run, find_asset_key(table))
        for table, protected in found.items()
        if protected
    }
    refused = {table: found[table] for table, override in overrides.items() if not override}
    if refused:
        done = _list_done(instance, run)
        refused = {table: found[table] for table in refused if table.key not in done}
    if refused:
        for table, protected in refused.items():
            # Nobody could run them again, and what reads them would wait for that for ever.
            enter_again(instance, find_asset_key(table), protected)
        instance.add_run_tags(run.run_id, {REFUSED_TAG: "true"})
        how = f"in the configuration as `override_protection`, or by the tag {OVERRIDE_TAG}"
        raise ProtectedError(_describe_refusal(refused, how))
    override = overrides.get(request.recipe.table, "")
    protected = found.get(request.recipe.table, {}) if override else {}
    return ProtectionHook(
        {key: _describe_override(override, protection) for key, protection in protected.items()}
    )


def split_protected(
    protections: Protections, tables: Sequence[Table], keys: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Splits partitions that a run is to publish of several tables.

    Returns:
        The keys that are protected in none of the tables; and what is left out and why, in words.
    """
    found = {table: protections.find(table, keys) for table in tables}
    left_out = {key for protected in found.values() for key in protected}
    return (
        [key for key in keys if key not in left_out],
        [
            f"protected, left out: {table.key} {text}"
            for table, protected in found.items()
            for text in describe_protected(table, protected, most=_LISTED)
        ],
    )


def _list_done(instance: DagsterInstance, run: DagsterRun) -> set[str]:
    """Lists the tables that the run has published already."""
    steps = instance.get_run_step_stats(run.run_id)
    return {
        step.step_key.replace("__", "/", 1)
        for step in steps
        if step.status is not None and step.status.value == "SUCCESS"
    }


def _describe_refusal(refused: Mapping[Table, Mapping[str, Protection]], how: str) -> str:
    listed = "; ".join(
        f"{table.key} {text}"
        for table, protected in refused.items()
        for text in shorten(describe_protected(table, protected, most=_LISTED), _LISTED)
    )
    return f"protected: {listed}: {_CURE}, {how}; nothing was written"


def _describe_override(reason: str, protection: Protection) -> str:
    return f"{reason}; protected: {protection.describe()}"
