"""Composes the notice of a chain of runs: what is held back, why, what goes on, what helps."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dagster import AssetKey, DagsterRun

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.orchestration.backfills.outcomes import (
    CANCELLED,
    WITHHELD,
    ChainResult,
    build_look_commands,
    describe_held_back,
)
from backfill_engine.orchestration.instance.partition_definitions import find_partitions_def
from backfill_engine.orchestration.instance.ranges import (
    build_command,
    find_ranges,
    join_tables,
    shorten,
)
from backfill_engine.orchestration.runs.chains import Chain
from backfill_engine.orchestration.runs.run_options import build_asset_config
from backfill_engine.proof.certificates import NOT_DUE
from backfill_engine.tables.declarations import Table

_LISTED = 50
_LISTED_IN_TEXT = 5


def compose_notice(
    catalog: Catalog, chain: Chain, result: ChainResult, *, retries_changed: bool
) -> dict[str, Any]:
    """Composes the notice of a chain that is not good, as a JSON object.

    Its `id` is the same however often it is sent, and another once a further run of the chain
    has failed after all. Lists are cut where they get long, and then say how many more there are.

    Args:
        catalog: of the code location.
        chain: the runs.
        result: what they came to.
        retries_changed: whether what is withheld is tried again by itself once its input changes.
    """
    withheld = any(held.status == WITHHELD for held in result.held_back)
    notice: dict[str, Any] = {
        "id": f"{chain.id} {chain.last_failed}",
        "kind": chain.kind,
        "chain": chain.id,
        "outcome": "withheld" if withheld else "failed",
        "began": chain.begun_at.isoformat(timespec="seconds"),
        "ended": chain.ended_at.isoformat(timespec="seconds"),
        "runs": shorten([run.run_id for run in chain.runs], _LISTED),
        "tables": [describe_held_back(held) for held in result.held_back],
        "errors": shorten(result.errors, _LISTED),
        "goes_on": _describe_what_goes_on(result, retries_changed=retries_changed),
        "commands": {
            "look": shorten(list(build_look_commands(result.held_back)), _LISTED),
            "run_again": shorten(
                list(_build_run_commands(catalog, chain.runs[0], result)), _LISTED
            ),
        },
    }
    return {"text": _render(notice), **notice}


def _describe_what_goes_on(result: ChainResult, *, retries_changed: bool) -> list[str]:
    lines = [
        f"published {count} of {key} in runs that continued it"
        for key, count in result.continued.items()
    ]
    if retries_changed and any(held.status == WITHHELD for held in result.held_back):
        lines.append(
            "what was withheld is tried again once its input has changed, and then what it held up "
            "(sensor process_due_partitions)"
        )
    return lines


def _build_run_commands(catalog: Catalog, run: DagsterRun, result: ChainResult) -> Iterator[str]:
    """Builds what publishes all that is held back, once its cause is mended; upstream first."""
    keys: dict[str, tuple[Table, set[str]]] = {}
    for held in result.held_back:
        if held.status not in (NOT_DUE, CANCELLED):
            keys.setdefault(held.table.key, (held.table, set()))[1].update(held.reasons)
    found = {
        key: find_ranges(find_partitions_def(table), sorted(held_back))
        for key, (table, held_back) in keys.items()
    }
    for selected, ranges in join_tables(found):
        config = _build_config(run, selected)
        for first, last in ranges:
            yield build_command(catalog, selected, first, last, config)


def _build_config(run: DagsterRun, tables: Sequence[str]) -> Mapping[str, Any]:
    try:
        return build_asset_config(run, [AssetKey.from_user_string(key) for key in tables])
    except (BackfillError, ValueError):  # what it was told may be what it failed at
        return {}


def _render(notice: Mapping[str, Any]) -> str:
    """Renders the notice for people, in a few lines."""
    counted = ", ".join(
        f"{table['partitions']} {table['status']} of {table['table']}" for table in notice["tables"]
    )
    lines = [f"{notice['kind']} {notice['chain'][:8]}: {counted or 'failed'}"]
    for table in notice["tables"]:
        reasons = shorten(table["reasons"], _LISTED_IN_TEXT)
        lines += [f"{table['table']} {table['status']} {reason}" for reason in reasons]
    lines += shorten(notice["errors"], _LISTED_IN_TEXT)
    goes_on = shorten(notice["goes_on"], _LISTED_IN_TEXT)
    lines.append(f"By itself: {'; '.join(goes_on) or 'nothing goes on'}.")
    commands = notice["commands"]
    for title, listed in (
        ("To look at what was withheld:", commands["look"]),
        ("To run it again, once its cause is mended:", commands["run_again"]),
    ):
        if listed:
            lines += [title, *(f"  {command}" for command in shorten(listed, _LISTED_IN_TEXT))]
    return "\n".join(lines)
