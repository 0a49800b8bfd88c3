"""What a promotion would do, and what stands against it: as logs and events tell, without a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dagster import Config, DagsterInstance
from pydantic import Field

from backfill_engine.catalog import Catalog
from backfill_engine.errors import PromotionError, SettingsError
from backfill_engine.extras.versions.described import find_retired, find_version, list_switches
from backfill_engine.extras.versions.promotions import DriftGates, Promotion
from backfill_engine.grains.grain import is_in_range
from backfill_engine.lake.served_versions import find_served
from backfill_engine.lake.table_log import TableLog, read_log
from backfill_engine.orchestration.due.readiness import Readiness, find_readiness
from backfill_engine.orchestration.instance.dagster_internals import AssetGraph
from backfill_engine.orchestration.instance.partition_definitions import (
    find_asset_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import (
    build_range_options,
    describe_ranges,
    shorten,
)
from backfill_engine.orchestration.runs.protecting import refuse_protected
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.serving import choose_served, serve
from backfill_engine.tables.declarations import Table

_CANARY = 7
_LISTED = 7


class PromotionConfig(Config):
    """Which version is to be served, and how far it may differ before a person is asked."""

    table: str = Field(description="The served table, as serving/carrier_delays.")
    version: str = Field(
        default="",
        description="The version, as v2; empty for the one that was served before, to go back.",
    )
    reason: str = Field(default="", description="Why; kept in the commit.")
    by: str = Field(default="", description="Who asks for it; kept in the commit.")
    accept: str = Field(
        default="", description="Why it is right though it differs by more than the gates."
    )
    dry_run: bool = Field(default=False, description="Only look what stands against it.")
    canary: list[str] = Field(
        default_factory=list,
        description="Range [first, last] that is computed and judged before the rest; else the "
        f"last {_CANARY} partitions.",
    )
    max_psi: float | None = Field(
        default=0.25, ge=0, description="Of a column with a drift rule, in one partition."
    )
    max_mean_shift: float | None = Field(
        default=0.5, ge=0, description="Of a column's mean, as a share of it."
    )
    max_null_shift: float | None = Field(
        default=0.05, ge=0, le=1, description="Of a column's share of nulls."
    )
    override_protection: str | None = Field(
        default=None, description="Why protected partitions are switched all the same."
    )

    def find_canary(self, keys: Sequence[str]) -> list[str]:
        """Finds those of the partitions to be switched that are judged before the rest.

        Raises:
            SettingsError: if none of them lies in the range that is named.
        """
        if not self.canary:
            return list(keys[-_CANARY:])
        first, last = self.canary[0], self.canary[-1]
        found = [key for key in keys if is_in_range(key, first, last)]
        if not found:
            raise SettingsError(
                f"no partition to be switched lies in the canary {first}...{last}: they are "
                f"{keys[0]} to {keys[-1]}"
            )
        return found


@dataclass(frozen=True)
class Switching:
    """A served table, the version that it is to hold, and the partitions of both."""

    log: TableLog
    recipe: Recipe
    source: TableLog
    keys: Sequence[str]
    readiness: Readiness


def find_switching(
    catalog: Catalog,
    instance: DagsterInstance,
    graph: AssetGraph,
    config: PromotionConfig,
    read: Callable[[Table], TableLog],
) -> Switching:
    """Looks at the tables, and finds the partitions that the version lacks.

    Raises:
        BackfillError: if there is no such version, or a table isn't there.
    """
    table, recipe = catalog.find_table(config.table), catalog.recipes[config.table]
    if config.version:
        find_version(table, config.version)  # a wrong name is no table that isn't there
    log = read(table)
    (held,) = choose_served(recipe, log).inputs
    version = find_version(table, config.version or _find_before(log))
    recipe, source = serve(recipe, version.key), read(version)
    keys = sorted({*log.publishes, *read_log(log.warehouse, held).publishes})
    readiness = find_readiness(instance, graph, find_asset_key(table), keys, unread=recipe.unread)
    return Switching(log, recipe, source, keys, readiness)


def begin_promotion(
    switching: Switching, config: PromotionConfig, *, promotion_id: str, now: datetime
) -> Promotion:
    """Begins to say what stands against a switch: the partitions that the version lacks."""
    return Promotion(
        promotion_id=promotion_id,
        table=switching.log.table.key,
        version=switching.recipe.serves,
        before=find_served(switching.log),
        at=now,
        by=config.by,
        why=config.reason or config.accept,
        partitions=len(switching.keys),
        gates=DriftGates(config.max_psi, config.max_mean_shift, config.max_null_shift),
        missing=_describe_blocked(switching),
        accepted=config.accept,
    )


def look_ahead(
    catalog: Catalog, instance: DagsterInstance, graph: AssetGraph, config: PromotionConfig
) -> tuple[Promotion, str]:
    """Looks what a promotion would do, by logs and events; no run is made.

    Args:
        catalog: of the code location.
        instance: the Dagster instance.
        graph: of all assets.
        config: of the promotion.

    Returns:
        What stands against it before anything is computed; and what it would do, in words.

    Raises:
        BackfillError: if there is no such version, a table isn't there, the canary is none of its
            partitions, or some of these are protected.
    """

    def read(table: Table) -> TableLog:
        return read_log(catalog.warehouse, table).require()

    switching = find_switching(catalog, instance, graph, config, read)
    promotion = begin_promotion(switching, config, promotion_id="", now=datetime.now(tz=UTC))
    if promotion.is_served or promotion.missing:
        return promotion, ""
    table, keys = switching.log.table, switching.keys
    if not keys:
        raise PromotionError(
            f"nothing is published of {promotion.version}: backfill it, or `adopt` what it holds"
        )
    words = (
        f"{table.key}: {len(keys)} partitions ({keys[0]} … {keys[-1]}) of {promotion.version} "
        f"replace those of {promotion.before or 'no version'}, in one commit"
    )
    if not config.dry_run:
        override = config.override_protection or ""
        how = "with --override-protection"
        refuse_protected(catalog.warehouse, table, keys, override=override, how=how)
    if not config.version:
        return promotion, f"{words}, as they are now; drift is not checked"
    canary = config.find_canary(keys)
    return promotion, f"{words}; {canary[0]}...{canary[-1]} is computed and compared first"


def _describe_blocked(switching: Switching) -> tuple[str, ...]:
    """Says which partitions the version lacks, and what mends that; or that it is retired."""
    source, blocked = switching.source, switching.readiness.blocked
    version = source.table.key
    if retired := find_retired(source):
        return (f"{version}: {retired}: lift that (`protect --lift`) and backfill it first",)
    if not blocked:
        return ()
    # Each partition is of the version's own of the same key, which ranges leave out.
    texts = {key: text.replace(f"{version} {key} ", f"{version} ") for key, text in blocked.items()}
    lines = describe_ranges(find_partitions_def(switching.log.table), texts, most=_LISTED)
    return (
        *shorten(lines, _LISTED - 2),
        f"`backfill-assets run --select {version} {build_range_options(blocked)} "
        "--only missing,failed,withheld` publishes them",
    )


def _find_before(log: TableLog) -> str:
    switches = list_switches(log)
    if not switches or not switches[0].before:
        raise PromotionError(
            f"{log.table.key} has served nothing else before: there is nothing to go back to"
        )
    return switches[0].before
