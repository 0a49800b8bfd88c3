"""What a step says to people: what it published, what it withheld and why, and how to go on."""

import logging
from collections.abc import Sequence

from dagster import DagsterRun

from backfill_engine.catalog import Catalog
from backfill_engine.lake.origins import TO_FILL_IN
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import (
    build_command,
    describe_ranges,
    find_ranges,
    shorten,
)
from backfill_engine.orchestration.runs.pausing import Continuation
from backfill_engine.orchestration.runs.run_options import (
    build_acceptance_config,
    build_asset_config,
)
from backfill_engine.orchestration.runs.run_tags import find_chain
from backfill_engine.publishing.results import (
    PartitionResult,
    describe_failures,
    describe_findings,
    list_acceptable,
)
from backfill_engine.rules.verdicts import Check
from backfill_engine.tables.declarations import Table

_LISTED = 50
_UPSTREAM_LISTED = 7
_ACCEPTANCES_LISTED = 3
_SHOWN_OF_ID = 8


def log_chunk(logger: logging.Logger, table: Table, results: Sequence[PartitionResult]) -> None:
    """Logs what came of a chunk, at least one result, ascending; and warns of what is unusual."""
    published = [result for result in results if result.is_written]
    rows = sum(result.measures.rows for result in published)
    versions = sorted({str(result.version) for result in published})
    message = (
        f"{table.key}: published {len(published)} of {len(results)} partitions "
        f"({results[0].key}...{results[-1].key}, {rows:,} rows)"
    )
    if versions:
        message += f" as version {', '.join(versions)}"
    if unchanged := sum(result.unchanged for result in results):
        message += f"; {unchanged} already published, left as they stand"
    logger.info(message)
    warned = describe_warnings(published)
    if warned:
        logger.warning(f"{table.key}: published with warnings:\n" + "\n".join(warned))
    repeated = [result.key for result in results if result.repeated_batch]
    if repeated:
        logger.warning(
            f"{table.key}: {repeated[0]} … {repeated[-1]} ({len(repeated)} partitions) hold this "
            "batch already: nothing was written there"
        )
    emptied = [result.key for result in published if result.verdict.emptied]
    if emptied:
        listed = ", ".join(shorten(emptied, _LISTED))
        logger.warning(f"{table.key}: {listed}: the source has no records; published empty")


def describe_warnings(results: Sequence[PartitionResult]) -> list[str]:
    """Describes what was warned about, a line for each partition, with value and bound."""
    lines = [
        f"{result.key}: {describe_findings(warned)}"
        for result in results
        if (warned := result.verdict.warned)
    ]
    return shorten(lines, _LISTED)


def describe_withheld(
    catalog: Catalog,
    run: DagsterRun,
    table: Table,
    withheld: Sequence[PartitionResult],
    partitions: int,
    found: Continuation,
) -> str:
    """Describes in one message the withheld partitions with their reasons, and what to do.

    Args:
        catalog: of the code location.
        run: the run.
        table: its table.
        withheld: at least one, ascending; also what is not due, which is counted apart.
        partitions: how many the step was asked for.
        found: what can go on.
    """
    partitions_def = find_partitions_def(table)
    not_due = [result for result in withheld if result.not_due]
    reasons = {
        result.key: describe_failures(result.verdict) for result in withheld if not result.not_due
    }
    counted = [f"withheld {len(reasons)} of {partitions} partitions"] if reasons else []
    lines = shorten(describe_ranges(partitions_def, reasons), _LISTED)
    if not_due:
        of_all = "more" if reasons else f"of {partitions} partitions"
        counted.append(f"{len(not_due)} {of_all} are not due")
        lines += describe_ranges(partitions_def, dict.fromkeys(*_describe_not_due(not_due)))
    message = (
        f"{table.key}: {', '.join(counted)} (the other {partitions - len(withheld)} are "
        "published):\n  " + "\n  ".join(lines)
    )
    read = [read.key for read in catalog.recipes[table.key].inputs if read.is_published]
    source = " or ".join(read) or "the source"
    chain_id = find_chain(run)[:_SHOWN_OF_ID]
    retry = [f"backfill-assets backfill retry {chain_id}"] if reasons else []
    accept = f"Or publish them as they are, with your reason in place of {TO_FILL_IN}"
    commands = {
        f"Once {source} is mended, go on with them and what waits for them": retry,
        accept: _build_acceptances(catalog, run, table, withheld),
        "To go on with what does not depend on them": _build_commands(catalog, run, found),
    }
    return message + "".join(
        f"\n{what}:\n  " + "\n  ".join(listed) for what, listed in commands.items() if listed
    )


def _build_acceptances(
    catalog: Catalog, run: DagsterRun, table: Table, withheld: Sequence[PartitionResult]
) -> list[str]:
    """Builds the commands that accept what failed: one for each range that failed the same."""
    partitions_def, asset_key = find_partitions_def(table), find_asset_key(table)
    by_checks: dict[tuple[Check, ...], list[str]] = {}
    for result in withheld:
        if checks := list_acceptable(result):
            by_checks.setdefault(tuple(checks), []).append(result.key)
    ranges = sorted(
        (*ends, checks)
        for checks, keys in by_checks.items()
        for ends in find_ranges(partitions_def, keys)
    )
    commands = [
        build_command(
            catalog, [table.key], first, last, build_acceptance_config(run, asset_key, checks)
        )
        for first, last, checks in ranges[:_ACCEPTANCES_LISTED]
    ]
    rest = len(ranges) - len(commands)
    return [*commands, *([f"and {rest} more"] if rest else [])]


def _describe_not_due(results: Sequence[PartitionResult]) -> tuple[list[str], str]:
    """Describes them together: their keys, and all that they wait for."""
    never_came = dict.fromkeys(upstream for result in results for upstream in result.not_due)
    listed = ", ".join(shorten(list(never_came), _UPSTREAM_LISTED))
    return [result.key for result in results], f"not due: {listed} never came"


def _build_commands(catalog: Catalog, run: DagsterRun, found: Continuation) -> list[str]:
    assets = [key.to_user_string() for key in found.assets]
    config = build_asset_config(run, found.assets)
    return [build_command(catalog, assets, first, last, config) for first, last in found.ranges]
