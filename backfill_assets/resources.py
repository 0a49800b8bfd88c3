"""The Spark session and the lakehouse as Dagster resources."""

from pathlib import Path

from dagster import ConfigurableResource
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from backfill_assets.lake.warehouse import Warehouse
from backfill_assets.settings import Settings
from backfill_assets.spark.session import build_spark_conf, check_prerequisites


class SparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy session, with a clear error where a machine can't have one."""

    remote: str | None = None
    jars: str | None = None
    s3: bool = False

    @property
    def spark_session(self) -> SparkSession:
        """The session, started at the first call."""
        if self._spark_session is None:
            check_prerequisites(
                remote=self.remote, jars=Path(self.jars) if self.jars else None, s3=self.s3
            )
        return super().spark_session


class LakehouseResource(ConfigurableResource):
    """Where data lands, where the Delta tables are, and the bounds of a run's work.

    The fields are those of `Settings`. How an object store is reached is no field: what reads it
    goes by the environment, and a resource's configuration is shown in the UI, keys and all.
    """

    landing_root: str
    warehouse_root: str
    retention_days: int
    withheld_days: int
    chunk_partitions: int
    chunk_bytes: int
    read_back_bytes: int
    check_events: int
    silent_seconds: int
    wait_seconds: int

    def warehouse(self) -> Warehouse:
        """Gives access to the Delta tables."""
        return Warehouse(self.warehouse_root, retention_days=self.retention_days)


def build_resources(settings: Settings) -> dict[str, ConfigurableResource]:
    """Builds the resources that the assets ask for, by name."""
    return {
        "spark": SparkResource(
            spark_config=build_spark_conf(
                remote=settings.spark_remote,
                jars=settings.jars,
                overrides=settings.spark_conf,
                s3=settings.s3,
            ),
            remote=settings.spark_remote,
            jars=str(settings.jars) if settings.jars else None,
            s3=settings.s3 is not None,
        ),
        "lakehouse": LakehouseResource(
            landing_root=settings.landing,
            warehouse_root=settings.warehouse,
            retention_days=settings.retention_days,
            withheld_days=settings.withheld_days,
            chunk_partitions=settings.chunk_partitions,
            chunk_bytes=settings.chunk_bytes,
            read_back_bytes=settings.read_back_bytes,
            check_events=settings.check_events,
            silent_seconds=settings.silent_seconds,
            wait_seconds=settings.wait_seconds,
        ),
    }
