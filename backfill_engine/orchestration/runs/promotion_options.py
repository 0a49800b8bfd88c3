"""What a promotion is told, by a command or in the Launchpad."""

from collections.abc import Sequence

from dagster import Config
from pydantic import Field

from backfill_engine.errors import PromotionError

_CANARY = 7


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

    @property
    def goes_back(self) -> bool:
        """Whether it takes back the last switch."""
        return not self.version

    def find_canary(self, keys: Sequence[str]) -> list[str]:
        """Finds those of the partitions to be switched that are judged before the rest.

        Raises:
            PromotionError: if none of them lies in the range that is named.
        """
        if not self.canary:
            return list(keys[-_CANARY:])
        first, last = self.canary[0], self.canary[-1]
        found = [key for key in keys if first <= key <= last]
        if not found:
            raise PromotionError(
                f"no partition to be switched lies in the canary {first}...{last}: they are "
                f"{keys[0]} to {keys[-1]}"
            )
        return found
