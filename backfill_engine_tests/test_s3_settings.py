"""What is asked of the environment where tables or landing files are on S3."""

import pytest

from backfill_engine.errors import SettingsError
from backfill_engine.s3_settings import S3Settings
from backfill_engine.settings import read_settings
from backfill_engine.spark.session import build_s3_conf

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_REGION": "eu-west-3"}
UNKNOWN = "not all readers of S3 know it"
STORE = {**KEYS, "AWS_ENDPOINT_URL": "http://store:9000", "AWS_ALLOW_HTTP": "true"}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in S3Settings.model_fields.values():
        monkeypatch.delenv(str(field.validation_alias), raising=False)
    monkeypatch.setenv("BACKFILL_WAREHOUSE", "s3a://bucket/lake")


def describe_problem(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert "\n" not in str(caught.value)
    assert "hidden" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (KEYS | {"AWS_REGION": ""}, "AWS_REGION: tables or landing files are on S3: name their"),
        (STORE | {"AWS_ALLOW_HTTP": ""}, "AWS_ALLOW_HTTP: must be true for an AWS_ENDPOINT_URL"),
        (STORE | {"AWS_ALLOW_HTTP": "perhaps"}, "AWS_ALLOW_HTTP: Input should be a valid"),
        (KEYS | {"AWS_ENDPOINT_URL": "store:9000"}, "AWS_ENDPOINT_URL: must begin with https://"),
        (KEYS | {"AWS_ENDPOINT": "https://store"}, f"AWS_ENDPOINT: {UNKNOWN}: set AWS_END"),
        (STORE | {"AWS_ENDPOINT_URL_S3": "http://other:9000"}, f"AWS_ENDPOINT_URL_S3: {UNKNOWN}"),
        (KEYS | {"AWS_SECRET_ACCESS_KEY": ""}, "AWS_SECRET_ACCESS_KEY: is missing, while AWS_"),
        (KEYS | {"AWS_ACCESS_KEY_ID": ""}, "AWS_ACCESS_KEY_ID: is missing, while AWS_SECRE"),
        ({"AWS_REGION": "eu-west-3"}, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: tables"),
    ],
)
def test_what_is_missing_is_told_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    problem = describe_problem(monkeypatch, variables)
    assert problem.startswith(f"unusable environment: {message}")


def test_all_that_is_missing_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = describe_problem(monkeypatch, {"AWS_ENDPOINT_URL": "http://store:9000"})
    for name in ("AWS_ALLOW_HTTP", "AWS_ACCESS_KEY_ID", "AWS_REGION"):
        assert name in problem


@pytest.mark.parametrize("role", ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_EC2_METADATA_DISABLED"])
def test_roles_need_no_keys(monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    monkeypatch.setenv(role, "false")
    s3 = read_settings().s3
    assert s3 is not None and s3.region == "eu-west-3"
    providers = build_s3_conf(s3)["spark.hadoop.fs.s3a.aws.credentials.provider"]
    assert "WebIdentity" in providers and "EnvironmentVariable" not in providers


def test_local_folders_ask_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKFILL_WAREHOUSE", "data/warehouse")
    assert read_settings().s3 is None


def test_landing_zone_alone_on_s3_asks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKFILL_WAREHOUSE", "data/warehouse")
    monkeypatch.setenv("BACKFILL_LANDING", "s3://bucket/landing")
    assert "AWS_REGION" in describe_problem(monkeypatch, {})


def test_spark_is_told_the_same_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in STORE.items():
        monkeypatch.setenv(name, value)
    s3 = read_settings().s3
    assert s3 is not None
    conf = build_s3_conf(s3)
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://store:9000"
    assert conf["spark.hadoop.fs.s3a.endpoint.region"] == "eu-west-3"
    assert conf["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert not {"id", "hidden"} & set(conf.values())


def test_aws_itself_needs_no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    s3 = read_settings().s3
    assert s3 is not None
    assert "spark.hadoop.fs.s3a.endpoint" not in build_s3_conf(s3)
