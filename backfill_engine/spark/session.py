"""Settings of the Spark session: sized for a small machine, and UTC everywhere."""

import os
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from backfill_engine.s3_settings import S3Settings
from backfill_engine.spark.app_cds import (
    JAVA_OPTIONS,
    find_class_archive,
    train_class_archive,
)
from backfill_engine.spark.cache import are_whole, note_use
from backfill_engine.spark.connect import check_server
from backfill_engine.spark.jars import (
    LOCAL_CONF,
    ensure_jars,
    ensure_local_files,
    find_local_files,
    jar_paths,
)
from backfill_engine.spark.java import find_java

# Runtime settings: also sent to a Spark Connect server.
_SQL_CONF = {
    "spark.sql.session.timeZone": "UTC",
    # Rows outside the partitions asked for must fail the write, whatever the server's default.
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "true",
    # A publish of partitions that had no rows and have none is a publish all the same.
    "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    # A commit would look up how many rows it replaces, for a history that nobody reads.
    "spark.databricks.delta.dmlMetricsFromMetadata.enabled": "false",
    # Defaults are for clusters: 50 tasks to read a small table's log.
    "spark.databricks.delta.snapshotPartitions": "1",
    # What is persisted is read three times and then forgotten: packing it costs more than it saves.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Below this many paths the driver looks at them itself, above it starts a job that does.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
}
_JAVA_OPTIONS = " ".join(
    (
        # By its default Java reserves 48 MB for one compiler's code, which are full after some
        # dozens of steps; then it stops compiling at all. What Spark generates for a hundred
        # aggregates is a huge method.
        "-XX:ReservedCodeCacheSize=240m -XX:-DontCompileHugeMethods",
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={files('backfill_engine.spark') / 'log4j2.properties'}",
    )
)
_FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
_SMALL_BATCHES = {"spark.sql.inMemoryColumnarStorage.batchSize": "1000"}
"""Of what is persisted, of a day or two each, so that who writes a chunk passes over the rest. With
7.5 million rows of them a run ended in a heap of 1 GB, where it ends well with Spark's default."""
_MUCH_INPUT_BYTES = 64 * 2**20
"""Of input files, from which on the second compiler pays: somewhere between 25 and 80 MB of
Parquet, which take half a minute to a minute over three layers."""


def build_spark_conf(
    *,
    remote: str | None,
    jars: Path | None,
    overrides: Mapping[str, str],
    s3: S3Settings | None = None,
    input_bytes: int = 0,
) -> dict[str, str]:
    """Builds all settings of a session; `overrides` win.

    Args:
        remote: a Spark Connect URL; None means Spark in this process.
        jars: the folder with Delta's jars; None means the user's cache.
        overrides: settings by name.
        s3: how S3 is reached; None if nothing is there. A Spark Connect server goes by its own.
        input_bytes: of the files that the session is to read first, as far as known: a JVM that
            lives long gets code that takes longer to make, and large batches of persisted rows.
    """
    if remote is not None:
        return {"spark.remote": remote, **_SQL_CONF, **overrides}
    cores = os.cpu_count() or 1
    master = overrides.get("spark.master", f"local[{cores}]")
    is_local = master.startswith("local")
    return {
        "spark.master": master,
        "spark.app.name": "backfill_assets",
        **(_build_local_conf(jars, s3, input_bytes) if is_local else _build_cluster_conf(jars, s3)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": str(cores),
        # By the default each file counts as 4 MB, and 32 of them, however small, are a task.
        "spark.sql.files.openCostInBytes": str(256 * 1024),
        # VACUUM lists folders in as many tasks; the default is ten thousand.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores),
        "spark.driver.memory": "2g",
        # Spark makes this folder though nothing is ever in it; not in the working directory,
        # please.
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), "backfill-assets-catalog")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **(build_s3_conf(s3) if s3 else {}),
        **_SQL_CONF,
        **overrides,
    }


def _find_class_archive(jars: Path | None, *, s3: bool) -> Path | None:
    return find_class_archive(_list_class_path(jars, s3=s3))


def _list_class_path(jars: Path | None, *, s3: bool) -> list[Path]:
    return [find_local_files(), *jar_paths(jars, s3=s3)]


def _build_local_conf(jars: Path | None, s3: S3Settings | None, input_bytes: int) -> dict[str, str]:
    is_little = input_bytes < _MUCH_INPUT_BYTES
    options = f"{_FIRST_COMPILER} {_JAVA_OPTIONS}" if is_little else _JAVA_OPTIONS
    # On Java's own class path, as only such classes can be archived.
    class_path = _list_class_path(jars, s3=s3 is not None)
    archive = find_class_archive(class_path)
    # Where the class path is another one after all, Java goes on without, and needn't say so.
    archived = "-Xlog:disable -Xlog:all=error:stderr -XX:SharedArchiveFile="
    return {
        # All of it is in one process. Executors elsewhere have to find the driver by its name.
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, class_path)),
        **LOCAL_CONF,
        **(_SMALL_BATCHES if is_little else {}),
        JAVA_OPTIONS: f"{options} {archived}{archive}"
        if archive is not None and are_whole([archive])
        else options,
    }


def _build_cluster_conf(jars: Path | None, s3: S3Settings | None) -> dict[str, str]:
    paths = ",".join(map(str, jar_paths(jars, s3=s3 is not None)))
    return {
        "spark.jars": paths,
        JAVA_OPTIONS: f"{_FIRST_COMPILER} {_JAVA_OPTIONS}",  # The work is done elsewhere.
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    }


def is_trained(*, jars: Path | None, s3: S3Settings | None) -> bool:
    """Tells whether sessions of Spark in the process start as fast as they can."""
    archive = _find_class_archive(jars, s3=s3 is not None)
    return archive is None or are_whole([archive])


def train_sessions(*, jars: Path | None, s3: S3Settings | None) -> None:
    """Lets the sessions to come, of Spark in the process, start faster; takes half a minute once.

    The prerequisites must be there.
    """
    archive = _find_class_archive(jars, s3=s3 is not None)
    if archive is not None:
        conf = build_spark_conf(remote=None, jars=jars, overrides={}, s3=s3)
        train_class_archive(archive, conf)


def check_prerequisites(
    *,
    remote: str | None,
    jars: Path | None,
    s3: bool = False,
    remote_from: str = "SPARK_REMOTE",
) -> None:
    """Makes sure that a session can be started; fetches and compiles what it needs the first time.

    Args:
        remote: a Spark Connect URL; None means Spark in this process.
        jars: the folder with the jars; None means the user's cache.
        s3: whether it is to reach S3.
        remote_from: the setting or the tag that has the URL, for the message.

    Raises:
        SparkUnavailableError: naming what is missing and how to get it.
    """
    if remote is None:
        # Here an empty one counts as unset; for PySpark it would be a URL, and a wrong one.
        os.environ.pop("SPARK_REMOTE", None)
        # The Python of Spark's tasks is to be this one, with all that is installed there.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        find_java()
        ensure_jars(jars, s3=s3)
        ensure_local_files(jars)
        archive = _find_class_archive(jars, s3=s3)
        if archive is not None:
            note_use(archive)
    else:
        check_server(remote, named_by=remote_from)


_CLIENT = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_SDK_CREDENTIALS = "software.amazon.awssdk.auth.credentials"
_KEYS = f"{_SDK_CREDENTIALS}.EnvironmentVariableCredentialsProvider"
_IDENTITY = f"{_SDK_CREDENTIALS}.WebIdentityTokenFileCredentialsProvider"
_ROLE = "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider"


def build_s3_conf(s3: S3Settings) -> dict[str, str]:
    """Builds the settings by which Spark reaches what Arrow and delta-rs reach.

    Keys stay in the environment: Spark shows its settings to whoever sees its UI.
    """
    conf = {
        "fs.s3.impl": _CLIENT,  # URIs of other programs begin with s3://
        "fs.s3a.endpoint.region": s3.region,
        "fs.s3a.aws.credentials.provider": _KEYS if s3.key_id else f"{_IDENTITY},{_ROLE}",
    }
    if s3.endpoint is not None:
        conf |= {
            "fs.s3a.endpoint": s3.endpoint,
            "fs.s3a.path.style.access": "true",  # as the other readers spell it
            "fs.s3a.connection.ssl.enabled": str(s3.endpoint.startswith("https:")).lower(),
        }
    return {f"spark.hadoop.{name}": value for name, value in conf.items()}
