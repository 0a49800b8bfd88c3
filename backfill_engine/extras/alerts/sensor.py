"""The sensor that posts notices, where somebody wants them: one for each backfill or chain."""

from datetime import UTC, datetime

from dagster import (
    DagsterInstance,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
)

from backfill_engine.catalog import Catalog
from backfill_engine.extras.alerts.alerting import Alerter, AlertMemory, AlertReport, Webhook
from backfill_engine.orchestration.instance.dagster_internals import (
    InstigatorStatus,
)
from backfill_engine.sensors import DUE_PARTITIONS, build_sensor


def build_report_withheld(catalog: Catalog, *, on: bool) -> SensorDefinition:
    """Builds the sensor `report_withheld`, which is on by default or off."""

    def report_withheld(context: SensorEvaluationContext) -> SkipReason:
        """Posts a notice to BACKFILL_ALERT_URL of what came to its end with something held back.

        One for each backfill, or chain of runs: which partitions were withheld or failed, why, what
        goes on by itself, and the command that helps: docs/alerts.md. Does nothing where the
        variable is not set. Fails never: the cursor goes over a chain only once its notice was
        accepted.
        """
        try:
            settings = catalog.settings
            if settings.alert_url is None:
                context.update_cursor("")  # who sets it later wants to hear of what comes then
                return SkipReason("BACKFILL_ALERT_URL is not set: nobody wants notices")
            report = _post_notices(catalog, context, settings.alert_url.get_secret_value())
        except Exception as error:
            context.log.error(f"no notices were posted: {type(error).__name__}: {error}")
            return SkipReason(f"no notices were posted: {type(error).__name__}")
        for problem in (*report.problems, *report.describe_refused()):
            context.log.warning(problem)
        return SkipReason(report.describe())

    return build_sensor(catalog, report_withheld, on=on, seconds=30)


def _post_notices(catalog: Catalog, context: SensorEvaluationContext, url: str) -> AlertReport:
    instance, now = context.instance, datetime.now(tz=UTC)
    alerter = Alerter(
        catalog,
        instance,
        catalog.warehouse,
        Webhook(url),
        retries_changed=_is_on(instance, catalog.prefix(DUE_PARTITIONS)),
    )
    memory, report = alerter.post_notices(AlertMemory.from_json(context.cursor, now=now), now=now)
    context.update_cursor(memory.to_json())
    return report


def _is_on(instance: DagsterInstance, name: str) -> bool:
    """Tells whether a sensor that is off by default was turned on."""
    return any(
        state.instigator_name == name and state.status is InstigatorStatus.RUNNING
        for state in instance.all_instigator_state()
    )
