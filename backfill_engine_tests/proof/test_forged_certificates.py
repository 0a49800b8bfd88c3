"""Whatever is edited in a certificate, cut off or taken away, `--verify` finds it.

One story, told once: a backfill of raw in two chunks, with a withheld day and an accepted one, and
of staging after it. Each test edits a copy of what lies beside the tables.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from typer.testing import CliRunner

from backfill_engine.cli import app
from backfill_engine.lake.table_log import read_log
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.runs.run_tags import LAUNCHED_BY_TAG, REASON_TAG
from backfill_engine.proof.certificates import Certificate
from backfill_engine.proof.pages import VerifiedLine
from backfill_engine.proof.verification import verify_run
from backfill_engine_tests.pipeline.landing_zone import delay
from backfill_engine_tests.pipeline.running import (
    RAW,
    STAGING,
    Pipeline,
    copy_pipeline,
    list_days,
)
from backfill_engine_tests.project import CATALOG

BACKFILL = "abcdefgh"
FIRST, BAD, ACCEPTED, LAST = list_days(3, 6)

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Story:
    """A warehouse with the certificates of one backfill, and its run of raw."""

    root: Path
    run_id: str

    @property
    def warehouse(self) -> Warehouse:
        """With the real tables."""
        return Warehouse(str(self.root))

    def find(self, key: str) -> Path:
        """The document of a table."""
        name = f"{key.replace('/', '.')}.json"
        (path,) = (self.root / "certificates" / BACKFILL).glob(f"*/{name}")
        return path

    def edit(self, change: Callable[[Document], object]) -> None:
        """Changes the certificate of raw, and seals it anew: only the log tells then."""
        path = self.find(RAW)
        document = json.loads(path.read_text())
        before = json.dumps(document)
        change(document)
        assert json.dumps(document) != before
        with suppress(ValueError):  # what is no certificate any more
            path.write_text(Certificate.from_json(json.dumps(document)).to_json() + "\n")

    def verify(self, wanted: str = BACKFILL) -> list[VerifiedLine]:
        """All lines, as `proof certificate --verify` prints them."""
        logs = [read_log(self.warehouse, table) for table in CATALOG.tables]
        return [line for lines in verify_run(logs, wanted).values() for line in lines]

    def find_broken(self) -> list[VerifiedLine]:
        """The lines that don't hold."""
        return [line for line in self.verify() if line.holds is False]


@pytest.fixture(scope="module")
def published_run(
    published_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Pipeline, str]]:
    root = tmp_path_factory.mktemp("forged")
    with copy_pipeline(published_root, root) as pipeline:
        pipeline.zone.change(FIRST, delay)
        for day in (BAD, ACCEPTED):
            pipeline.zone.add_lines(day, *["{"] * 5)
        accept = {"check": "partition_is_valid", "reason": "known", "partitions": [ACCEPTED]}
        tags = {"dagster/backfill": BACKFILL, LAUNCHED_BY_TAG: "anna", REASON_TAG: "replayed"}
        raw = pipeline.run(
            RAW, first=FIRST, last=LAST, chunk_partitions=2, accept=[accept], tags=tags
        )
        assert "withheld 1 of 4 partitions" in raw.message
        staging = pipeline.run(STAGING, first=LAST, last=LAST, tags=tags)
        assert staging.success, staging.message
        yield pipeline, raw.id


@pytest.fixture
def story(published_run: tuple[Pipeline, str], tmp_path: Path) -> Story:
    """A copy of the documents, beside the tables themselves."""
    pipeline, run_id = published_run
    source = Path(pipeline.warehouse.root)
    for layer in ("raw", "staging"):
        (tmp_path / layer).symlink_to(source / layer)
    shutil.copytree(source / "certificates", tmp_path / "certificates")
    return Story(tmp_path, run_id)


def row(document: Document, day: str) -> Document:
    (found,) = (row for row in document["partitions"] if row["partition"] == day)
    return found


def without(document: Document, day: str) -> None:
    document["partitions"] = [row for row in document["partitions"] if row["partition"] != day]


def forget_chunk(document: Document) -> None:
    """As if the second chunk had never been."""
    last = document["commits"].pop()["version"]
    document["partitions"] = [row for row in document["partitions"] if row["stated_in"] != last]
    document["partition_end"] = document["partitions"][-1]["partition"]


def call_published(document: Document) -> None:
    row(document, BAD).update(status="published", version=row(document, FIRST)["version"])


VALID = "partition_is_valid"
OTHER, MIDNIGHT = "00000000000000ff", "2013-02-01T00:00:00.000+00:00"
CHANGES: dict[str, tuple[str, Document]] = {
    "code version": ("", {"code_version": "f" * 16}),
    "a row filter": ("", {"row_filter": "origin = 'JFK'"}),
    "the mode": ("", {"write_mode": "merge"}),
    "the start": ("", {"started_at": MIDNIGHT}),
    "the place of the table": ("", {"table_uri": "/elsewhere/raw/flights"}),
    "the backfill": ("", {"backfill_id": None}),
    "the run": ("", {"run_id": "another-run"}),
    "the table": ("", {"asset_key": "raw/weather"}),
    "the range": ("", {"partition_end": "2013-01-07"}),
    "untouched files": ("", {"untouched_files": 1}),
    "untouched partitions": ("", {"untouched_partitions": 99}),
    "what else was touched": ("", {"touched_outside": {"2013-01-09": [3]}}),
    "inputs": ("", {"input_versions": {"landing/flights": "4 files 00ff"}}),
    "inputs of a commit": ("commits", {"input_versions": {"landing/flights": "2 files 00ff"}}),
    "time of a commit": ("commits", {"committed_at": MIDNIGHT}),
    "rows that a commit replaced": ("commits", {"predicate": "true"}),
    "a reason": (ACCEPTED, {"accepted": {VALID: "agreed"}}),
    "an acceptance": (ACCEPTED, {"accepted": {}}),
    "a verdict": (FIRST, {"checks": {"partition_is_stable": "failed"}}),
    "a verdict of a withheld day": (BAD, {"checks": {VALID: "passed"}}),
    "what was read back": (LAST, {"checks": {"partition_is_readable": "failed"}}),
    "failures": (BAD, {"failures": ""}),
    "a row that nothing states": (BAD, {"stated_in": None}),
    "a published day": (LAST, {"status": "withheld", "version": None}),
    "rows": (FIRST, {"rows": 121}),
    "checksum": (BAD, {"checksum": OTHER}),
    "rows before": (FIRST, {"rows_before": 121}),
    "checksum before": (BAD, {"checksum_before": OTHER}),
    "nothing before": (LAST, {"rows_before": None, "checksum_before": None}),
    "a version that is none": (LAST, {"version": 99}),
    "a partition that is none": (BAD, {"partition": "yesterday"}),
}
"""What is edited of the run, of its first commit, or of a day; of what has names, entries."""


def change(document: Document, place: str, changes: Document) -> None:
    """Makes one of the changes."""
    if place:
        document = document["commits"][0] if place == "commits" else row(document, place)
    for name, value in changes.items():
        is_part = isinstance(document[name], dict) and value
        document[name] = {**document[name], **value} if is_part else value


EDITS: dict[str, Callable[[Document], object]] = {
    **{edited: partial(change, place=at, changes=to) for edited, (at, to) in CHANGES.items()},
    "another person": lambda document: document["features"]["origin"].update(by="eve"),
    "why": lambda document: document["features"]["origin"].pop("reason"),
    "run configuration": lambda document: document["run_config"].update(ops={}),
    "a check that is left out": lambda document: row(document, LAST)["checks"].pop(VALID),
    "a withheld row": lambda document: without(document, BAD),
    "a published row": lambda document: without(document, LAST),
    "a row too many": lambda document: document["partitions"].append(
        {**row(document, BAD), "partition": "2013-01-07"}
    ),
    "a chunk": forget_chunk,
    "a withheld day": call_published,
    "version": lambda document: row(document, LAST).update(version=row(document, FIRST)["version"]),
}


def test_every_line_holds_of_what_nobody_edited(story: Story) -> None:
    lines = story.verify()
    assert [line for line in lines if line.holds is not True] == []
    stated = [line.statement for line in lines if "vouches" in line.statement]
    assert len(stated) == 3  # two chunks of raw, one commit of staging


@pytest.mark.parametrize("edited", EDITS)
def test_an_edit_is_a_line_that_does_not_hold(story: Story, edited: str) -> None:
    story.edit(EDITS[edited])
    assert story.find_broken()


@pytest.mark.parametrize(
    ("edited", "found"),
    [
        ("code version", "the commit's hash is of something else: code, inputs, "),
        ("a reason", "the commit's hash is of something else: code, inputs, "),
        ("a withheld row", "the commit's hash is of something else: code, inputs, "),
        ("a chunk", "was committed by it too"),
        ("rows before", f"{FIRST} held 120 rows with checksum "),
    ],
)
def test_it_is_named_as_far_as_the_log_tells(story: Story, edited: str, found: str) -> None:
    story.edit(EDITS[edited])
    assert [line for line in story.find_broken() if found in line.found]


@pytest.mark.parametrize("wanted", ["backfill", "run"])
def test_a_document_that_is_gone_is_missed(story: Story, wanted: str) -> None:
    story.find(RAW).unlink()
    lines = story.verify(BACKFILL if wanted == "backfill" else story.run_id[:8])
    broken = [line for line in lines if not line.holds]
    assert [line.found for line in broken] == ["no certificate tells of it"] * 2
    assert broken[0].statement.startswith("raw/flights version ")
    assert story.run_id in broken[0].statement


@pytest.mark.parametrize("left", [0, 1, 400])
def test_a_document_that_is_cut_off_is_one_line_and_the_others_are_verified(
    story: Story, left: int
) -> None:
    path = story.find(RAW)
    path.write_bytes(path.read_bytes()[:left])
    (broken,) = (line for line in story.verify() if not line.holds)
    assert str(path) in broken.found
    assert "restore it from a copy" in broken.found
    assert "\n" not in broken.found
    assert any("vouches" in line.statement for line in story.verify())


def test_the_command_says_so_and_fails(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKFILL_WAREHOUSE", str(story.root))
    whole = CliRunner().invoke(app, ["proof", "certificate", BACKFILL, "--verify"])
    assert whole.exit_code == 0, whole.output
    assert "DOES NOT HOLD" not in whole.output
    path = story.find(RAW)
    sealed = path.read_text()
    path.write_text(sealed.replace('"seconds":', '"seconds":9'))
    later = CliRunner().invoke(app, ["proof", "certificate", BACKFILL, "--verify"])
    assert later.exit_code == 1
    assert f"by its seal ({path} was edited" in " ".join(later.output.split())
    path.write_text(sealed)
    story.edit(EDITS["a verdict"])
    edited = CliRunner().invoke(app, ["proof", "certificate", BACKFILL, "--verify", "--json"])
    assert edited.exit_code == 1
    assert [line["holds"] for line in json.loads(edited.output)].count(False) == 1
