"""What the UI shows in Markdown: why a partition is withheld, what to do next, the certificate.

An event holds what is shown, so pages are short, and few: a year of bad hours has thousands.
"""

from collections.abc import Mapping, Sequence

from dagster import MarkdownMetadataValue, MetadataValue

from backfill_engine.catalog import Catalog
from backfill_engine.escaping import escape_markdown, write_code_block
from backfill_engine.lake.origins import TO_FILL_IN
from backfill_engine.lake.side_tables import build_quarantine_table, build_withheld_table
from backfill_engine.orchestration.instance.ranges import (
    build_command,
    build_range_options,
)
from backfill_engine.proof.certificates import Certificate
from backfill_engine.proof.pages import render_certificate
from backfill_engine.publishing.results import PartitionResult, describe_failures, list_acceptable
from backfill_engine.rules.verdicts import Check
from backfill_engine.tables.declarations import Table

_PAGES = 50
_LISTED = 20


def build_withheld_pages(
    catalog: Catalog, table: Table, results: Sequence[PartitionResult], *, run_id: str
) -> dict[str, MarkdownMetadataValue]:
    """Builds the page of each withheld partition, by its key; of so many only the first have one.

    Args:
        catalog: of the code location.
        table: its table.
        results: of a step, or of a chunk of it.
        run_id: the run.
    """
    withheld = [result for result in results if result.version is None and not result.not_due]
    return {
        result.key: MetadataValue.md(_render_withheld(catalog, table, result, run_id))
        for result in withheld[:_PAGES]
    }


def _render_withheld(catalog: Catalog, table: Table, result: PartitionResult, run_id: str) -> str:
    key = result.key
    again = build_command(catalog, [table.key], key, key, {})
    parts = [
        f"**{table.key} {escape_markdown(key)} was withheld** by [run {run_id[:8]}](/runs/{run_id})"
        "; what was published of it before stays.\n\n"
        f"- {escape_markdown(describe_failures(result.verdict))}"
    ]
    kept = {}
    if result.measures.rows:
        kept[f"{result.measures.rows:,} rows"] = build_withheld_table(table)
    if result.measures.rejects:
        kept[f"{result.measures.rejects:,} rejected records"] = build_quarantine_table(table)
    if kept:
        places = [f"{what} are kept aside in `{at.key}`" for what, at in kept.items()]
        parts.append(
            f"{', '.join(places)}. To look at them:\n\n"
            + write_code_block(
                f"backfill-assets status --withheld --select {table.key} "
                + build_range_options([key])
            )
        )
    parts.append(
        "Mend its source, then run it again: *Materialize…* on its page, or\n\n"
        + write_code_block(again)
    )
    if acceptable := list_acceptable(result):
        parts.append(
            "Or publish it as it is, with a reason, as *Config* of *Materialize…*:\n\n"
            + write_code_block(_render_acceptance(table, key, acceptable), "yaml")
        )
    return "\n\n".join(parts)


def _render_acceptance(table: Table, key: str, checks: Sequence[Check]) -> str:
    accepted = "".join(
        f"\n        - {{check: {check}, reason: {TO_FILL_IN}, partitions: ['{key}']}}"
        for check in checks
    )
    op = table.key.replace("/", "__")
    return f"ops:\n  {op}:\n    config:\n      accept:{accepted}"


def build_failure_metadata(
    message: str, certificate: Certificate | None
) -> Mapping[str, MarkdownMetadataValue]:
    """Builds what the failure of a step carries: what to do, and the certificate."""
    advice = {"what to do": MetadataValue.md(write_code_block(message))}
    return advice | build_certificate_metadata(certificate)


def build_certificate_metadata(
    certificate: Certificate | None,
) -> dict[str, MarkdownMetadataValue]:
    """Builds the certificate to be read in the UI, long ones shortened; nothing without one."""
    if certificate is None:
        return {}
    return {"certificate": MetadataValue.md(render_certificate(certificate, most=_LISTED))}
