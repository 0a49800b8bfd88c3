"""Spark's settings of S3: Hadoop's client (S3A) reads credentials from the environment, no more."""

from backfill_engine.s3_settings import S3Settings

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
