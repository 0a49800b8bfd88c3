"""What the environment settles. Nothing else in the project reads environment variables."""

import datetime as dt
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from backfill_engine.errors import SettingsError
from backfill_engine.s3_settings import S3Settings, is_s3
from backfill_engine.uris import absolute_uri

EngineName: TypeAlias = Literal["spark", "sail"]
"""What runs the frames: Spark, or Sail, which is quicker below some gigabytes and needs no Java."""

ENGINE_TAG = "backfill_assets/engine"
"""Tag of a run: the engine that it goes by, in place of BACKFILL_ENGINE."""

MOST_DAYS = 36500  # a century; Spark's intervals and Python's dates both know it
_Read = TypeVar("_Read", bound=BaseSettings)
# Partitions of time are listed one by one, and their times are nanoseconds somewhere.
_EARLIEST, _LATEST = dt.date(1900, 1, 1), dt.date(2200, 1, 1)


class Settings(BaseSettings):
    """All optional; `BACKFILL_LANDING` sets `landing`, and so on.

    Attributes:
        landing: root of the landing zone, a path or URI that Spark and Arrow both read.
        warehouse: root of the Delta tables, a path or URI that Spark and delta-rs both read.
        begin: first day of the partitions of time, which lie wholly between it and the end.
        end: the day after the last of them; empty means up to today.
        historical_loads: names of the active historical loads, comma-separated, or `all`: their
            tables begin where they do, and so does what is computed from these alone.
        retention_days: days for which old table versions, and with them undo, are kept.
        withheld_days: days for which the rows of withheld partitions are kept.
        chunk_partitions: most partitions that a step works on at once.
        chunk_bytes: most bytes of input files that a step works on at once.
        read_back_bytes: bytes of data files from which on Spark's tasks read checksums, of a commit
            or for a proof; their workers need this package then.
        check_events: check evaluations of a run beyond which passes are folded into one a check.
        silent_seconds: seconds without a sign of life after which a run counts as dead of which the
            process can't be seen from here (another host or container).
        wait_seconds: most seconds that a step waits for upstream partitions that are in progress.
        late_days: rows that are more days late change no table by themselves: a person is asked.
        max_lag_days: days, or buckets, by which a watermark may lag before its check warns.
        max_late_share: share of rows, from 0 to 1, that may land more than two days late before a
            check warns.
        rolling_days: days that `rolling_reprocess` runs again.
        alert_url: where notices of what was withheld or failed are posted; None means nowhere. It
            is a secret, as such addresses often hold a token.
        templates: file of options for `launch` and `run`; None means those of the package.
        jars: folder that holds the Delta jars, for machines that can't fetch them.
        spark_conf: Spark settings (a JSON object) that win over the project's own.
        engine: what runs the frames, `spark` or `sail`.
        spark_remote: a Spark Connect URL (`SPARK_REMOTE`); unset means Spark in the process.
        s3: how S3 is reached, if the landing zone or the warehouse is there (`AWS_…`).
    """

    model_config = SettingsConfigDict(env_prefix="BACKFILL_", env_ignore_empty=False, frozen=True)

    landing: str = "data/landing"
    warehouse: str = "data/warehouse"
    begin: dt.date = Field(default=dt.date(2013, 1, 1), ge=_EARLIEST, le=_LATEST)
    end: Annotated[dt.date | None, NoDecode] = Field(
        default=dt.date(2014, 1, 2), ge=_EARLIEST, le=_LATEST
    )
    historical_loads: Annotated[tuple[str, ...], NoDecode] = ()
    retention_days: int = Field(default=90, ge=1, le=MOST_DAYS)
    withheld_days: int = Field(default=30, ge=1, le=MOST_DAYS)
    chunk_partitions: int = Field(default=10_000, ge=1)
    chunk_bytes: int = Field(default=2**30, ge=1)
    read_back_bytes: int = Field(default=2**30, ge=0)
    check_events: int = Field(default=10_000, ge=0)
    silent_seconds: int = Field(default=600, ge=60)
    wait_seconds: int = Field(default=900, ge=0)
    late_days: int = Field(default=90, ge=0, le=MOST_DAYS)
    max_lag_days: float = Field(default=3, ge=0)
    max_late_share: float = Field(default=0.01, ge=0, le=1)
    rolling_days: int = Field(default=3, ge=1, le=MOST_DAYS)
    alert_url: SecretStr | None = None
    templates: Path | None = None
    jars: Path | None = None
    spark_conf: Annotated[dict[str, str], NoDecode] = {}
    engine: EngineName = "spark"
    spark_remote: str | None = Field(default=None, validation_alias="SPARK_REMOTE")
    s3: Annotated[S3Settings | None, NoDecode] = None

    @field_validator("end", "alert_url", "templates", "jars", "spark_remote", mode="before")
    @classmethod
    def _empty_means_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("historical_loads", mode="before")
    @classmethod
    def _read_names(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(name for part in value.split(",") if (name := part.strip()))

    @field_validator("landing", "warehouse")
    @classmethod
    def _make_absolute(cls, value: str) -> str:
        if not value:
            raise ValueError("must not be empty")
        if value.startswith("~"):
            raise ValueError("only a shell knows what ~ is: write the whole path")
        if value.startswith("file:") and urlsplit(value).netloc not in ("", "localhost"):
            raise ValueError("a path has no host: write file:///…, or the path")
        return absolute_uri(value)

    @field_validator("alert_url")
    @classmethod
    def _names_a_web_server(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _is_web_address(value.get_secret_value()):
            raise ValueError("must be a URL as in https://host/path, or http://host:port/path")
        return value

    @field_validator("spark_conf", mode="before")
    @classmethod
    def _read_json(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value or "{}")
        except ValueError as error:
            raise ValueError(
                f'must be a JSON object of texts, such as {{"spark.ui.enabled": "true"}} ({error})'
            ) from error

    @model_validator(mode="after")
    def _begin_is_before_end(self) -> "Settings":
        if self.end is not None and self.begin >= self.end:
            raise ValueError(
                f"BACKFILL_BEGIN and BACKFILL_END: begin {self.begin} must be before end {self.end}"
            )
        return self

    @model_validator(mode="after")
    def _sail_has_no_server(self) -> "Settings":
        if self.engine == "sail" and self.spark_remote is not None:
            raise ValueError(
                "BACKFILL_ENGINE and SPARK_REMOTE: Sail runs in the process and asks no server: "
                "unset one of them"
            )
        return self


def read_settings(*, landing: str | None = None, warehouse: str | None = None) -> Settings:
    """Reads the environment.

    Args:
        landing: root of the landing zone, in place of the environment's.
        warehouse: root of the Delta tables, likewise.

    Raises:
        SettingsError: naming each variable that has no usable value.
    """
    return _read_once(frozenset(os.environ.items()), Path.cwd(), landing, warehouse)


@lru_cache(maxsize=1)
def _read_once(
    _environment: frozenset[tuple[str, str]],
    _folder: Path,
    landing: str | None,
    warehouse: str | None,
) -> Settings:
    """Reads it again only where it has changed: a plan asks for it dozens of times."""
    places = {"landing": landing, "warehouse": warehouse}
    given = {name: place for name, place in places.items() if place is not None}
    settings = read_environment(Settings, **given)
    if is_s3(settings.landing) or is_s3(settings.warehouse):
        return settings.model_copy(update={"s3": read_environment(S3Settings)})
    return settings


def read_environment(settings: type[_Read], **given: Any) -> _Read:
    """Reads the settings of a class, such as a project has for its own tables.

    Args:
        settings: the class.
        given: values that win over the environment's, by field.

    Raises:
        SettingsError: naming each variable that has no usable value.
    """
    try:
        return settings(**given)
    except ValidationError as error:
        problems = "; ".join(map(_describe, error.errors()))
        # Without its cause: that one prints what it was given, secrets too.
        raise SettingsError(f"unusable environment: {problems}") from None


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of brackets or a port that can't be
        return False


def _describe(problem: ErrorDetails) -> str:
    if not problem["loc"]:  # of variables that don't go together, which its message names
        return problem["msg"].removeprefix("Value error, ")
    name = str(problem["loc"][0])
    within = "".join(f"{part}: " for part in problem["loc"][1:])
    message = problem["msg"].removeprefix("Value error, ")
    given = f" (it is {problem['input']!r})" if isinstance(problem["input"], str) else ""
    if name in ("alert_url", "spark_conf", "AWS_SECRET_ACCESS_KEY"):  # which may hold a password
        given = ""
    return f"{name if name.isupper() else f'BACKFILL_{name.upper()}'}: {within}{message}{given}"
