"""`BackfillTablesComponent`: the tables of a module as a component of `dg`, from a `defs.yaml`."""

import datetime as dt
import importlib

from dagster import Component, ComponentLoadContext, Definitions, Model, Resolvable

from backfill_engine.building import Features, build_defs
from backfill_engine.errors import SettingsError
from backfill_engine.settings import read_settings
from backfill_engine.tables.declarations import Calendar


class BackfillTablesComponent(Component, Model, Resolvable):
    """Tables that are filled by safe partition backfills.

    Attributes:
        module: that declares them by `@table_asset`, or a package of such modules.
        landing: root of the landing zone; left out, `BACKFILL_LANDING`.
        warehouse: root of the Delta tables; left out, `BACKFILL_WAREHOUSE`.
        begin: the first day of the partitions, as YYYY-MM-DD; left out, `BACKFILL_BEGIN`.
        end: the day after the last; left out with `begin`, `BACKFILL_END`, else up to today.
        sensors: whether sensors are on without being turned on.
        name_prefix: of the names of jobs, ops, sensors, schedules and resources.
    """

    module: str
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
        return build_defs(
            [importlib.import_module(self.module)],
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
