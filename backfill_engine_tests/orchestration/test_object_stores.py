"""Three days over all layers with landing zone and warehouse on S3, as on a disk, and what follows.

Each command is a process of its own, which finds the store by the environment alone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import obstore
import pytest
from dagster import DagsterInstance, SkipReason, build_sensor_context
from obstore.store import from_url

from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.runs.run_tags import RANGE_END_TAG, RANGE_START_TAG
from backfill_engine_tests.commands import Project, confirm, read_checksums
from backfill_engine_tests.landing_zones import copy_days
from backfill_engine_tests.object_store import BUCKET, ObjectStore
from backfill_engine_tests.project import (
    defs,
    process_due_partitions,
    recover_dead_runs,
)

pytestmark = pytest.mark.slow

LANDING, WAREHOUSE = f"s3://{BUCKET}/landing", f"s3a://{BUCKET}/warehouse"
FIRST, LAST, NEXT = "2013-01-01", "2013-01-03", "2013-01-04"
RANGE = f"{FIRST}...{LAST}"


@dataclass(frozen=True)
class Story:
    """What was done on both kinds of storage.

    Attributes:
        disk: the project on a disk.
        s3: the same on S3.
        store: the store.
        requests: to the store, by what was done.
    """

    disk: Project
    s3: Project
    store: ObjectStore
    requests: dict[str, dict[str, int]] = field(default_factory=dict)

    def run(self, *arguments: str) -> str:
        """Runs a command on S3, which must succeed, and returns its output."""
        self.store.take_requests()
        run = confirm(self.s3.run("backfill-assets", *arguments))
        self.requests[arguments[0]] = self.store.take_requests()
        return run.stdout


@pytest.fixture(scope="module")
def story(
    sample_landing: Path,
    running_object_store: ObjectStore,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Story]:
    """The same commands publish three days on a disk and on S3."""
    root = tmp_path_factory.mktemp("object_store")
    landing = copy_days(sample_landing, root / "landing", first=FIRST, count=4)
    settings = running_object_store.environment | {
        "BACKFILL_LANDING": LANDING,
        "BACKFILL_WAREHOUSE": WAREHOUSE,
    }
    with pytest.MonkeyPatch.context() as environment:
        for name, value in settings.items():
            environment.setenv(name, value)
        upload(landing)
        story = Story(
            Project(root / "disk", landing),
            Project(root / "s3", landing, tuple(settings.items())),
            running_object_store,
        )
        for project in (story.disk, story.s3):
            for keys in (("raw/flights",), ("staging/flights", "features/carrier_delays")):
                story.store.take_requests()
                confirm(project.materialize(*keys, partitions=RANGE))
                story.requests[" ".join(keys)] = story.store.take_requests()
        environment.setenv("DAGSTER_HOME", story.s3.environment["DAGSTER_HOME"])
        yield story


def upload(landing: Path) -> None:
    store = from_url(LANDING)
    for file in landing.rglob("*"):
        if file.is_file():
            obstore.put(store, file.relative_to(landing).as_posix(), file.read_bytes())


def test_all_partitions_hold_what_they_hold_on_a_disk(story: Story) -> None:
    found = read_checksums(Warehouse(WAREHOUSE))
    assert len(found) == 9
    assert found == story.disk.read_checksums()


def test_a_run_makes_some_hundreds_of_requests(story: Story) -> None:
    for keys, most in (("raw/flights", 400), ("staging/flights features/carrier_delays", 700)):
        assert 0 < sum(story.requests[keys].values()) < most


def test_status_and_missing_read_the_store(story: Story) -> None:
    listed = json.loads(story.run("status", "--from", FIRST, "--to", NEXT, "--json"))
    by_day = [status["status"] for status in listed if status["table"] == "raw/flights"]
    assert by_day == ["materialized", "materialized", "materialized", "missing"]
    missing = story.s3.run("backfill-assets", "status", "--missing", "--from", FIRST, "--to", NEXT)
    assert f"raw/flights\t{NEXT}" in missing.stdout


def test_certificate_holds_and_source_agrees(story: Story) -> None:
    (publish, _) = json.loads(story.run("history", "raw/flights", "--json"))
    verified = story.run("proof", "certificate", publish["run_id"], "--verify")
    assert "lines hold" in verified
    story.run("proof", "reconcile", "--from", FIRST, "--to", LAST)


def test_sensors_read_the_store(story: Story) -> None:
    with DagsterInstance.get() as instance:
        context = build_sensor_context(instance, repository_def=defs.get_repository_def())
        requested = process_due_partitions.evaluate_tick(context).run_requests or []
        ranges = {
            (request.tags[RANGE_START_TAG], request.tags[RANGE_END_TAG])
            for request in requested
            if request.asset_selection and request.asset_selection[0].path == ["raw", "flights"]
        }
        # Those before it are published, and what they consumed is still there as it was.
        assert ranges == {(NEXT, NEXT)}
        recovered = recover_dead_runs(build_sensor_context(instance))
        assert isinstance(recovered, SkipReason)
        assert recovered.skip_message == "no run is dead, and no table is unknown here"


@pytest.mark.by_hand
def test_rollback_takes_a_day_back(story: Story) -> None:
    before = read_checksums(Warehouse(WAREHOUSE))
    confirm(story.s3.materialize("staging/flights", partitions=f"{LAST}...{LAST}"))
    restored = story.run(
        *("rollback", "staging/flights", "--from", LAST, "--to", LAST, "--to-version", "1"), "--yes"
    )
    assert "hold again what they held at version 1, as version 3" in restored
    assert read_checksums(Warehouse(WAREHOUSE)) == before


def test_leases_are_given_back(story: Story) -> None:
    warehouse = from_url(WAREHOUSE)
    paths = [item["path"] for batch in obstore.list(warehouse, "_locks") for item in batch]
    assert len(paths) == 3
    for path in paths:
        assert json.loads(bytes(obstore.get(warehouse, path).bytes()))["holder"] is None


def test_wrong_environment_is_one_line(story: Story) -> None:
    settings = (*story.s3.settings, ("AWS_ALLOW_HTTP", ""))
    broken = Project(story.s3.root, story.s3.landing, settings)
    status = broken.run("backfill-assets", "status", "--from", FIRST, "--to", LAST)
    assert status.returncode != 0
    (line,) = status.stderr.splitlines()
    assert line.startswith("error: unusable environment: AWS_ALLOW_HTTP: must be true")
