"""What a run may be told: each option once, with its name, its type and its help.

Of these classes the configuration in Dagster's Launchpad is made, the tags of runs and backfills,
the options of `plan`, `launch` and `run`, and the commands that these print. Without Dagster, as
the commands are known before that is imported. What an option is refused with is in
`publishing/write_modes` and `publishing/pacing.py`.
"""

from pydantic import BaseModel, ConfigDict, Field

from backfill_engine.settings import EngineName


class RowOptions(BaseModel):
    """Options that decide which rows an asset holds afterwards; None is as the table has it."""

    model_config = ConfigDict(frozen=True, title="Which rows")

    write_mode: str | None = Field(
        default=None,
        description="overwrite, merge or append_once; else as the table has it: "
        "docs/write-modes.md.",
    )
    delete_missing: bool | None = Field(
        default=None, description="Of a merge: rows that the source lost go."
    )
    filter: str | None = Field(
        default=None, description="Of a merge: only rows with this SQL true."
    )
    batch: str | None = Field(
        default=None, description="Of an append: the batch's name; else the inputs are the batch."
    )


class PaceOptions(BaseModel):
    """Options that decide how a run goes through its range."""

    model_config = ConfigDict(frozen=True, title="How it goes")

    chunk: str | None = Field(
        default=None,
        description="Commit chunk after chunk, as months=1. Years, months, weeks, days, hours or "
        "minutes with a number; step=100000 of integers; files=100 that landed. "
        "What is published from the same inputs by the same code is left as it is.",
    )
    restart: bool | None = Field(
        default=None,
        description="Compute also chunks that stand; published from the same inputs and code.",
    )
    keep_going: bool | None = Field(
        default=None, description="Go on after a chunk that ended in error."
    )
    window: str | None = Field(
        default=None, description="Begin chunks only then, as 22:00-06:00; UTC."
    )


class RunOptions(PaceOptions, RowOptions):
    """All options of a run; None where it is told nothing."""

    model_config = ConfigDict(title="What else the run is told")

    save_watermark: bool | None = Field(
        default=None, description="Move the watermark, as incremental runs do."
    )
    override_protection: str | None = Field(
        default=None,
        description="Why protected partitions are published, too; it is kept in the "
        "commit and in the event; docs/protection.md.",
    )


class Launch(RunOptions):
    """What the runs of a plan are told: their options, and what concerns their backfill.

    Only a field with a description is an option of commands.

    Attributes:
        priority: of its runs in the queue; None for that of what names none.
        max_parallel: runs of it that are at work at once; None for as many as there are places.
        rehearsal: of which just what was shown is published; empty for what is computed.
        once: the historical load that is taken in; empty if none is.
        command: that asks for them; empty if none does.
        operation: what kind of runs they are, in a word; empty to be told by the plan.
    """

    reason: str = Field(default="", description="Why; a tag of the runs.")
    allow_new_code: str = Field(default="", description="Why a deploy is not to stop its runs.")
    spark_remote: str | None = Field(
        default=None,
        description="Spark Connect, as sc://host:15002; in place of SPARK_REMOTE.",
    )
    engine: EngineName | None = Field(
        default=None, description="spark or sail; in place of BACKFILL_ENGINE."
    )
    priority: int | None = None
    max_parallel: int | None = None
    rehearsal: str = ""
    once: str = ""
    command: str = ""
    operation: str = ""
