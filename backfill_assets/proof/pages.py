"""Certificates, and what of them still holds, as Markdown for people."""

import json
from collections.abc import Sequence

from backfill_assets.proof.certificates import Certificate, CertifiedPartition
from backfill_assets.proof.verification import VerifiedLine


def render_certificate(certificate: Certificate) -> str:
    """The whole page."""
    one = certificate
    published = [part for part in one.partitions if part.status == "published"]
    changed = [part for part in published if part.checksum != part.checksum_before]
    lines = [
        f"# {one.asset_key} {one.partition_start} … {one.partition_end}",
        "",
        f"Run `{one.run_id}`"
        + (f" of backfill `{one.backfill_id}`" if one.backfill_id else "")
        + f", begun {one.started_at}, {one.seconds:.1f} s. {len(published)} of "
        f"{len(one.partitions)} partitions published, {len(changed)} of them with other contents "
        "than before.",
        "",
        "| | |",
        "|---|---|",
        f"| table | `{one.table_uri}` |",
        f"| code version | `{one.code_version}` |",
        f"| write mode | {_describe_mode(one)} |",
        *(f"| input `{name}` | {version} |" for name, version in one.input_versions.items()),
        f"| run configuration | `{json.dumps(one.run_config, sort_keys=True)}` |",
        *(
            f"| commit {commit.version}, {commit.committed_at} | `{commit.predicate}` |"
            for commit in one.commits
        ),
        "",
        "## Nothing else changed" if not one.touched_outside else "## Other partitions changed too",
        "",
        _describe_untouched(one),
        "",
        "## Partitions",
        "",
        "| partition | status | version | rows before | rows | checksum | checks |",
        "|---|---|---:|---:|---:|---|---|",
        *(_describe_partition(part) for part in one.partitions),
    ]
    return "\n".join(lines) + "\n"


def _describe_mode(one: Certificate) -> str:
    said = [one.write_mode]
    said += [f"of rows with `{one.row_filter}`"] if one.row_filter else []
    said += ["missing rows deleted"] if one.delete_missing else []
    said += [f"batch `{one.batch}`"] if one.batch else []
    return ", ".join(said)


def _describe_untouched(certificate: Certificate) -> str:
    one = certificate
    if one.touched_outside:
        listed = ", ".join(
            f"{key} (version {', '.join(map(str, versions))})"
            for key, versions in one.touched_outside.items()
        )
        return f"The commits also added or removed data files of {listed}."
    what, others = "partitions", f"The {one.untouched_partitions} other partitions"
    if one.compared_partitions:
        what, others = "partitions' folders", f"The {one.untouched_partitions} other folders"
    said = (
        f"The log shows that the commits added and removed data files of these {what} only. "
        f"{others} kept their {one.untouched_files} files."
    )
    if one.compared_partitions:
        said += (
            f" The {one.compared_partitions} other partitions in the same folders have the same "
            "rows and checksums as before."
        )
    return said


def _describe_partition(part: CertifiedPartition) -> str:
    before = "" if part.rows_before is None else f"{part.rows_before:,}"
    same = " (as before)" if part.checksum == part.checksum_before else ""
    said = [f"{check} {outcome}" for check, outcome in part.checks.items() if outcome != "passed"]
    said += [part.failures] if part.failures else []
    said += [f"{check} accepted: {reason}" for check, reason in part.accepted.items()]
    version = "" if part.version is None else str(part.version)
    return (
        f"| {part.partition} | {part.status} | {version} | {before} | {part.rows:,} "
        f"| `{part.checksum}`{same} | {'; '.join(said) or 'passed'} |"
    )


def render_verification(certificate: Certificate, lines: Sequence[VerifiedLine]) -> str:
    """What holds as one count, and each line that doesn't or of which there is more to say."""
    one = certificate
    words = {True: "holds", False: "DOES NOT HOLD", None: "can't be told"}
    held = sum(line.holds is True for line in lines)
    said = [
        f"- {words[line.holds]}: {line.statement}" + (f" ({line.found})" if line.found else "")
        for line in lines
        if line.found or line.holds is not True
    ]
    title = f"# {one.asset_key} {one.partition_start} … {one.partition_end}, run `{one.run_id}`"
    return "\n".join([title, "", f"{held} of {len(lines)} lines hold.", *said, ""])
