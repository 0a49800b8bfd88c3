"""What a run is and was told: the one description that commits and certificates are made from."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backfill_engine.publishing.as_rehearsed import Shown
from backfill_engine.publishing.pacing import IN_ONE_GO, Pace
from backfill_engine.publishing.write_modes.options import OVERWRITE, WriteOptions
from backfill_engine.rules.verdicts import Acceptance


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run's work on one table; code and inputs are its recipe's and its pinned inputs'.

    Attributes:
        run_id: the Dagster run.
        started_at: when the step began, UTC.
        backfill_id: the backfill that it is part of; None if none.
        chain_id: what it has in common with its retries and the runs that continue it; "" if
            nothing.
        config: its configuration, as JSON values.
        options: how it writes.
        acceptances: failed checks that a person lets pass.
        saves_watermark: whether it moves the production watermark.
        pace: how it goes through its partitions.
        overrides: by partition key, of protected partitions that a person lets it publish: why.
        new_code: why it may go by other code or options than the runs of its backfill before it;
            empty where it goes by the same.
        rehearsal: that it applies; empty if none.
        rehearsed: by partition key, what that has shown of each; no other is published then.
    """

    run_id: str
    started_at: dt.datetime
    backfill_id: str | None = None
    chain_id: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    options: WriteOptions = OVERWRITE
    acceptances: tuple[Acceptance, ...] = ()
    saves_watermark: bool = False
    pace: Pace = IN_ONE_GO
    overrides: Mapping[str, str] = field(default_factory=dict)
    new_code: str = ""
    rehearsal: str = ""
    rehearsed: Mapping[str, Shown] = field(default_factory=dict)
