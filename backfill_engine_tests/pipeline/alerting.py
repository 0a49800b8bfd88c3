"""What runs leave in a Dagster home and a warehouse, made without Spark; and who tells of it."""

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterEvent,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
)

from backfill_engine.extras.alerts.alerting import Alerter, AlertMemory, AlertReport, Webhook
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.instance.dagster_internals import (
    BACKFILL_TAG,
    ROOT_RUN_ID_TAG,
    WILL_RETRY_TAG,
)
from backfill_engine.orchestration.instance.own_runs import OWN_STEP
from backfill_engine.orchestration.instance.recovered_runs import (
    RECOVERED_TAG,
    enter_materialization,
    enter_plan,
)
from backfill_engine.orchestration.runs.run_tags import (
    CHAIN_TAG,
    PAUSED,
    PAUSED_AT_TAG,
    PAUSED_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    WITHHELD_TAG,
)
from backfill_engine.proof.certificates import Certificate, CertifiedPartition, write_certificate
from backfill_engine.uris import join_uri
from backfill_engine_tests.pipeline.requesting import get_run, request
from backfill_engine_tests.pipeline.running import RAW, STAGING, list_days
from backfill_engine_tests.project import CATALOG
from backfill_engine_tests.receivers import Receiver, run_receiver

WHY = "partition_is_valid: rejects = 0.5 (at most 0.01)"


@dataclass
class Home:
    """A Dagster instance and a warehouse in which runs leave what they leave; and who tells.

    Attributes:
        instance: knows the runs.
        warehouse: has their certificates.
        receiver: what notices are posted to.
        memory: of the last look.
    """

    instance: DagsterInstance
    warehouse: Warehouse
    receiver: Receiver
    memory: AlertMemory = field(
        default_factory=lambda: AlertMemory(dt.datetime.now(tz=dt.UTC) - dt.timedelta(minutes=1))
    )

    def begin(
        self, run_id: str, *keys: str, days: list[str], state: str = "STARTED", **tags: str
    ) -> None:
        """A run that plans some days of tables and is at work, or in another state."""
        named = {
            {
                "backfill": BACKFILL_TAG,
                "chain": CHAIN_TAG,
                "root": ROOT_RUN_ID_TAG,
                "will_retry": WILL_RETRY_TAG,
                "recovered": RECOVERED_TAG,
            }[name]: value
            for name, value in tags.items()
        }
        ends = {RANGE_START_TAG: days[0], RANGE_END_TAG: days[-1]} if days else {}
        assets = frozenset(AssetKey.from_user_string(key) for key in keys)
        self.instance.add_run(
            DagsterRun(
                "__ASSET_JOB",
                run_id=run_id,
                status=DagsterRunStatus(state),
                asset_selection=assets or None,
                tags={**named, **ends, **OWN_STEP},
                root_run_id=tags.get("root"),
                parent_run_id=tags.get("root"),
            )
        )
        for asset_key in assets:
            for day in days:
                enter_plan(self.instance, run_id, asset_key, day)

    def publish(self, run_id: str, key: str, *days: str) -> None:
        """The run publishes days by the first commit to the table, and records it."""
        for day in days:
            event = AssetMaterialization(
                AssetKey.from_user_string(key), partition=day, metadata={"delta_version": 0}
            )
            enter_materialization(self.instance, run_id, event)

    def certify(self, run_id: str, key: str, statuses: Mapping[str, str]) -> None:
        """The run leaves a certificate of days, by status."""
        run = get_run(self.instance, run_id)
        owner = run.tags.get(BACKFILL_TAG) or run.tags.get(CHAIN_TAG)
        name = key.replace("/", ".")
        write_certificate(
            join_uri(self.warehouse.root, "certificates", owner or run_id, run_id, name),
            Certificate(
                run_id=run_id,
                backfill_id=owner,
                asset_key=key,
                table_uri="",
                code_version="",
                run_config={},
                input_versions={},
                partition_start=min(statuses),
                partition_end=max(statuses),
                started_at=dt.datetime.now(tz=dt.UTC).isoformat(),
                seconds=1,
                commits=[],
                partitions=[
                    CertifiedPartition(
                        partition=day,
                        status=status,
                        version=1 if status == "published" else None,
                        rows=1,
                        checksum="",
                        failures="" if status == "published" else WHY,
                    )
                    for day, status in statuses.items()
                ],
            ),
            page="",
        )

    def fail(self, run_id: str, why: str = "", *, withheld: str = "") -> None:
        """The run fails; by what it withheld of a table, or otherwise."""
        if withheld:
            self.instance.add_run_tags(run_id, {WITHHELD_TAG: withheld})
        run = get_run(self.instance, run_id)
        self.instance.report_run_failed(run, why or None)

    def pause(self, run_id: str, table: str) -> None:
        """The run ends between two chunks of a table."""
        self.instance.add_run_tags(run_id, {PAUSED_TAG: PAUSED, PAUSED_AT_TAG: table})
        self.fail(run_id, f"{table}: paused, 2 of 4 partitions left")

    def succeed(self, run_id: str) -> None:
        """The run succeeds."""
        event = DagsterEvent(DagsterEventType.RUN_SUCCESS.value, "__ASSET_JOB")
        self.instance.report_dagster_event(event, run_id)

    def start_backfill(
        self, *keys: str, days: list[str], published: int = 0, run_id: str = "first"
    ) -> str:
        """A backfill whose run over the first table is at work and has published some days."""
        backfill = request(self.instance, *keys, days=days)
        self.begin(run_id, keys[0], days=days, backfill=backfill)
        self.publish(run_id, keys[0], *days[:published])
        return backfill

    def complete(self, run_id: str, *keys: str, days: list[str], **tags: str) -> None:
        """A run that publishes all its days of tables, and succeeds."""
        self.begin(run_id, *keys, days=days, **tags)
        for key in keys:
            self.publish(run_id, key, *days)
        self.succeed(run_id)

    def withhold(self, run_id: str, *, first: int = 4, **tags: str) -> None:
        """A run over raw and staging of four days that withholds the second one of raw."""
        days = list_days(first, first + 3)
        self.begin(run_id, RAW, STAGING, days=days, **tags)
        self.publish(run_id, RAW, days[0], *days[2:])
        self.certify(run_id, RAW, {**dict.fromkeys(days, "published"), days[1]: "withheld"})
        self.fail(run_id, withheld=RAW)

    def post_notices(self, *, later: float = 60, timeout_seconds: float = 5) -> AlertReport:
        """One look, some seconds later than now."""
        alerter = Alerter(
            CATALOG,
            self.instance,
            self.warehouse,
            Webhook(self.receiver.url, timeout_seconds),
        )
        now = dt.datetime.now(tz=dt.UTC) + dt.timedelta(seconds=later)
        self.memory, report = alerter.post_notices(self.memory, now=now)
        self.memory = AlertMemory.from_json(self.memory.to_json(), now=now)
        return report

    @property
    def accepted(self) -> list[str]:
        """The chains of which the receiver accepted a notice."""
        return [notice["chain"] for notice in self.receiver.accepted]


@contextmanager
def open_home(root: Path) -> Iterator[Home]:
    """A new instance and a warehouse below a folder."""
    home = root / "home"
    home.mkdir(exist_ok=True)
    with DagsterInstance.local_temp(str(home)) as instance, run_receiver() as receiver:
        yield Home(instance, Warehouse(str(root / "warehouse")), receiver)
