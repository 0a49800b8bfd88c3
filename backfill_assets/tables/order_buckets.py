"""How an installation partitions orders: the environment says it."""

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from backfill_engine.grains import Buckets


class OrderSettings(BaseSettings):
    """`BACKFILL_ORDER_KEY_STEP` and `BACKFILL_ORDER_KEY_SPACE`.

    Attributes:
        order_key_step: order keys in a partition.
        order_key_space: order keys from 0 on that the partitions cover.
    """

    model_config = SettingsConfigDict(env_prefix="BACKFILL_", env_ignore_empty=False, frozen=True)

    order_key_step: int = Field(default=100_000, ge=1)
    order_key_space: int = Field(default=10_000_000, ge=1)

    @model_validator(mode="after")
    def _keys_make_buckets(self) -> "OrderSettings":
        try:
            self.build_buckets()
        except ValueError as error:
            raise ValueError(
                f"BACKFILL_ORDER_KEY_STEP and BACKFILL_ORDER_KEY_SPACE: {error}"
            ) from error
        return self

    def build_buckets(self) -> Buckets:
        """Builds the partitions."""
        return Buckets(step=self.order_key_step, space=self.order_key_space)


ORDER_BUCKETS = Buckets(step=100_000, space=10_000_000)
"""As declared; the definitions put those of the environment in their place."""
