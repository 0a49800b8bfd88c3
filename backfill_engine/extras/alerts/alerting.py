"""Tells of chains of runs that came to their end with something held back: each chain once.

The web server that gets the notices may be slow, down or wrong: that is never an error of the run.
Its address is a secret, as such addresses often hold a token: only its host is ever named.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
from dagster import (
    DagsterInstance,
    RunRecord,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
)
from pydantic import TypeAdapter, ValidationError

from backfill_engine.catalog import Catalog
from backfill_engine.extras.alerts.notices import compose_notice
from backfill_engine.lake.warehouse import Warehouse
from backfill_engine.orchestration.backfills.outcomes import find_chain_result
from backfill_engine.orchestration.instance.dagster_internals import (
    InstigatorStatus,
)
from backfill_engine.orchestration.runs.chains import (
    Chain,
    find_end,
    find_failed_chains,
    find_why_unfinished,
    read_chain,
)
from backfill_engine.sensors import DUE_PARTITIONS, build_sensor

_MOST_NOTICES = 20
_MOST_SECONDS = 20.0  # Dagster ends a tick after 60 s, and forgets what it report
_MOST_AGE = timedelta(days=1)
_OVERLAP = timedelta(minutes=10)  # clocks of other hosts


@dataclass(frozen=True)
class AlertMemory:
    """What is settled.

    Attributes:
        since: UTC; of failures that ended before, all is settled.
        settled: the chains of those after it that are, by id, each with the run of it that failed
            last: should another fail after all, the chain is told of anew.
    """

    since: datetime
    settled: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Writes it as a cursor."""
        return json.dumps({"since": self.since.isoformat(), "settled": dict(self.settled)})

    @classmethod
    def from_json(cls, text: str | None, *, now: datetime) -> "AlertMemory":
        """Reads a cursor; without one, or of one that can't be read, all up to now is settled."""
        try:
            return _MEMORIES.validate_json(text or "")
        except ValidationError:
            return cls(now)


_MEMORIES = TypeAdapter(AlertMemory)


@dataclass
class AlertReport:
    """What a look came to; filled while it goes on.

    Attributes:
        accepted: ids of the notices that the receiver has now.
        refused: how many it has not, by the reason.
        waiting: chains that are not at their end, and why, a line each.
        problems: what else a person should see in the log of the tick.
        is_reachable: whether the receiver answers at all.
    """

    accepted: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    waiting: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_reachable: bool = True

    @property
    def posted(self) -> int:
        """How many notices were posted, whatever became of them."""
        return len(self.accepted) + self.refused.total()

    def describe(self) -> str:
        """Describes it in one line."""
        parts = [f"notices accepted: {len(self.accepted)}"] if self.accepted else []
        return "; ".join((*parts, *self.describe_refused(), *self.waiting)) or "nothing to tell"

    def describe_refused(self) -> list[str]:
        """Describes what the receiver doesn't have, a line for each reason."""
        return [
            f"{why}; notices kept, to be posted again for up to a day: {count}"
            for why, count in self.refused.items()
        ]


_BUSY = frozenset({429, 503})


class Answer(NamedTuple):
    """What became of one notice.

    Attributes:
        refusal: why the receiver doesn't have it, in words that name no more of the address than
            its host; empty if it does.
        is_reachable: whether it makes sense to try another notice at once.
    """

    refusal: str
    is_reachable: bool


@dataclass(frozen=True)
class Webhook:
    """Where notices are posted.

    Attributes:
        url: a secret.
        timeout_seconds: most seconds to wait for a connection, and for an answer.
    """

    url: str
    timeout_seconds: float = 5.0

    def __repr__(self) -> str:
        """Names the host alone."""
        return f"Webhook({self.host})"

    @property
    def host(self) -> str:
        """All of the address that may be logged."""
        return urlsplit(self.url).hostname or "the receiver"

    def post(self, notice: Mapping[str, Any]) -> Answer:
        """Posts one notice as JSON. Only an answer of 200 to 299 is one that accepts it."""
        try:
            with _keep_quiet("urllib3.connection", "urllib3.connectionpool"):
                status = self._post(notice)
        except requests.Timeout:
            refusal = f"{self.host} did not answer within {self.timeout_seconds:g} s"
            return Answer(refusal, is_reachable=False)
        except Exception as error:  # their texts, of whatever class, hold the whole address
            refusal = f"{self.host} can't be reached ({type(error).__name__})"
            return Answer(refusal, is_reachable=False)
        refusal = "" if 200 <= status < 300 else f"{self.host} answered {status}"
        return Answer(refusal, status not in _BUSY)

    def _post(self, notice: Mapping[str, Any]) -> int:
        # Where a receiver sends us on to is none that anybody has set; its page is not read.
        with requests.post(
            self.url,
            data=json.dumps(notice).encode(),
            headers={"Content-Type": "application/json", "User-Agent": "backfill-assets"},
            timeout=self.timeout_seconds,
            allow_redirects=False,
            stream=True,
        ) as response:
            return response.status_code


@contextmanager
def _keep_quiet(*names: str) -> Iterator[None]:
    """Keeps loggers quiet, which name the whole address where they are asked for details."""
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


@dataclass(frozen=True)
class Alerter:
    """Looks for chains to tell of.

    Attributes:
        instance: knows the runs.
        catalog: of the code location.
        warehouse: beside whose tables the certificates are.
        webhook: takes the notices.
        retries_changed: as in `compose_notice`.
    """

    catalog: Catalog
    instance: DagsterInstance
    warehouse: Warehouse
    webhook: Webhook
    retries_changed: bool = False

    def post_notices(
        self, memory: AlertMemory, *, now: datetime
    ) -> "tuple[AlertMemory, AlertReport]":
        """Tells of what is at its end and not settled, oldest first, for some seconds at most.

        Args:
            memory: of the look before.
            now: UTC.

        Returns:
            The memory for the next look, and what this one came to.
        """
        report, deadline = AlertReport(), time.monotonic() + _MOST_SECONDS
        found = find_failed_chains(self.instance, memory.since)
        settled: dict[str, str] = {}
        since = now - _OVERLAP
        for chain_id, failed in found.items():
            last_failed = failed[-1].dagster_run.run_id
            is_settled = memory.settled.get(chain_id) == last_failed
            may_look = report.posted < _MOST_NOTICES and time.monotonic() < deadline
            if not is_settled and report.is_reachable and may_look:
                is_settled = self._try_to_settle(chain_id, failed, now, report)
            if is_settled:
                settled[chain_id] = last_failed
            else:
                since = min(since, find_end(failed[0]))
        return AlertMemory(max(memory.since, since), settled), report

    def _try_to_settle(
        self, chain_id: str, failed: Sequence[RunRecord], now: datetime, report: AlertReport
    ) -> bool:
        """Settles one chain if that can be; what goes wrong with it holds up no other."""
        is_old = now - find_end(failed[-1]) > _MOST_AGE
        try:
            return self._settle(read_chain(self.instance, chain_id, failed[-1]), now, report)
        except Exception as error:
            end = "it is given up" if is_old else "it is looked at again"
            report.problems.append(
                f"chain {chain_id} can't be told of ({type(error).__name__}: {error}): {end}"
            )
            return is_old

    def _settle(self, chain: Chain, now: datetime, report: AlertReport) -> bool:
        why = find_why_unfinished(self.instance, chain, now=now)
        if why:
            report.waiting.append(f"{chain.id}: {why}")
            return False
        result = find_chain_result(self.catalog, self.instance, self.warehouse, chain)
        if result.is_good:
            return True
        if now - chain.ended_at > _MOST_AGE:
            report.problems.append(
                f"chain {chain.id} ended {chain.ended_at:%Y-%m-%d %H:%M} UTC, over a day ago, and "
                "could not be told of: it is given up; its runs are in the UI"
            )
            return True
        notice = compose_notice(self.catalog, chain, result, retries_changed=self.retries_changed)
        refusal, report.is_reachable = self.webhook.post(notice)
        if refusal:
            report.refused[refusal] += 1
        else:
            report.accepted.append(notice["id"])
        return not refusal


def build_report_withheld(catalog: Catalog, *, on: bool) -> SensorDefinition:
    """Builds the sensor `report_withheld`, which is on by default or off."""

    def report_withheld(context: SensorEvaluationContext) -> SkipReason:
        """Posts a notice to BACKFILL_ALERT_URL of what came to its end with something held back.

        One for each backfill, or chain of runs: which partitions were withheld or failed, why, what
        goes on by itself, and the command that helps: docs/alerts.md. Does nothing where the
        variable is not set. Fails never: the cursor goes over a chain only once its notice was
        accepted.
        """
        try:
            settings = catalog.settings
            if settings.alert_url is None:
                context.update_cursor("")  # who sets it later wants to hear of what comes then
                return SkipReason("BACKFILL_ALERT_URL is not set: nobody wants notices")
            report = _post_notices(catalog, context, settings.alert_url.get_secret_value())
        except Exception as error:
            context.log.error(f"no notices were posted: {type(error).__name__}: {error}")
            return SkipReason(f"no notices were posted: {type(error).__name__}")
        for problem in (*report.problems, *report.describe_refused()):
            context.log.warning(problem)
        return SkipReason(report.describe())

    return build_sensor(catalog, report_withheld, on=on, seconds=30)


def _post_notices(catalog: Catalog, context: SensorEvaluationContext, url: str) -> AlertReport:
    instance, now = context.instance, datetime.now(tz=UTC)
    alerter = Alerter(
        catalog,
        instance,
        catalog.warehouse,
        Webhook(url),
        retries_changed=_is_on(instance, catalog.prefix(DUE_PARTITIONS)),
    )
    memory, report = alerter.post_notices(AlertMemory.from_json(context.cursor, now=now), now=now)
    context.update_cursor(memory.to_json())
    return report


def _is_on(instance: DagsterInstance, name: str) -> bool:
    """Tells whether a sensor that is off by default was turned on."""
    return any(
        state.instigator_name == name and state.status is InstigatorStatus.RUNNING
        for state in instance.all_instigator_state()
    )
