"""What commits vouch for in a certificate, and what of it stands in no commit."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from backfill_engine.lake.commits import Commit, CommitRecord, group_publishes
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.certificates import Certificate, CertifiedCommit, CertifiedPartition
from backfill_engine.proof.certifying import find_before, format_time, merge_inputs
from backfill_engine.proof.pages import VerifiedLine, shorten
from backfill_engine.publishing.statements import StatedPartition, Statement
from backfill_engine.publishing.write_modes.options import WriteOptions
from backfill_engine.rules.verdicts import Check, Outcome

_READABLE = Check.READABLE.value


def is_stated(log: TableLog, certificate: Certificate) -> bool:
    """Tells whether commits of the run vouch for the certificate; those of old releases don't.

    Where the log no longer has them, the certificate's own word has to do.
    """
    own = _find_own(log, certificate)
    if own:
        return any(record.statement for _, record in own)
    claimed = any(row.stated_in is not None for row in certificate.partitions)
    return claimed or not certificate.commits


def verify_stated(log: TableLog, certificate: Certificate) -> Iterator[VerifiedLine]:
    """Verifies all that commits and the log know of a certificate that commits vouch for."""
    own = _find_own(log, certificate)
    yield from _verify_statements(certificate, own)
    yield from _verify_rows(log, certificate, {commit.version: record for commit, record in own})
    yield from _verify_header(certificate, own)


def verify_complete(log: TableLog, certificate: Certificate) -> Iterator[VerifiedLine]:
    """Finds commits of the run that the certificate says nothing of."""
    certified = {commit.version for commit in certificate.commits}
    for commit, _ in _find_own(log, certificate):
        if commit.version not in certified:
            yield VerifiedLine(
                f"all commits of this run to {certificate.asset_key} are listed",
                holds=False,
                found=f"version {commit.version} was committed by it too",
            )


def _find_own(log: TableLog, certificate: Certificate) -> list[tuple[Commit, CommitRecord]]:
    """Finds the run's commits, ascending."""
    return [
        (commit, commit.record)
        for commit in reversed(log.commits)
        if commit.record and commit.record.run_id == certificate.run_id
    ]


def _verify_statements(
    certificate: Certificate, own: Sequence[tuple[Commit, CommitRecord]]
) -> Iterator[VerifiedLine]:
    rows: dict[int | None, list[CertifiedPartition]] = defaultdict(list)
    for row in certificate.partitions:
        rows[row.stated_in].append(row)
    certified = {commit.version: commit for commit in certificate.commits}
    for commit, record in own:
        version = commit.version
        if not record.statement or version not in certified:
            continue
        claimed = rows.get(version, [])
        line = (
            f"version {version} vouches for code, inputs, options and the verdicts of "
            f"{len(claimed)} partitions"
        )
        again = _find_published_again(record, version, own)
        if not claimed and again:
            yield VerifiedLine(line, None, f"this run published them again as version {again[-1]}")
            continue
        statement = _build_statement(certificate, certified[version], claimed)
        holds = statement.hash() == record.statement
        yield VerifiedLine(line, holds, "" if holds else _find_edits(statement, record))
    known = {commit.version for commit, _ in own}
    for version in sorted(version for version in rows if version is not None):
        if version not in known:
            listed = shorten([row.partition for row in rows[version]])
            yield VerifiedLine(
                f"version {version} vouches for {listed}",
                None if version in certified else False,
                "the log has no such commit of this run",
            )


def _find_published_again(
    record: CommitRecord, version: int, own: Sequence[tuple[Commit, CommitRecord]]
) -> list[int]:
    """Finds later commits of the run that published some of the same partitions.

    Where nothing locks the table, a race is seen only after a commit; what it published is then
    judged again.
    """
    return [
        commit.version
        for commit, other in own
        if commit.version > version and other.statement and {*other.rows} & {*record.rows}
    ]


def _build_statement(
    certificate: Certificate, commit: CertifiedCommit, rows: Sequence[CertifiedPartition]
) -> Statement:
    return Statement(
        run_id=certificate.run_id,
        backfill_id=certificate.backfill_id,
        asset_key=certificate.asset_key,
        table_uri=certificate.table_uri,
        started_at=certificate.started_at,
        run_config=certificate.run_config,
        options=WriteOptions(
            **{name: getattr(certificate, name) for name in WriteOptions.__dataclass_fields__}
        ),
        code_version=certificate.code_version,
        input_versions=commit.input_versions,
        partitions=[_state(row) for row in rows],
        features=certificate.features,
    )


def _state(row: CertifiedPartition) -> StatedPartition:
    checks = {check: outcome for check, outcome in row.checks.items() if check != _READABLE}
    failures = row.failures
    if row.checks.get(_READABLE) == Outcome.FAILED:  # the last check, and after the commit
        failures = failures.rpartition(f"{_READABLE}: ")[0].removesuffix("; ")
    return StatedPartition(
        row.partition,
        row.rows,
        row.checksum,
        checks,
        failures,
        dict(row.accepted),
        notes=row.notes,
    )


def _find_edits(statement: Statement, record: CommitRecord) -> str:
    """Names what the commit's record says otherwise, as far as it says it in the clear."""
    rows = {row.partition: row for row in statement.partitions}
    accepted = {
        (row.partition, check, reason)
        for row in statement.partitions
        for check, reason in row.accepted.items()
        if row.partition in record.rows
    }
    notes = {row.partition: row.notes for row in statement.partitions if row.notes}
    said = {(one["partition"], one["check"], one["reason"]) for one in record.audit.accepted}
    edits = {
        "code version": statement.code_version != record.code_version,
        "input versions": dict(statement.input_versions) != dict(record.input_versions),
        "write mode": statement.options.write_mode != record.write_mode,
        "row filter": statement.options.row_filter != record.row_filter,
        "backfill": (statement.backfill_id or "") != record.backfill_id,
        "acceptances": accepted != said,
        "notes of features": {key: notes[key] for key in notes if key in record.rows}
        != dict(record.notes),
        "features": statement.features != record.features,
        "partitions": not {*record.rows} <= {*rows},
        "rows and checksums": any(
            (rows[key].rows, rows[key].checksum) != (count, record.checksums[key])
            for key, count in record.rows.items()
            if key in rows
        ),
    }
    found = [name for name, edited in edits.items() if edited]
    if found:
        return f"the commit has other {', other '.join(found)}"
    return (
        "the commit's hash is of something else: a verdict, the run's configuration or its start "
        "was edited, or the row of a withheld partition was edited, added or removed"
    )


def _verify_rows(
    log: TableLog, certificate: Certificate, own: Mapping[int, CommitRecord]
) -> Iterator[VerifiedLine]:
    """Verifies what the log tells of each row, and says it in as few lines as there are faults."""
    wrong: list[str] = []
    untold: list[str] = []
    start = certificate.started_at
    publishes = group_publishes(log.commits)
    commits = {commit.version: commit.record for commit in log.commits}
    oldest = min(commits, default=0)
    for row in certificate.partitions:
        fault = _find_wrong_status(row, own, commits)
        if fault:
            wrong.append(f"{row.partition} {fault}")
        published = publishes.get(row.partition, ())
        before = find_before(published, row, run_id=certificate.run_id, start=start)
        found = (before.rows[row.partition], before.checksums[row.partition]) if before else None
        said = None if row.rows_before is None else (row.rows_before, row.checksum_before)
        if found != said and (found or oldest == 0):
            contents = f"{found[0]} rows with checksum {found[1]}" if found else "nothing"
            wrong.append(f"{row.partition} held {contents} before")
        if row.stated_in is None and row.is_held_back:
            untold.append(row.partition)
    yield VerifiedLine(
        "status and former contents of each partition are as the log has them",
        not wrong,
        shorten(wrong),
    )
    if untold:
        yield VerifiedLine(
            f"{shorten(untold)} {'was' if len(untold) == 1 else 'were'} not published",
            None,
            "no commit came with these verdicts; the run's events have them",
        )


def _find_wrong_status(
    row: CertifiedPartition,
    own: Mapping[int, CommitRecord],
    commits: Mapping[int, CommitRecord | None],
) -> str:
    """Says in words what of a row's status the log has otherwise; empty if nothing."""
    stated = own.get(row.stated_in) if row.stated_in is not None else None
    if row.status == "published":
        if row.version is None or row.version != row.stated_in:
            return "is published, but as no version that vouches for it"
        if stated is not None and row.partition not in stated.rows:
            return f"is not among what version {row.version} published"
        if row.checks.get(_READABLE) != Outcome.PASSED:
            return f"is published, though {_READABLE} did not pass"
    elif row.status in ("already appended", "already published"):
        if row.version is None or row.version not in commits:
            return "" if row.version is not None else f"was {row.status}, but as no version"
        record = commits[row.version]
        if record is None or (record.rows.get(row.partition), row.checksum) != (
            row.rows,
            record.checksums.get(row.partition),
        ):
            return f"is not what version {row.version} published"
    elif not row.is_held_back or row.version is not None:
        return f"has no status that a run gives ({row.status}, version {row.version})"
    elif stated and row.partition in stated.rows and row.checks.get(_READABLE) != Outcome.FAILED:
        return f"is withheld, but version {row.stated_in} published it"
    return ""


def _verify_header(
    certificate: Certificate, own: Sequence[tuple[Commit, CommitRecord]]
) -> Iterator[VerifiedLine]:
    """Finds what the certificate says of itself as a whole and doesn't follow from the rest."""
    faults: list[str] = []
    keys = [row.partition for row in certificate.partitions]
    if [certificate.partition_start, certificate.partition_end] != [*keys[:1], *keys[-1:]]:
        faults.append("the range isn't from the first to the last row")
    if len({*keys}) < len(keys):
        faults.append("a partition has two rows")
    times = {commit.version: format_time(commit) for commit, _ in own}
    faults += [
        f"version {commit.version} is of {times[commit.version]}"
        for commit in certificate.commits
        if times.get(commit.version, commit.committed_at) != commit.committed_at
    ]
    inputs = merge_inputs((), certificate.commits)
    if inputs and inputs != dict(certificate.input_versions):
        faults.append("the inputs aren't those of the commits")
    if faults:
        yield VerifiedLine(
            "range, times and inputs agree with the rest", holds=False, found="; ".join(faults)
        )
