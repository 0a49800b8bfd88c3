"""Who asked for a commit, and why: read from what it carries, and without secrets."""

import json
from typing import Any

import pytest

from backfill_engine.lake.commits import CommitRecord
from backfill_engine.lake.origins import Origin, hide_secrets
from backfill_engine_tests.lake.test_commits import RECORD

ORIGIN = Origin("replay", by="anna", reason="wrong numbers", command="backfill-assets run --yes")


def test_it_is_read_as_it_was_described() -> None:
    assert Origin.read(ORIGIN.describe()) == ORIGIN
    assert Origin.read(Origin(by="anna").describe()) == Origin(by="anna")
    assert Origin().describe() == {}


def test_a_commit_from_before_says_nothing_of_it() -> None:
    older = CommitRecord.from_json(RECORD.to_json())
    assert older is not None
    assert Origin.read(older.features) == Origin()


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (None, Origin()),
        ("anna", Origin()),
        ({"by": 7, "added_later": "x"}, Origin(by="7")),
    ],
)
def test_what_others_wrote_there_is_no_error(described: Any, expected: Origin) -> None:
    features = json.loads(json.dumps({"origin": described}))
    assert Origin.read(features) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see s3://lake/raw/flights, 5 % of dep_delay=0", None),
        ("mailto anna@example.org of a@b", None),
        ("s3://lake/run@2024/x and abfss://raw@lake.example/flights", None),
        ("https://secret@example.org/api", "https://example.org/api"),
        ("sc://h/;token=ab'cd;password={a;b}", "sc://h/;token=…;password=…"),
        (
            "postgresql://ann:p@ss:w0rd/#?@db:5432/air?sslpassword=hush&x=1 is mended",
            "postgresql://db:5432/air?sslpassword=…&x=… is mended",
        ),
        (
            "--spark-remote 'sc://spark:15002/;token=hush'",
            "--spark-remote 'sc://spark:15002/;token=…",
        ),
    ],
)
def test_urls_keep_their_place_and_lose_their_secrets(text: str, expected: str | None) -> None:
    assert hide_secrets(text) == (expected or text)
    assert hide_secrets(hide_secrets(text)) == hide_secrets(text)
    assert Origin(reason=text).known == {"reason": expected or text}
