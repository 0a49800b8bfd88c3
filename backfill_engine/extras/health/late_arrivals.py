"""`ops/late_arrivals`: how late rows come, of each table whose rows say which partition reads them.

It reads two columns of the table that they land in, no JVM.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    Config,
    MaterializeResult,
    MetadataValue,
    asset,
)
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.errors import BackfillError
from backfill_engine.extras.health.lateness import (
    Arrivals,
    Lateness,
    count_arrivals,
    find_moment,
    summarize_all,
    summarize_days,
)
from backfill_engine.extras.pages import Section, plot, render_page, write_page
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.records.failures import fail_with_message
from backfill_engine.resources import find_resources, list_resources
from backfill_engine.settings import MOST_DAYS
from backfill_engine.table_assets import TableAsset
from backfill_engine.tables.declarations import Table

_LISTED = 31
_Found: TypeAlias = Sequence[Arrivals] | BackfillError


class LateArrivalsConfig(Config):
    """How far back to look."""

    days: int = Field(
        default=366,
        ge=1,
        le=MOST_DAYS,
        description="Days of landing, back from the last that was published.",
    )


def list_late_readers(
    catalog: Catalog, assets: Sequence[TableAsset]
) -> dict[str, tuple[Table, str]]:
    """Lists the tables that read late rows: by key, the table that these land in, and its column.

    The column says which partition a row is for. Of buckets nothing is late.
    """
    return {
        declared.table.key: (catalog.find_table(upstream.table.key), upstream.rows_for)
        for declared in assets
        for upstream in declared.inputs
        if upstream.rows_for and catalog.find_table(upstream.table.key).grain.cron
    }


def name_late_check(reader: str) -> str:
    """Names the check of the share of late rows of one reader."""
    return f"{reader.replace('/', '_')}_late_share"


def find_key(catalog: Catalog) -> AssetKey:
    """Finds the key of the asset."""
    return AssetKey(["ops", catalog.prefix("late_arrivals")])


def build_late_arrivals(catalog: Catalog, assets: Sequence[TableAsset]) -> AssetsDefinition:
    """Builds the asset `ops/late_arrivals`."""
    key = find_key(catalog)

    @asset(
        key=key,
        group_name="ops",
        kinds={"delta"},
        op_tags=OWN_STEP,
        required_resource_keys=list_resources(catalog),
        check_specs=[
            AssetCheckSpec(
                name_late_check(reader),
                asset=key,
                description=(
                    f"Is the share of rows of {reader} that landed more than two days late within "
                    "BACKFILL_MAX_LATE_SHARE?"
                ),
            )
            for reader in list_late_readers(catalog, assets)
        ],
    )
    def late_arrivals(
        context: AssetExecutionContext, config: LateArrivalsConfig
    ) -> Iterator[MaterializeResult]:
        """How late rows come: by landing day and by the day that they are of, as plots, too."""
        _, lakehouse = find_resources(catalog, context)
        with fail_with_message(context):
            warehouse, bound = lakehouse.warehouse(), catalog.settings.max_late_share
            arrivals: dict[str, list[Arrivals] | BackfillError] = {}
            for reader, (source, column) in list_late_readers(catalog, assets).items():
                try:
                    arrivals[reader] = _count(warehouse, source, column, config.days)
                except BackfillError as error:  # of one table; the others are described
                    arrivals[reader] = error
            page = render_page(
                "Late arrivals",
                f"As of {dt.datetime.now(tz=dt.UTC):%Y-%m-%d %H:%M} UTC.",
                [part for reader, found in arrivals.items() for part in _describe(reader, found)],
            )
            place = write_page(warehouse, "late_arrivals", page)
        yield MaterializeResult(
            metadata={"page": MetadataValue.path(place), **_list_figures(arrivals)},
            check_results=[_judge(reader, found, bound) for reader, found in arrivals.items()],
        )

    return late_arrivals


def _count(warehouse: Warehouse, source: Table, column: str, days: int) -> list[Arrivals]:
    log = read_log(warehouse, source)
    if not log.publishes:
        return []
    newest = source.grain.find_start(max(log.publishes))
    assert isinstance(newest, dt.date)
    return count_arrivals(log, column, since=newest - dt.timedelta(days=days - 1))


def _list_figures(arrivals: Mapping[str, _Found]) -> dict[str, int | float]:
    """Describes all of them as numbers, which Dagster plots over time."""
    return {
        f"{reader} {name}": figure
        for reader, found in arrivals.items()
        if not isinstance(found, BackfillError) and (all_ := summarize_all(found))
        for name, figure in {
            "rows": all_.rows,
            "late rows": all_.late,
            "days late, p50": all_.p50,
            "days late, p95": all_.p95,
            "days late, most": all_.most,
            "share after D+1": all_.after_one,
            "share after D+2": all_.after_two,
        }.items()
    }


def _judge(reader: str, found: _Found, bound: float) -> AssetCheckResult:
    name = name_late_check(reader)
    if isinstance(found, BackfillError):
        return AssetCheckResult(passed=False, check_name=name, description=str(found))
    all_ = summarize_all(found)
    share, words = 0.0, "nothing is published yet"
    if all_:
        share = all_.after_two
        words = f"{share:.2%} of {all_.rows:,} rows landed more than two days late"
        words += f"; bound: {bound:.2%}"
    return AssetCheckResult(
        passed=share <= bound,
        check_name=name,
        severity=AssetCheckSeverity.WARN,
        description=words,
        metadata={"share after D+2": share, "bound": bound},
    )


def _describe(reader: str, found: _Found) -> list[Section]:
    """Describes on the page how late the rows of one reader come."""
    if isinstance(found, BackfillError):
        return [Section(reader, f"Can't be read: {found}")]
    if not found:
        return [Section(reader, "Nothing is published yet of what it reads.")]
    by_landing = summarize_days(found, "landed")
    # Of what is older than the days looked at, only what came late is among these rows.
    by_time = [each for each in summarize_days(found, "of") if each.day >= by_landing[0].day]
    return [
        Section(
            f"{reader}: late rows by landing day",
            "Rows that landed after the day that they are of.",
            plot("bar", _count_late(found), x="landed", y="rows", color="late"),
        ),
        _list_latest(f"{reader}: landing days with most late rows", "landed", by_landing),
        _list_latest(f"{reader}: days of which most rows came late", "day", by_time),
    ]


def _count_late(arrivals: Sequence[Arrivals]) -> list[dict[str, str | int]]:
    """Counts late rows by landing day and by how late they are, for a plot."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in arrivals:
        if each.days_late > 0:
            late = "within a day" if each.days_late <= 1 else "within two days"
            late = late if each.days_late <= 2 else "later than two days"
            counts[find_moment(each.landed).date().isoformat(), late] += each.rows
    return [{"landed": day, "late": late, "rows": rows} for (day, late), rows in counts.items()]


def _list_latest(title: str, day: str, days: Sequence[Lateness]) -> Section:
    latest = sorted((each for each in days if each.late), key=lambda each: -each.late)[:_LISTED]
    return Section(
        title,
        head=(day, "rows", "late", "p50, days", "p95, days", "latest", "after D+1", "after D+2"),
        rows=[
            (
                *(str(each.day), each.rows, each.late, each.p50, each.p95, each.most),
                *(f"{each.after_one:.2%}", f"{each.after_two:.2%}"),
            )
            for each in sorted(latest, key=lambda each: each.day)
        ],
    )
