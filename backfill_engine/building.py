"""Assembles the definitions of a code location, to be merged with whatever else it has."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dagster import Definitions

from backfill_engine.assembly import Declared, build_catalog
from backfill_engine.asset_checks import build_readable_check
from backfill_engine.asset_definitions import build_asset
from backfill_engine.extras.alerts.sensor import build_report_withheld
from backfill_engine.extras.health.backfill_health import build_backfill_health
from backfill_engine.extras.health.late_arrivals import build_late_arrivals
from backfill_engine.extras.health.schedule import build_watch_schedule
from backfill_engine.extras.rehearsal import job as rehearsal_job
from backfill_engine.extras.rehearsal.applying import apply_rehearsal
from backfill_engine.extras.versions import jobs as version_jobs
from backfill_engine.grains.grain import Grain
from backfill_engine.jobs import JOBS, MAINTAIN, build_job, build_maintenance_schedule
from backfill_engine.landing_assets import build_external_asset, build_landing_asset
from backfill_engine.landing_sensor import build_observe_landing
from backfill_engine.orchestration.runs.features import Feature, keep_served_version
from backfill_engine.orchestration.runs.pinned_code import pin_code
from backfill_engine.orchestration.runs.protecting import protect_partitions
from backfill_engine.pause_sensor import build_go_on_after_pause
from backfill_engine.range_jobs import build_range_jobs
from backfill_engine.resources import build_resources
from backfill_engine.rolling_schedules import build_rolling_schedules
from backfill_engine.sensors import (
    build_continue_after_withheld,
    build_process_due_partitions,
    build_recover_dead_runs,
)
from backfill_engine.settings import Settings
from backfill_engine.table_translator import TableTranslator
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
    MAINTAIN: replace(JOBS[MAINTAIN], after=(rehearsal_job.remove_abandoned_tables,)),
    **rehearsal_job.JOBS,
    **version_jobs.JOBS,
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
    jobs = {name: build_job(catalog, name, declared) for name, declared in _JOBS.items()}
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
