"""Settings of the session, as dictionaries and as the running session has them."""

import socket
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backfill_engine.errors import SparkUnavailableError
from backfill_engine.spark.app_cds import JAVA_OPTIONS
from backfill_engine.spark.session import build_spark_conf, check_prerequisites


def test_overrides_win() -> None:
    overrides = {"spark.master": "local[1]", "spark.sql.session.timeZone": "Europe/Berlin"}
    for remote in (None, "sc://localhost"):
        conf = build_spark_conf(remote=remote, jars=None, overrides=overrides)
        assert overrides.items() <= conf.items()


def test_remote_session_gets_no_setting_of_a_jvm() -> None:
    conf = build_spark_conf(remote="sc://localhost:15002", jars=None, overrides={})
    assert conf["spark.remote"] == "sc://localhost:15002"
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert not [name for name in conf if name.startswith(("spark.driver", "spark.jars"))]
    assert "spark.master" not in conf


@pytest.mark.parametrize("master", [None, "local[2]", "spark://a:7077", "k8s://https://a", "yarn"])
def test_only_executors_in_the_process_look_for_the_driver_on_loopback(master: str | None) -> None:
    overrides = {"spark.master": master} if master else {}
    conf = build_spark_conf(remote=None, jars=None, overrides=overrides)
    is_local = master is None or master.startswith("local")
    assert ("spark.driver.host" in conf) is is_local
    assert ("spark.driver.bindAddress" in conf) is is_local
    if not is_local:
        assert conf["spark.executor.extraJavaOptions"] == "-Duser.timezone=UTC"


def test_a_session_that_reads_much_compiles_twice_and_persists_in_large_batches() -> None:
    def is_made_for_much(master: str, input_bytes: int) -> bool:
        overrides = {"spark.master": master}
        conf = build_spark_conf(
            remote=None, jars=None, overrides=overrides, input_bytes=input_bytes
        )
        has_large_batches = "spark.sql.inMemoryColumnarStorage.batchSize" not in conf
        compiles_twice = "TieredStopAtLevel" not in conf[JAVA_OPTIONS]
        assert has_large_batches is (compiles_twice or not master.startswith("local"))
        return compiles_twice

    megabyte = 2**20
    assert [is_made_for_much("local[2]", size * megabyte) for size in (0, 20, 100)] == [
        False,
        False,
        True,
    ]
    assert not is_made_for_much("spark://a:7077", 100 * megabyte)


def test_running_session_lives_in_utc(spark: SparkSession) -> None:
    (row,) = spark.sql("SELECT current_timezone() AS zone").collect()
    assert row.zone == "UTC"


def test_missing_jars_are_told_before_a_jvm_starts(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailableError, match="BACKFILL_JARS="):
        check_prerequisites(remote=None, jars=tmp_path)


def test_remote_session_needs_neither_java_nor_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_prerequisites(remote=f"sc://127.0.0.1:{port}/;token=x", jars=tmp_path)


def test_remote_server_that_is_not_there_is_noticed_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SparkUnavailableError, match=f"sc://127.0.0.1:{port}"):
        check_prerequisites(remote=f"sc://127.0.0.1:{port}", jars=None)


def test_a_token_is_not_repeated() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SparkUnavailableError) as error:
        check_prerequisites(remote=f"sc://127.0.0.1:{port}/;token=s3cret", jars=None)
    assert f"SPARK_REMOTE=sc://127.0.0.1:{port} " in str(error.value)
    assert "s3cret" not in str(error.value)
