"""What the environment settles, and how an unusable value is reported."""

import traceback

import pytest

from backfill_engine.errors import SettingsError
from backfill_engine.settings import read_settings


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"BEGIN": "2013-02-01", "END": "2013-02-01"},
            "BACKFILL_BEGIN and BACKFILL_END: begin 2013-02-01 must be before end 2013-02-01",
        ),
        ({"LANDING": ""}, "BACKFILL_LANDING: must not be empty"),
    ],
)
def test_unusable_values_are_reported_with_the_variables_that_have_them(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"BACKFILL_{name}", value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert str(caught.value).startswith(f"unusable environment: {message}")


@pytest.mark.parametrize(
    "url",
    [
        "hooks.example.org/s3cret",
        "ftp://hooks.example.org/s3cret",
        "https:///s3cret",
        "https://hooks.example.org:s3cret/",
        "https://[s3cret/",
    ],
)
def test_an_alert_url_that_names_no_web_server_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("BACKFILL_ALERT_URL", url)
    with pytest.raises(SettingsError, match="BACKFILL_ALERT_URL: must be a URL") as caught:
        read_settings()
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_good_alert_url_is_not_shown_by_what_else_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKFILL_ALERT_URL", "https://hooks.example.org/s3cret")
    monkeypatch.setenv("BACKFILL_BEGIN", "2015-01-01")
    with pytest.raises(SettingsError, match="begin 2015-01-01 must be before end") as caught:
        read_settings()
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_an_alert_url_is_a_secret_and_an_empty_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKFILL_ALERT_URL", "https://hooks.example.org/s3cret")
    assert "s3cret" not in repr(read_settings())
    monkeypatch.setenv("BACKFILL_ALERT_URL", "")
    assert read_settings().alert_url is None
