"""The sensor that observes the landing zone."""

from datetime import UTC, datetime

from dagster import SensorDefinition, SensorEvaluationContext, SensorResult, SkipReason

from backfill_engine.catalog import Catalog
from backfill_engine.errors import LandingError, LandingNotFoundError
from backfill_engine.extras.landing.observations import (
    Budget,
    observe_landing_zone,
    read_cursor,
    write_cursor,
)
from backfill_engine.orchestration.instance.partition_definitions import (
    find_feed_begin,
    find_landing_key,
    find_partitions_def,
)
from backfill_engine.orchestration.instance.ranges import describe_ranges
from backfill_engine.sensors import build_sensor


def build_observe_landing(catalog: Catalog, *, on: bool) -> SensorDefinition:
    """Builds the sensor `observe_landing`, which is on by default or off."""

    def observe_landing(context: SensorEvaluationContext) -> SensorResult:
        """Observes each partition of the landing zone whose files came, went or were rewritten.

        How many files, bytes and records are there now, and what changed. It requests nothing:
        docs/late-data.md. What is too much for one tick is left for the next. A data set that
        isn't there is said, and so is one that can't be listed; the others go on.
        """
        root, budget = catalog.settings.landing, Budget()
        seen, messages = read_cursor(context.cursor), []
        for recipe in (one for one in catalog.recipes.values() if one.landing is not None):
            name = find_landing_key(recipe.table).to_user_string()
            partitions_def = find_partitions_def(recipe.table)
            begin = find_feed_begin(recipe.table)  # History is no news.
            try:
                look = observe_landing_zone(
                    context.instance,
                    recipe,
                    [key for key in partitions_def.get_partition_keys() if key >= begin],
                    seen.get(name, {}),
                    budget,
                    landing_root=root,
                    now=datetime.now(tz=UTC),
                )
            except LandingError as error:
                messages.append(f"{name}: {error}")
                # A pipeline that nobody feeds here is no error.
                if not isinstance(error, LandingNotFoundError):
                    context.log.error(messages[-1])
                continue
            seen[name], budget = dict(look.seen), look.budget
            if look.observed:
                texts = dict.fromkeys(look.observed, "observed")
                messages += [f"{name} {text}" for text in describe_ranges(partitions_def, texts)]
            if look.left:
                messages.append(f"{name}: {look.left} more partitions are for the next tick")
        reason = SkipReason("; ".join(messages) or "nothing came, went or was rewritten")
        return SensorResult(skip_reason=reason, cursor=write_cursor(seen))

    return build_sensor(catalog, observe_landing, on=on)
