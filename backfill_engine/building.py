"""Assembles the definitions of a code location, to be merged with whatever else it has.

By a call, `build_defs`, or from a `defs.yaml` of `dg`, as a `BackfillTablesComponent`.
"""

import datetime as dt
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagster import Component, ComponentLoadContext, Definitions, Model, Resolvable

from backfill_engine.assembly import Declared, build_catalog, list_table_assets
from backfill_engine.asset_definitions import (
    build_asset,
    build_external_asset,
    build_landing_asset,
    build_readable_check,
)
from backfill_engine.errors import DeclarationError, SettingsError
from backfill_engine.extras.alerts.alerting import build_report_withheld
from backfill_engine.extras.comparison.job import compare_with_source
from backfill_engine.extras.health.backfill_health import (
    build_backfill_health,
    build_watch_schedule,
)
from backfill_engine.extras.health.late_arrivals import build_late_arrivals
from backfill_engine.extras.landing import build_observe_landing
from backfill_engine.extras.maintenance import (
    MAINTAIN,
    build_maintenance_schedule,
    maintain_tables,
)
from backfill_engine.extras.rehearsal.applying import apply_rehearsal
from backfill_engine.extras.rehearsal.rehearsing import rehearse_partitions
from backfill_engine.extras.versions.promoting import promote_version
from backfill_engine.extras.versions.retiring import retire_version
from backfill_engine.grains.grain import Grain
from backfill_engine.jobs import JOBS, build_job, build_range_jobs
from backfill_engine.orchestration.runs.features import Feature, keep_served_version, pin_code
from backfill_engine.orchestration.runs.protecting import protect_partitions
from backfill_engine.resources import build_resources
from backfill_engine.rolling_schedules import build_due_schedules, build_rolling_schedules
from backfill_engine.sensors import (
    build_continue_after_withheld,
    build_go_on_after_pause,
    build_process_due_partitions,
    build_recover_dead_runs,
)
from backfill_engine.settings import Settings, read_settings
from backfill_engine.sql_tables import sql_table
from backfill_engine.table_assets import TableAsset, TableTranslator
from backfill_engine.tables.declarations import Calendar


@dataclass(frozen=True)
class Features:
    """What goes on by itself, without being turned on in the UI.

    Attributes:
        sensors: goes on after what was withheld or paused, records what dead runs left, observes
            what lands, and posts notices of what came to its end with something held back.
        hooks: other features that take part in each publish.
    """

    sensors: bool = False
    hooks: tuple[Feature, ...] = ()


_HOOKS: tuple[Feature, ...] = (
    apply_rehearsal,
    protect_partitions,
    pin_code,
    keep_served_version,
)
"""What takes part in each publish, in the order in which a run is refused."""

_JOBS = {
    **JOBS,
    MAINTAIN: maintain_tables,
    "rehearse": rehearse_partitions,
    "promote": promote_version,
    "retire": retire_version,
    "reconcile": compare_with_source,
}
"""What a person or a schedule runs over partitions that are published."""


def build_defs(
    declared: Sequence[Declared],
    *,
    lakehouse: Settings | None = None,
    calendar: Calendar | None = None,
    translator: TableTranslator | None = None,
    grains: Mapping[Grain, Grain] | None = None,
    features: Features = Features(),
    module: str = "",
    name_prefix: str = "",
) -> Definitions:
    """Builds the definitions of a code location's tables.

    They merge with others by `Definitions.merge`. Executors are set on the engine's own jobs, and
    no other run, asset or sensor of the instance is touched.

    Args:
        declared: table assets, or modules and packages of modules that have some; each module is a
            pipeline of its name.
        lakehouse: where data lands, where the tables are, and the bounds of the work; None to go by
            the environment, `BACKFILL_…`.
        calendar: the days of tables that don't say theirs; None for that of `lakehouse`.
        translator: says how tables show in Dagster; None for `TableTranslator()`.
        grains: what an installation chose in place of declared grains.
        features: what goes on by itself.
        module: that has the definitions, as commands are to name it; the calling one if left out.
        name_prefix: of the names of jobs, ops, sensors, schedules and resources.

    Raises:
        DeclarationError: if the tables don't fit together.
        SettingsError: if the settings can't be used.
    """
    translator = translator or TableTranslator()
    catalog, assets = build_catalog(
        declared,
        settings=lakehouse,
        calendar=calendar,
        translator=translator,
        grains=grains,
        module=module or sys._getframe(1).f_globals["__name__"],
        name_prefix=name_prefix,
    )
    landing, on = catalog.settings.landing, features.sensors
    range_jobs = build_range_jobs(catalog)
    jobs = {name: build_job(catalog, name, work) for name, work in _JOBS.items()}
    watch = build_watch_schedule(catalog)
    return Definitions(
        assets=[
            *(
                build_asset(
                    catalog,
                    catalog.recipes[asset.table.key],
                    asset.inputs,
                    translator=translator,
                    features=(*_HOOKS, *features.hooks),
                )
                for asset in assets
            ),
            *(
                build_landing_asset(recipe, landing)
                for recipe in catalog.recipes.values()
                if recipe.landing is not None
            ),
            *map(build_external_asset, catalog.external),
            build_late_arrivals(catalog, assets),
            build_backfill_health(catalog),
        ],
        asset_checks=[build_readable_check(catalog, table) for table in catalog.tables],
        jobs=[
            *(job.definition for job in range_jobs.of_pipelines),
            *range_jobs.grain_definitions,
            *jobs.values(),
            watch.job,
        ],
        schedules=[
            build_maintenance_schedule(jobs[MAINTAIN]),
            watch,
            *build_due_schedules(catalog, range_jobs),
            *build_rolling_schedules(catalog, range_jobs),
        ],
        sensors=[
            build_continue_after_withheld(catalog, range_jobs, on=on),
            build_go_on_after_pause(catalog, range_jobs, on=on),
            build_recover_dead_runs(catalog, range_jobs, on=on),
            build_process_due_partitions(catalog, range_jobs),
            build_observe_landing(catalog, on=on),
            build_report_withheld(catalog, on=on),
        ],
        resources=build_resources(catalog),
    )


class SelectedTable(Model, Resolvable):
    """A table that a SELECT computes, as `sql_table` declares it.

    Attributes:
        key: `layer/name`.
        partition_by: the column whose values decide the partition.
        inputs: key of a table of the module, or of one above, by its name in the SELECT.
        sql: the SELECT; or in place of it
        file: the file that holds it, relative to that of the component.
    """

    key: str
    partition_by: str
    inputs: dict[str, str]
    sql: str | None = None
    file: str | None = None

    def declare(self, tables: Mapping[str, TableAsset], folder: Path) -> TableAsset:
        """Declares it over the tables that there are by key.

        Raises:
            DeclarationError: if it can't be as it is declared.
        """
        if (self.sql is None) == (self.file is None):
            raise DeclarationError(f"{self.key}: give `sql` or `file`, and not both")
        if unknown := sorted({*self.inputs.values()} - tables.keys()):
            raise DeclarationError(
                f"{self.key} reads {', '.join(unknown)}, which isn't declared above: there are "
                f"{', '.join(sorted(tables))}"
            )
        return sql_table(
            self.key,
            partition_by=self.partition_by,
            inputs={name: tables[key] for name, key in self.inputs.items()},
            sql=self.sql or folder / str(self.file),
        )


class BackfillTablesComponent(Component, Model, Resolvable):
    """Tables that are filled by safe partition backfills.

    Attributes:
        module: that declares them by `@table_asset`, or a package of such modules.
        tables: that are declared here, each by a SELECT.
        landing: root of the landing zone; left out, `BACKFILL_LANDING`.
        warehouse: root of the Delta tables; left out, `BACKFILL_WAREHOUSE`.
        begin: the first day of the partitions, as YYYY-MM-DD; left out, `BACKFILL_BEGIN`.
        end: the day after the last; left out with `begin`, `BACKFILL_END`, else up to today.
        sensors: whether sensors are on without being turned on.
        name_prefix: of the names of jobs, ops, sensors, schedules and resources.
    """

    module: str
    tables: Sequence[SelectedTable] = ()
    landing: str | None = None
    warehouse: str | None = None
    begin: str | None = None
    end: str | None = None
    sensors: bool = False
    name_prefix: str = ""

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        """Builds the definitions.

        Raises:
            BackfillError: if the tables don't fit together, or a setting can't be used.
        """
        is_given = self.landing is not None or self.warehouse is not None
        lakehouse = read_settings(landing=self.landing, warehouse=self.warehouse)
        module = importlib.import_module(self.module)
        tables = {asset.table.key: asset for asset in list_table_assets([module])}
        declared: list[Declared] = [module]
        for selected in self.tables:
            asset = selected.declare(tables, context.path)
            tables[selected.key] = asset
            declared.append(asset)
        return build_defs(
            declared,
            lakehouse=lakehouse if is_given else None,
            calendar=self._build_calendar(),
            features=Features(sensors=self.sensors),
            module=f"{context.defs_module_name.partition('.')[0]}.definitions",
            name_prefix=self.name_prefix,
        )

    def _build_calendar(self) -> Calendar | None:
        if self.begin is None:
            if self.end is not None:
                raise SettingsError("`end` is a day after `begin`: give both, or neither")
            return None
        return Calendar(_read_day(self.begin), _read_day(self.end) if self.end else None)


def _read_day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise SettingsError(f"{text} is no day: write YYYY-MM-DD") from None
