"""Certificates, and what of them still holds, as Markdown for people."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backfill_engine.escaping import Markdown, escape_markdown, write_code, write_row
from backfill_engine.proof.certificates import Certificate, CertifiedPartition


def render_certificate(certificate: Certificate, *, most: int | None = None) -> str:
    """Renders the certificate's page; of more than `most` partitions, only some held-back ones."""
    published = [row for row in certificate.partitions if row.status == "published"]
    changed = [row for row in published if row.checksum != row.checksum_before]
    rows, rest = _choose_rows(certificate.partitions, most)
    lines = [
        f"# {_describe_range(certificate)}",
        "",
        f"Run {write_code(certificate.run_id)}"
        + (f" of backfill {write_code(certificate.backfill_id)}" if certificate.backfill_id else "")
        + f", begun {escape_markdown(certificate.started_at)}, {certificate.seconds:.1f} s. "
        f"{len(published)} of {len(certificate.partitions)} partitions published, "
        f"{len(changed)} of them with other contents than before.",
        "",
        "| | |",
        "|---|---|",
        write_row("table", write_code(certificate.table_uri)),
        write_row("code version", write_code(certificate.code_version)),
        write_row("write mode", _describe_mode(certificate)),
        *(
            write_row(Markdown(f"input {write_code(name)}"), version)
            for name, version in certificate.input_versions.items()
        ),
        *(
            write_row(name.replace("_", " "), _describe_feature(description))
            for name, description in certificate.features.items()
        ),
        write_row(
            "run configuration", write_code(json.dumps(certificate.run_config, sort_keys=True))
        ),
        *(
            write_row(
                f"commit {commit.version}, {commit.committed_at}", write_code(commit.predicate)
            )
            for commit in certificate.commits
        ),
        "",
        "## Nothing else changed"
        if not certificate.touched_outside
        else "## Other partitions changed too",
        "",
        _describe_untouched(certificate),
        "",
        *_describe_chunks(certificate),
        "## Partitions",
        "",
        "| partition | status | version | rows before | rows | checksum | checks |",
        "|---|---|---:|---:|---:|---|---|",
        *(_describe_partition(row) for row in rows),
        *([f"\nand {rest} more"] if rest else []),
    ]
    return "\n".join(lines) + "\n"


def _describe_chunks(certificate: Certificate) -> list[str]:
    if not certificate.chunks:
        return []
    return [
        "## Chunks",
        "",
        "| chunk | operation | status | started | completed | partitions | published | withheld "
        "| rows | error |",
        "|---|---|---|---|---|---:|---:|---:|---:|---|",
        *(
            write_row(
                *(f"{chunk.first} … {chunk.last}", chunk.operation_type, chunk.status),
                *(chunk.started_at, chunk.completed_at or "", chunk.partitions, chunk.published),
                *(chunk.withheld, f"{chunk.rows:,}", chunk.error),
            )
            for chunk in certificate.chunks
        ),
        "",
    ]


def _choose_rows(
    rows: Sequence[CertifiedPartition], most: int | None
) -> tuple[Sequence[CertifiedPartition], int]:
    """Chooses the rows that a page lists, and counts the others."""
    if most is None or len(rows) <= most:
        return rows, 0
    chosen = [row for row in rows if row.is_held_back][:most]
    return chosen, len(rows) - len(chosen)


def _describe_range(certificate: Certificate) -> Markdown:
    return escape_markdown(
        f"{certificate.asset_key} {certificate.partition_start} … {certificate.partition_end}"
    )


def _describe_mode(certificate: Certificate) -> Markdown:
    chosen, batch = certificate.row_filter, certificate.batch
    texts = [escape_markdown(certificate.write_mode)]
    texts += [f"of rows with {write_code(chosen)}"] if chosen else []
    texts += ["missing rows deleted"] if certificate.delete_missing else []
    texts += [f"batch {write_code(batch)}"] if batch else []
    return Markdown(", ".join(texts))


def _describe_untouched(certificate: Certificate) -> str:
    if certificate.touched_outside:
        listed = list_touched(certificate.touched_outside)
        return f"The commits also added or removed data files of {escape_markdown(listed)}."
    compared, others = certificate.compared_partitions, certificate.untouched_partitions
    these, those = ("partitions' folders", "folders") if compared else ("partitions", "partitions")
    texts = (
        f"The log shows that the commits added and removed data files of these {these} only. "
        f"The {others} other {those} kept their {certificate.untouched_files} files."
    )
    if compared:
        texts += (
            f" The {compared} other partitions in the same folders have the same rows and "
            "checksums as before."
        )
    return texts


def list_touched(outside: Mapping[str, Sequence[int]]) -> str:
    """Lists partitions or folders outside of a range with the versions that changed them."""
    return ", ".join(
        f"{key} (version {', '.join(map(str, versions))})" for key, versions in outside.items()
    )


def _describe_partition(row: CertifiedPartition) -> str:
    before = "" if row.rows_before is None else f"{row.rows_before:,}"
    same = " (as before)" if row.checksum == row.checksum_before else ""
    texts = [f"{check} {outcome}" for check, outcome in row.checks.items() if outcome != "passed"]
    texts += [row.failures] if row.failures else []
    texts += [f"{check} accepted: {reason}" for check, reason in row.accepted.items()]
    texts += [f"{name.replace('_', ' ')}: {text}" for name, text in row.notes.items()]
    version = "" if row.version is None else str(row.version)
    return write_row(
        *(row.partition, row.status, version, before, f"{row.rows:,}"),
        *(Markdown(f"{write_code(row.checksum)}{same}"), "; ".join(texts) or "passed"),
    )


def _describe_feature(description: Any) -> str:
    if isinstance(description, Mapping):
        return ", ".join(f"{name} {text}" for name, text in description.items() if text)
    return str(description)


@dataclass(frozen=True)
class VerifiedLine:
    """One statement of a certificate.

    Attributes:
        statement: what it says.
        holds: whether it still does; None if that can't be told any more.
        found: what was found instead, or what has come since; empty if there is nothing to say.
    """

    statement: str
    holds: bool | None
    found: str = ""


def build_title(certificate: Certificate) -> str:
    """Names the certificate: its table, its range and its run."""
    return f"{_describe_range(certificate)}, run {write_code(certificate.run_id)}"


def render_lines(title: str, lines: Sequence[VerifiedLine]) -> str:
    """Renders what holds as one count, and under a title the lines of which there is more to say.

    These are the ones that don't hold or can't be told, and those with a remark.
    """
    words = {True: "holds", False: "DOES NOT HOLD", None: "can't be told"}
    held = sum(line.holds is True for line in lines)
    texts = [
        f"- {words[line.holds]}: {escape_markdown(line.statement)}"
        + (f" ({escape_markdown(line.found)})" if line.found else "")
        for line in lines
        if line.found or line.holds is not True
    ]
    return "\n".join([f"# {title}", "", f"{held} of {len(lines)} lines hold.", *texts, ""])
