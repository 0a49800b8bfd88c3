"""Which withheld partitions would be tried again with just the input and code of the last time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from dagster import AssetKey

from backfill_engine.errors import HistoryError
from backfill_engine.orchestration.due.row_movements import find_moved_since, find_rows_for
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import find_asset_key
from backfill_engine.orchestration.status.attempts import Attempt
from backfill_engine.proof.certificates import Certificate
from backfill_engine.publishing.inputs import PinnedInputs
from backfill_engine.publishing.recipes import Recipe


def find_unchanged(
    graph: AssetGraph,
    recipe: Recipe,
    attempts: Mapping[str, Attempt],
    pinned: PinnedInputs,
    *,
    coming: Mapping[AssetKey, Collection[str]],
) -> list[str]:
    """Finds withheld partitions whose input and code are what they were withheld with.

    Of an input whose rows say who reads them, the rows that moved since are asked; the mapping
    gives too much and too little. Of what is to be published before, only the mapping is known.

    Args:
        graph: of all assets.
        recipe: of the table.
        attempts: those that withheld the partitions, by key.
        pinned: what these would be computed from now.
        coming: upstream partitions that are to be published before.

    Raises:
        TableError: if rows of an input can't be read.
    """
    by_certificate: dict[str, list[str]] = {}
    certificates: dict[str, Certificate] = {}
    for key, attempt in attempts.items():
        then = attempt.certificate
        if then is None or then.code_version != recipe.code_version:
            continue
        if not _is_coming(pinned, key, coming):
            certificates[then.run_id] = then
            by_certificate.setdefault(then.run_id, []).append(key)
    by_rows = find_rows_for(graph, find_asset_key(recipe.table))
    return [
        key
        for run_id, keys in by_certificate.items()
        for key in _find_unchanged_since(certificates[run_id], keys, pinned, by_rows)
    ]


def _is_coming(pinned: PinnedInputs, key: str, coming: Mapping[AssetKey, Collection[str]]) -> bool:
    return any(
        not set(windows.get(key, ())).isdisjoint(coming.get(AssetKey.from_user_string(name), ()))
        for name, windows in pinned.windows.items()
    )


def _find_unchanged_since(
    then: Certificate, keys: Sequence[str], pinned: PinnedInputs, by_rows: Mapping[str, str]
) -> list[str]:
    """Finds those of some partitions, which a run withheld, that it would read the same of."""
    inputs, moved = dict(pinned.inputs), set[str]()
    ended = datetime.fromisoformat(then.started_at).timestamp() + then.seconds
    for name, column in by_rows.items():
        source, version = pinned.inputs[name], then.input_versions.get(name)
        # Without the version as it was, only the mapping is known.
        if not isinstance(version, int) or not source.had(version, ended):
            continue
        try:
            earlier = source.as_of(version)
        except HistoryError:
            continue
        moved |= find_moved_since(pinned.target.table, source, column, keys, since=version)
        inputs[name] = earlier
    # What a mapping gives of these is set back, and so doesn't count: their rows do.
    consumed = replace(pinned, inputs=inputs).describe_consumed(keys)
    missing = {one.key for one in pinned.listing.missing} if pinned.listing else set[str]()
    unchanged: list[str] = []
    for key in keys:
        state = then.held_back_from.get(key)
        # What was never computed waited for its input: for files, or for what it reads.
        same = consumed[key].state == state if state is not None else key in missing
        if same and key not in moved:
            unchanged.append(key)
    return unchanged
