"""Which Spark a run goes by: its tag's, or the environment's."""

import pytest
from dagster import Definitions, job, op
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value

from backfill_engine.errors import SettingsError, SparkUnavailableError
from backfill_engine.resources import (
    SparkResource,
    build_resources,
    build_tagged_conf,
)
from backfill_engine.settings import ENGINE_TAG
from backfill_engine.spark.remotes import SPARK_REMOTE_TAG, check_tagged_remote
from backfill_engine_tests.ports import find_free_port
from backfill_engine_tests.project import CATALOG


def test_a_tagged_server_gets_settings_of_its_own_and_no_master() -> None:
    overrides = {"spark.master": "spark://a:7077", "spark.sql.ansi.enabled": "true"}
    conf = build_tagged_conf("sc://b:15002", overrides)
    assert conf["spark.remote"] == "sc://b:15002"
    assert conf["spark.sql.ansi.enabled"] == "true"
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert not {"spark.master", "spark.jars", "spark.driver.memory"} & conf.keys()


@pytest.mark.parametrize(
    "remote",
    [
        *("", "local", "spark://a:7077", "http://a:15002", "SC://a"),
        *(
            "sc://",
            "sc://:15002",
            "sc://a:0",
            "sc://a:99999",
            "sc://a:port",
            "sc://a b:1",
            "sc://[a",
        ),
        *("sc://a:1/path", "sc://a:1?user_id=me", "sc://a:1/path/;user_id=me", "sc://a:1\n"),
    ],
)
def test_what_is_no_connect_server_is_refused(remote: str) -> None:
    with pytest.raises(SettingsError, match="name a Spark Connect server, as in sc://host:15002"):
        check_tagged_remote(remote, named_by="--spark-remote")


@pytest.mark.parametrize("remote", ["sc://a", "sc://a:15002/", "sc://[::1]:15002/;user_id=me"])
def test_a_server_with_parameters_that_are_no_secret_may_be_named(remote: str) -> None:
    check_tagged_remote(remote, named_by="--spark-remote")


@pytest.mark.parametrize("remote", ["sc://a:443/;token=s3cret", "sc://user:s3cret@a:443"])
def test_a_secret_in_a_tag_is_refused_and_not_repeated(remote: str) -> None:
    with pytest.raises(SettingsError, match="a token doesn't belong there") as refusal:
        check_tagged_remote(remote, named_by="--spark-remote")
    assert "s3cret" not in str(refusal.value)


def test_the_tag_of_a_run_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = (f"sc://127.0.0.1:{find_free_port()}" for _ in range(2))

    @op
    def start(spark: SparkResource) -> None:
        _ = spark.spark_session

    @job(resource_defs={"spark": SparkResource()})
    def work() -> None:
        start()

    monkeypatch.setenv("SPARK_REMOTE", other)
    for tags, named in (
        ({SPARK_REMOTE_TAG: own}, f"{SPARK_REMOTE_TAG}={own}"),
        ({}, f"SPARK_REMOTE={other}"),
    ):
        with pytest.raises(SparkUnavailableError, match=f"no Spark Connect .* at {named} "):
            work.execute_in_process(tags=tags)


def test_an_engine_that_there_is_not_is_refused() -> None:
    @op
    def start(spark: SparkResource) -> None:
        _ = spark.spark_session

    @job
    def work() -> None:
        start()

    for resource, tags in (
        (SparkResource(), {ENGINE_TAG: "duckdb"}),
        (SparkResource(engine="duckdb"), {}),
    ):
        with pytest.raises(SettingsError, match="engine=duckdb: choose one of spark, sail"):
            work.execute_in_process(tags=tags, resources={"spark": resource})


def test_sail_and_a_server_are_not_asked_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKFILL_ENGINE", "sail")
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    with pytest.raises(SettingsError, match="Sail runs in the process and asks no server"):
        _ = SparkResource().spark_session


def test_no_secret_of_the_environment_is_told_to_dagster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SPARK_REMOTE": "sc://127.0.0.1:443/;token=s3cret",
        "BACKFILL_SPARK_CONF": '{"spark.ssl.keyPassword": "s3cret"}',
        "BACKFILL_WAREHOUSE": "s3a://bucket/lake",
        "AWS_REGION": "eu-west-3",
        "AWS_ACCESS_KEY_ID": "s3cret",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
    }.items():
        monkeypatch.setenv(name, value)
    location = Definitions(resources=build_resources(CATALOG))
    shown = serialize_value(RepositorySnap.from_def(location.get_repository_def()))
    assert "s3a://bucket/lake" in shown
    assert "s3cret" not in shown


def test_what_the_environment_names_is_told_without_its_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", f"sc://me:s3cret@127.0.0.1:{find_free_port()}/;token=s3cret")
    with pytest.raises(SparkUnavailableError, match=r"SPARK_REMOTE=sc://127\.0\.0\.1:") as caught:
        _ = SparkResource().spark_session
    assert "s3cret" not in str(caught.value)
