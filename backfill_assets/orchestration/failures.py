"""How a step fails: with the message of the error, once, and without a retry."""

from collections.abc import Iterator
from contextlib import contextmanager

from dagster import AssetExecutionContext, Failure, OpExecutionContext

from backfill_assets.errors import BackfillError


@contextmanager
def fail_with_message(context: AssetExecutionContext | OpExecutionContext) -> Iterator[None]:
    """Turns an error that is the user's to cure into a failed step that says so.

    Raises:
        Failure: in place of a BackfillError.
    """
    try:
        yield
    except BackfillError as error:
        context.log.error(str(error))
        # The same input gives the same error: a retry would only hide it for longer.
        raise Failure(description=str(error), allow_retries=False) from None
