"""Leaves a run's certificate, which tells what was done and decides nothing."""

from collections.abc import Sequence

from dagster import AssetExecutionContext, OpExecutionContext

from backfill_engine.contents.partition_reader import PartitionReader
from backfill_engine.lake.table_log import TableLog
from backfill_engine.proof.certificates import (
    Certificate,
    CertifiedChunk,
    locate_certificate,
)
from backfill_engine.proof.certifying import certify
from backfill_engine.publishing.results import PartitionResult, Run


def leave_certificate(
    context: AssetExecutionContext | OpExecutionContext,
    log: TableLog,
    results: Sequence[PartitionResult],
    run: Run,
    *,
    code_version: str,
    reader: PartitionReader,
    chunks: Sequence[CertifiedChunk] = (),
) -> Certificate | None:
    """Writes the certificate of a run's results; where that fails, says so in the run's log.

    What is published is published, and an error that ends the step is what people must see: so
    nothing that goes wrong here is raised, and None is returned.
    """
    try:
        record = context.instance.get_run_record_by_id(run.run_id)
        return certify(
            log.reread(),
            results,
            run,
            code_version=code_version,
            reader=reader,
            chunks=chunks,
            requested_at=record.create_timestamp if record else run.started_at,
        )
    except Exception as error:
        cause = " ".join(str(error).split()) or type(error).__name__
        place = locate_certificate(log, run.run_id, run.backfill_id)
        context.log.error(
            f"the certificate of {log.table.key} can't be written at {place}: {cause}; what was "
            "published stands, and the table's log tells of it"
        )
        return None
