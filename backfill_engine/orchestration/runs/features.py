"""Features take part in each publish of a code location: what is asked of each when a step begins.

`build_defs` is given the features; none of them is known here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dagster import DagsterInstance, DagsterRun

from backfill_engine.catalog import Catalog
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.publishing.hooks import PublishHook
from backfill_engine.publishing.recipes import Recipe
from backfill_engine.publishing.serving import ServedHook, find_held_version


@dataclass(frozen=True)
class StepRequest:
    """A step that is about to begin.

    Attributes:
        catalog: of the code location.
        instance: the Dagster instance.
        run: the run.
        recipe: how the step's table is made.
        keys: of the run's partitions, which are the same for all of its assets.
        warehouse: the tables.
    """

    catalog: Catalog
    instance: DagsterInstance
    run: DagsterRun
    recipe: Recipe
    keys: Sequence[str]
    warehouse: Warehouse


class Feature(Protocol):
    """What may take part in a publish."""

    def __call__(self, request: StepRequest, /) -> PublishHook | None:
        """Prepares the feature's hook; returns None where it has nothing to do with the step.

        Raises:
            BackfillError: if the run may not do what it was asked to; nothing is written then.
        """


def prepare_hooks(features: Iterable[Feature], request: StepRequest) -> tuple[PublishHook, ...]:
    """Prepares the hooks of a step, one feature after the other."""
    hooks = (feature(request) for feature in features)
    return tuple(hook for hook in hooks if hook is not None)


def keep_served_version(request: StepRequest) -> ServedHook | None:
    """Lets a run of a served table go by the version that the table holds."""
    if not request.recipe.table.versions:
        return None
    log = read_log(request.warehouse, request.recipe.table)
    return ServedHook(find_held_version(log))
