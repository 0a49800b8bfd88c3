"""What surrounds each step: its claim, and how it fails: with a message, once, without a retry."""

import atexit
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dagster import (
    AssetCheckExecutionContext,
    AssetExecutionContext,
    Failure,
    MarkdownMetadataValue,
    OpExecutionContext,
)

from backfill_engine.damages import describe_damage, list_chain
from backfill_engine.errors import BackfillError
from backfill_engine.escaping import escape_hidden
from backfill_engine.orchestration.runs.claims import keep_claim
from backfill_engine.spark.connect import describe_lost_server
from backfill_engine.spark.sail import describe_lack_of_memory

_LINE_LENGTH = 300
_CAUSE = "Caused by: "
"""How a line of Java's trace begins."""

_last_words: list[str] = []


@contextmanager
def fail_with_message(
    context: AssetExecutionContext | AssetCheckExecutionContext | OpExecutionContext,
) -> Iterator[None]:
    """Claims the run for this process; turns an error that users can cure into a failed step.

    Others go on as they are, with their trace; where what the machine lacks is known, behind one
    line that says it.

    Raises:
        Failure: in place of a BackfillError, and before an error whose cause is known.
    """
    try:
        with keep_claim(context.instance, context.run.run_id):
            yield
    except BackfillError as error:
        context.log.error(str(error))
        raise build_failure(str(error)) from None
    except Failure:
        raise
    except Exception as error:
        line = describe_known_cause(error)
        if line is None:
            _say_last(f"{type(error).__name__}: {describe_in_a_line(error)}")
            raise
        context.log.error(line)
        raise build_failure(line) from error


def build_failure(
    message: str, metadata: Mapping[str, MarkdownMetadataValue] | None = None
) -> Failure:
    """Builds what a step fails with; to whoever waits at a shell, it is also said last."""
    _say_last(message)
    # The same input gives the same error: a retry would only hide it for longer.
    return Failure(description=message, metadata=metadata, allow_retries=False)


def describe_known_cause(error: BaseException) -> str | None:
    """Describes in one line what the machine lacks, and the cure; None if it is something else.

    Or what it lost: the server that Spark runs in, and Sail's memory.

    Looks at the error and at what it came from, and at what Java says of its own in their texts.
    """
    known = (
        describe(chained)
        for chained in list_chain(error)
        for describe in (describe_lost_server, describe_lack_of_memory)
    )
    return next(filter(None, known), None) or describe_damage(error)


def describe_in_a_line(error: BaseException) -> str:
    """Says in one line what an error is; where it only announces that, with Java's last cause."""
    lines = (line.strip() for line in str(error).splitlines())
    line = next(filter(None, lines), type(error).__name__)
    if not line.endswith(":"):
        return line
    trace = str(error.__context__).splitlines()  # PySpark's errors have Py4J's as their context.
    causes = [line.removeprefix(_CAUSE) for line in trace if line.startswith(_CAUSE)]
    return " ".join([line, *(cause[:_LINE_LENGTH] for cause in causes[-1:])])


def _say_last(message: str) -> None:
    """Prints the message when the process ends, behind all that Dagster prints of a failed run.

    Only where a person called Dagster: what the daemon starts has a log of its own.
    """
    if not _is_called_by_a_person(sys.argv):
        return
    if not _last_words:
        atexit.register(lambda: print(f"\nerror: {_last_words[-1]}", file=sys.stderr))  # noqa: T201
    _last_words.append(escape_hidden(message))


def _is_called_by_a_person(arguments: list[str]) -> bool:
    """Tells `dagster asset materialize` from the processes that Dagster starts itself."""
    program = Path(arguments[0])
    is_dagster = program.stem in ("dagster", "dg") or program.match("dagster/__main__.py")
    return is_dagster and arguments[1:2] != ["api"]
