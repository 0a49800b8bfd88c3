"""What a feature adds to a publish. The publisher knows that there are hooks, and none of them.

A hook is prepared when a step begins, judges what was audited, checks once more under the lock, and
says what the commit and the certificate keep of it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from backfill_engine.lake.table_log import TableLog
from backfill_engine.rules.measured import PartitionMeasures
from backfill_engine.rules.verdicts import Verdict

if TYPE_CHECKING:  # What reads certificates loads no Spark.
    from backfill_engine.publishing.recipes import Recipe


class PublishHook:
    """A feature's part in the publish of a table. Whatever a subclass leaves out adds nothing.

    Attributes:
        name: of the feature; under it commits, events and certificates have what it says.
        is_whole: whether all that the table holds is published in one commit, or nothing is.
    """

    name: ClassVar[str]
    is_whole: bool = False

    def choose_inputs(self, recipe: "Recipe") -> "Recipe":
        """Returns the recipe that the publish goes by."""
        return recipe

    def judge(
        self,
        verdicts: Mapping[str, Verdict],
        measures: Mapping[str, PartitionMeasures],
        target: TableLog,
    ) -> Mapping[str, Verdict]:
        """Adds findings to the verdicts of the audit.

        Args:
            verdicts: by partition key.
            measures: of the same partitions.
            target: log of the table, as it was when the audit was done.
        """
        return verdicts

    def check(self, target: TableLog, keys: Collection[str]) -> None:
        """Refuses the commit, if something has changed since the step began.

        Args:
            target: log of the table, read while its lock is held.
            keys: of the partitions that are about to be written or kept aside.

        Raises:
            BackfillError: nothing is written then.
        """

    def describe(self) -> Any:
        """Describes what the feature did to the whole publish, as JSON; empty if nothing."""
        return None

    def describe_partition(self, key: str) -> str:
        """Describes what it did to a partition; empty if nothing."""
        return ""


def describe_partition(hooks: Sequence[PublishHook], key: str) -> dict[str, str]:
    """Describes what features did to a partition, by their names."""
    return {hook.name: text for hook in hooks if (text := hook.describe_partition(key))}
