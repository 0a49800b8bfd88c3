"""The Spark session and the lakehouse as Dagster resources."""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, get_args

from dagster import (
    AssetCheckExecutionContext,
    AssetExecutionContext,
    ConfigurableResource,
    InitResourceContext,
    OpExecutionContext,
    ResourceDefinition,
    Shape,
)
from dagster import (
    Field as ConfigField,
)
from dagster_pyspark import LazyPySparkResource
from dagster_pyspark.resources import spark_session_from_config
from pydantic import Field, PrivateAttr
from pyspark.sql import SparkSession

from backfill_engine.catalog import Catalog
from backfill_engine.contents.partition_contents import PartitionReader
from backfill_engine.errors import SettingsError
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.settings import ENGINE_TAG, EngineName, Settings, read_settings
from backfill_engine.spark.connect import limit_retries
from backfill_engine.spark.gateway import start_context
from backfill_engine.spark.remotes import SPARK_REMOTE_TAG, check_tagged_remote
from backfill_engine.spark.sail import start_sail
from backfill_engine.spark.session import build_spark_conf, check_prerequisites


class SparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy session, with a clear error where a machine can't have one.

    The environment says which session, when it is started: `SPARK_REMOTE` may have a token,
    `BACKFILL_SPARK_CONF` a password, and a resource's configuration is shown in the UI. A run may
    name a Spark Connect server of its own by the tag `backfill_assets/spark_remote`, or the engine
    by `backfill_assets/engine`.

    Attributes:
        spark_config: settings by name that win over the environment's; Sail has none of them.
        engine: `spark` or `sail`, in place of the environment's.
    """

    spark_config: dict[str, Any] = Field(
        default_factory=dict, description="Spark settings that win over the environment's."
    )
    catalog: ClassVar[Catalog | None] = None
    engine: str | None = Field(
        default=None, description="`spark` or `sail`, in place of BACKFILL_ENGINE."
    )
    _tagged_remote: str | None = PrivateAttr(default=None)
    _tagged_engine: str | None = PrivateAttr(default=None)
    _input_bytes: int = PrivateAttr(default=0)

    def setup_for_execution(self, context: InitResourceContext) -> None:
        """Notes what the run says of its session, which is started when it is needed."""
        tags = context.run.tags if context.run else {}
        self._tagged_remote = tags.get(SPARK_REMOTE_TAG)
        self._tagged_engine = tags.get(ENGINE_TAG)

    def expect_input(self, input_bytes: int) -> None:
        """Notes how much the session is to read first; has no effect once it is started."""
        self._input_bytes = input_bytes

    @property
    def spark_session(self) -> SparkSession:
        """The session, started at the first call.

        Raises:
            SettingsError: if the run's tag is none that names a server, or holds a secret.
            SparkUnavailableError: if there can be no session.
        """
        self._init_session()
        return self._spark_session

    def _init_session(self) -> None:
        if self._spark_session is None:
            self._spark_session = self._start_session()

    def _start_session(self) -> SparkSession:
        settings = self.catalog.settings if self.catalog else read_settings()
        if self._find_engine(settings) == "sail":
            session = start_sail()
            _started.append(session)
            return session
        tagged = self._tagged_remote
        if tagged is not None:
            check_tagged_remote(tagged, named_by=f"tag {SPARK_REMOTE_TAG}")
        remote = settings.spark_remote if tagged is None else tagged
        check_prerequisites(
            remote=remote,
            jars=settings.jars,
            s3=settings.s3 is not None,
            remote_from="SPARK_REMOTE" if tagged is None else SPARK_REMOTE_TAG,
        )
        overrides = {**settings.spark_conf, **self.spark_config}
        conf = (
            build_spark_conf(
                remote=remote,
                jars=settings.jars,
                overrides=overrides,
                s3=settings.s3,
                input_bytes=self._input_bytes,
            )
            if tagged is None
            else build_tagged_conf(tagged, overrides)
        )
        start_context(conf)
        session = spark_session_from_config(conf)
        if remote is not None:
            limit_retries(session)
        _started.append(session)
        return session

    def _find_engine(self, settings: Settings) -> str:
        """Finds the engine: of the run's tags, the resource's configuration, the environment."""
        if self._tagged_engine is None and self._tagged_remote is not None:
            return "spark"
        engine = self._tagged_engine or self.engine or settings.engine
        if engine not in (known := get_args(EngineName)):
            raise SettingsError(f"engine={engine}: choose one of {', '.join(known)}")
        return engine


_started: list[SparkSession] = []


def interrupt_sessions() -> None:
    """Ends what the sessions of this process are computing; who waits for it gets an error."""
    for session in _started:
        with suppress(Exception):  # one that is lost computes nothing
            session.interruptAll()


def build_tagged_conf(remote: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """Builds the settings of a session at the server that a run names.

    Where Spark runs is up to the tag, so that a master among the overrides has no say.
    """
    kept = {name: value for name, value in overrides.items() if name != "spark.master"}
    return build_spark_conf(remote=remote, jars=None, overrides=kept)


class LakehouseResource(ConfigurableResource):
    """Where data lands, where the Delta tables are, and the bounds of a run's work.

    The fields are those of `Settings`. How an object store is reached is no field: what reads it
    goes by the environment, and a resource's configuration is shown in the UI, keys and all.
    """

    landing_root: str = Field(description="Root of the landing zone, a path or URI.")
    warehouse_root: str = Field(description="Root of the Delta tables, a path or URI.")
    retention_days: int = Field(
        description="Days for which old table versions, and with them undo, are kept."
    )
    withheld_days: int = Field(
        description="Days for which the rows of withheld partitions are kept."
    )
    chunk_partitions: int = Field(description="Most partitions that a step works on at once.")
    chunk_bytes: int = Field(description="Most bytes of input files that it works on at once.")
    read_back_bytes: int = Field(
        description="Bytes of data files from which on Spark's tasks read checksums."
    )
    check_events: int = Field(
        description="Check evaluations of a run beyond which passes are folded into one a check."
    )
    silent_seconds: int = Field(
        description="Seconds without a sign of life after which a run counts as dead whose process "
        "can't be seen from here."
    )
    wait_seconds: int = Field(
        description="Most seconds that a step waits for upstream partitions in progress."
    )

    def warehouse(self) -> Warehouse:
        """Gives access to the Delta tables."""
        return Warehouse(self.warehouse_root, retention_days=self.retention_days)


def build_reader(spark: SparkResource, lakehouse: LakehouseResource) -> PartitionReader:
    """Builds what reads partitions back; it starts the session once it needs one."""
    return PartitionReader(lambda: spark.spark_session, lakehouse.read_back_bytes)


_SPARK, _LAKEHOUSE = "spark", "lakehouse"


def list_resources(catalog: Catalog) -> set[str]:
    """Lists the keys of the resources that the engine's ops ask for."""
    return {catalog.prefix(_SPARK), catalog.prefix(_LAKEHOUSE)}


def find_resources(
    catalog: Catalog,
    context: AssetExecutionContext | AssetCheckExecutionContext | OpExecutionContext,
) -> tuple[SparkResource, LakehouseResource]:
    """Finds the resources of a step, by their keys in this code location."""
    spark = getattr(context.resources, catalog.prefix(_SPARK))
    lakehouse = getattr(context.resources, catalog.prefix(_LAKEHOUSE))
    assert isinstance(spark, SparkResource)
    assert isinstance(lakehouse, LakehouseResource)
    return spark, lakehouse


def build_resources(
    catalog: Catalog, settings: Settings | None = None
) -> dict[str, ResourceDefinition]:
    """Builds the resources that the assets ask for, by key.

    A run may set their fields, though no launchpad opens with them.

    Args:
        catalog: of the code location.
        settings: in place of the catalog's.

    Raises:
        SettingsError: if the catalog's settings can't be used.
    """
    lakehouse = build_lakehouse(settings or catalog.settings)
    places = f"Landing zone: `{lakehouse.landing_root}`. Tables: `{lakehouse.warehouse_root}`."
    return {
        catalog.prefix(_SPARK): _hide_values(build_spark(catalog)),
        catalog.prefix(_LAKEHOUSE): _hide_values(lakehouse, places),
    }


def _hide_values(resource: ConfigurableResource, places: str = "") -> ResourceDefinition:
    """Makes the fields of a resource optional ones, as Dagster's launchpads show all defaults."""
    definition = resource.get_resource_definition()
    shape = definition.config_schema.config_type
    assert isinstance(shape, Shape)
    return ResourceDefinition(
        # Of what the run doesn't set, it takes the resource's own values.
        definition.resource_fn,
        config_schema={
            name: ConfigField(field.config_type, is_required=False, description=field.description)
            for name, field in shape.fields.items()
        },
        description="\n\n".join(filter(None, (inspect.getdoc(resource), places))),
    )


def build_spark(catalog: Catalog) -> SparkResource:
    """Builds the Spark session's resource; nothing of it is settled here."""

    class CatalogSparkResource(SparkResource):
        __doc__ = SparkResource.__doc__

    CatalogSparkResource.catalog = catalog
    return CatalogSparkResource()


def build_lakehouse(settings: Settings) -> LakehouseResource:
    """Builds the lakehouse that the settings say."""
    bounds = {
        name: getattr(settings, name)
        for name in LakehouseResource.model_fields
        if name not in ("landing_root", "warehouse_root")
    }
    return LakehouseResource(
        landing_root=settings.landing, warehouse_root=settings.warehouse, **bounds
    )
