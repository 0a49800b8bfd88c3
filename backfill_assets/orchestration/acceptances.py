"""How a person lets a withheld partition pass: in the run's configuration, with a reason."""

from dagster import Config
from pydantic import Field

from backfill_assets.errors import SettingsError
from backfill_assets.quality.judging import Acceptance, Check


class AcceptanceConfig(Config):
    """One failed check that may be published all the same."""

    check: str = Field(description="The check, such as partition_is_stable.")
    reason: str = Field(description="Why; it is kept in the commit and in the event.")
    partitions: list[str] = Field(
        default_factory=list, description="The keys it is about; none means all of the run."
    )


class PublishConfig(Config):
    """What a run of an asset may be told."""

    accept: list[AcceptanceConfig] = Field(
        default_factory=list, description="Failed checks that a person accepts."
    )

    def read_acceptances(self) -> tuple[Acceptance, ...]:
        """Checked and frozen.

        Raises:
            SettingsError: for a check that doesn't exist or an empty reason.
        """
        acceptable = [check.value for check in (Check.COMPLETE, Check.VALID, Check.STABLE)]
        for one in self.accept:
            if one.check not in acceptable:
                raise SettingsError(
                    f"can't accept {one.check}: name one of {', '.join(acceptable)}"
                )
            if not one.reason.strip():
                raise SettingsError(f"accepting {one.check} needs a reason")
        return tuple(
            Acceptance(one.check, one.reason, tuple(one.partitions) or None) for one in self.accept
        )
