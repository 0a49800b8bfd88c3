"""What Acme had before: an asset, a job and resources, none of them of the engine."""

import time

from dagster import ConfigurableResource, Definitions, OpExecutionContext, asset, job, op


class Spark(ConfigurableResource):
    """Acme's own resource, which happens to be called as one of the engine's."""

    colour: str = "yellow"


@asset
def price_list() -> None:
    """What a litre costs."""


@op
def rest(context: OpExecutionContext, spark: Spark) -> str:
    """Says nothing for as long as a tag says, as jobs do that wait for others."""
    time.sleep(float(context.run.tags.get("seconds", "0")))
    return spark.colour


@job
def tidy() -> None:
    """One op."""
    rest()


defs = Definitions(assets=[price_list], jobs=[tidy], resources={"spark": Spark()})
