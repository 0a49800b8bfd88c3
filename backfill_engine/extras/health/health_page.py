"""The page of `ops/backfill_health`."""

import datetime as dt
from collections.abc import Sequence

from backfill_engine.extras.health import charts
from backfill_engine.extras.health.lateness import TableHealth
from backfill_engine.extras.health.outcomes import Outcome, summarize_runtimes
from backfill_engine.extras.health.pages import Section, render_page
from backfill_engine.orchestration.instance.recovered_runs import Reconciliation
from backfill_engine.orchestration.planning.work import FoundWork

_LISTED = 20


def render_health(
    tables: Sequence[TableHealth],
    outcomes: Sequence[Outcome],
    reconciled: Sequence[Reconciliation],
    work: FoundWork,
    *,
    bound: float,
    now: dt.datetime,
) -> str:
    """Renders it.

    Args:
        tables: how each is doing now.
        outcomes: of runs, oldest first.
        reconciled: the last reconciliations, newest first.
        work: what is due.
        bound: days or buckets that a watermark may lag.
        now: UTC.
    """
    lags = [one.lag for one in tables if one.lag]
    held_back = [one for one in outcomes if one.withheld or one.failed]
    changed = [one for one in outcomes if one.changed]
    sections = [
        Section(
            "Tables",
            head=("table", "published", "failed now", "duplicates per 1,000", "processed up to"),
            rows=[
                (
                    one.table,
                    one.published,
                    one.failed,
                    one.duplicates,
                    one.fault or (one.lag.next_key if one.lag else "no watermark"),
                )
                for one in tables
            ],
        ),
        Section(
            "What is due",
            "; ".join((*work.errors, *work.notices, *work.waiting, *work.protected))
            or ("" if work.requested else "Nothing: each partition is published from its input."),
            head=("table", "first", "last", "why"),
            rows=[(one.table, one.first, one.last, one.reason) for one in work.requested[:_LISTED]],
        ),
        Section(
            "Lag of the watermarks",
            "From the first partition still to be processed to the end of the last that there can "
            f"be by now; the dashed line is the bound, {bound:g}."
            if lags
            else "No table has a watermark: no incremental run has processed any.",
            charts.plot_lags(lags, bound) if lags else "",
        ),
        Section(
            "What became of partitions",
            "By the day of the run that was to publish them.",
            charts.plot_partitions(outcomes) if outcomes else "",
        ),
        Section(
            "How long steps take",
            "A step is one table of a run, whatever its number of partitions.",
            charts.plot_runtimes(outcomes) if outcomes else "",
            ("layer", "steps", "p50, s", "p95, s"),
            [(one.layer, one.steps, one.p50, one.p95) for one in summarize_runtimes(outcomes)],
        ),
        Section(
            "Withheld or failed, the last",
            "" if held_back else "None.",
            head=("began, UTC", "table", "run", "withheld", "failed"),
            rows=[
                (_write(one.started_at), one.table, one.run_id[:8], one.withheld, one.failed)
                for one in held_back[: -_LISTED - 1 : -1]
            ],
        ),
        Section(
            "Changed by reprocessing, the last",
            "" if changed else "None.",
            head=("began, UTC", "table", "run", "partitions", "rows in them"),
            rows=[
                (_write(one.started_at), one.table, one.run_id[:8], one.changed, one.changed_rows)
                for one in changed[: -_LISTED - 1 : -1]
            ],
        ),
        Section(
            "Reconciliations, the last",
            "" if reconciled else "None has run.",
            head=("ended, UTC", "run", "partitions", "different"),
            rows=[
                (_write(one.ended_at), one.run_id[:8], one.compared, one.different)
                for one in reconciled
            ],
        ),
    ]
    return render_page("Backfill health", f"As of {_write(now)} UTC.", sections)


def _write(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
