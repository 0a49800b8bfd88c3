"""What the environment says of S3 and stores like it: the variables that AWS's own tools know.

Spark is told by its settings what stands here; Arrow, delta-rs and the leases read the same
variables for themselves. So each is refused here that only some of them go by.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

_SCHEMES = ("s3", "s3a")


def is_s3(uri: str) -> bool:
    """Tells whether a URI is of S3, or of a store that speaks its language."""
    return uri.partition("://")[0] in _SCHEMES


class S3Settings(BaseSettings):
    """How S3 is reached.

    Attributes:
        endpoint: URL of a store that isn't AWS's (`AWS_ENDPOINT_URL`).
        region: `AWS_REGION`, or `AWS_DEFAULT_REGION`; other stores mostly take any.
        allow_http: whether an endpoint may be without TLS (`AWS_ALLOW_HTTP`).
        key_id: `AWS_ACCESS_KEY_ID`.
        secret: `AWS_SECRET_ACCESS_KEY`.
        identity_token: file of a web identity (`AWS_WEB_IDENTITY_TOKEN_FILE`).
        container_credentials: path or URL of a container's (`AWS_CONTAINER_CREDENTIALS_…_URI`).
        no_instance_role: "false" says that the machine's role is meant, where nothing else is given
            (`AWS_EC2_METADATA_DISABLED`).
    """

    model_config = SettingsConfigDict(frozen=True)

    endpoint: str | None = Field(default=None, validation_alias="AWS_ENDPOINT_URL")
    service_endpoint: str | None = Field(default=None, validation_alias="AWS_ENDPOINT_URL_S3")
    rust_endpoint: str | None = Field(default=None, validation_alias="AWS_ENDPOINT")
    region_name: str | None = Field(default=None, validation_alias="AWS_REGION")
    default_region: str | None = Field(default=None, validation_alias="AWS_DEFAULT_REGION")
    allow_http: bool = Field(default=False, validation_alias="AWS_ALLOW_HTTP")
    key_id: str | None = Field(default=None, validation_alias="AWS_ACCESS_KEY_ID")
    secret: SecretStr | None = Field(default=None, validation_alias="AWS_SECRET_ACCESS_KEY")
    identity_token: str | None = Field(default=None, validation_alias="AWS_WEB_IDENTITY_TOKEN_FILE")
    container_path: str | None = Field(
        default=None, validation_alias="AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
    )
    container_url: str | None = Field(
        default=None, validation_alias="AWS_CONTAINER_CREDENTIALS_FULL_URI"
    )
    no_instance_role: str | None = Field(default=None, validation_alias="AWS_EC2_METADATA_DISABLED")

    @field_validator("*", mode="before")
    @classmethod
    def _empty_means_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("allow_http", mode="before")
    @classmethod
    def _unset_means_no(cls, value: object) -> object:
        return False if value in (None, "") else value

    @property
    def region(self) -> str:
        """The region."""
        return self.region_name or self.default_region or ""

    @model_validator(mode="after")
    def _all_readers_can_reach_it(self) -> "S3Settings":
        problems = [
            *self._find_endpoint_problems(),
            *self._find_credential_problems(),
        ]
        if not self.region:
            problems.append(
                "AWS_REGION: tables or landing files are on S3: name their region (for stores other"
                " than AWS's, us-east-1 mostly does)"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _find_endpoint_problems(self) -> Iterator[str]:
        for name, other in (
            ("AWS_ENDPOINT_URL_S3", self.service_endpoint),
            ("AWS_ENDPOINT", self.rust_endpoint),
        ):
            if other is not None and other != self.endpoint:
                yield f"{name}: not all readers of S3 know it: set AWS_ENDPOINT_URL instead"
        if self.endpoint is None:
            return
        if urlsplit(self.endpoint).scheme not in ("http", "https"):
            yield f"AWS_ENDPOINT_URL: must begin with https:// or http:// (it is {self.endpoint!r})"
        if self.endpoint.startswith("http:") and not self.allow_http:
            yield (
                "AWS_ALLOW_HTTP: must be true for an AWS_ENDPOINT_URL without TLS "
                f"({self.endpoint})"
            )

    def _find_credential_problems(self) -> Iterator[str]:
        if (self.key_id is None) != (self.secret is None):
            given, lacking = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
            if self.key_id is None:
                given, lacking = lacking, given
            yield f"{lacking}: is missing, while {given} is set"
        elif self.key_id is None and not self._has_role():
            yield (
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: tables or landing files are on S3: "
                "set both (profiles are not read), or AWS_EC2_METADATA_DISABLED=false if it is the "
                "role of this machine that may read them"
            )

    def _has_role(self) -> bool:
        if self.identity_token or self.container_path or self.container_url:
            return True
        return self.no_instance_role is not None and self.no_instance_role.lower() == "false"
