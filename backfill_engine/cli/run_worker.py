"""The process in which `backfill-assets run` lets its runs run: one request a line of its input.

Apart from the shell's, so that what Spark and Dagster print doesn't get into the display, and its
end is that of one run. One process for all, so that they share a Spark session. What becomes of a
run the Dagster instance says. It ends with its input.
"""

import sys
import traceback

from dagster import AssetKey, DagsterInstance, execute_job

from backfill_engine.cli.location import choose_module, load_location
from backfill_engine.damages import describe_damage
from backfill_engine.orchestration.backfills.foreground import RangeRun
from backfill_engine.orchestration.records.failures import describe_in_a_line

_ASSET_JOB = "__ASSET_JOB"  # as `dagster asset materialize` does it


def main() -> None:
    """Executes what it reads, until there is no more."""
    choose_module(sys.argv[1], None)
    location = load_location()
    repository = location.locate()
    with DagsterInstance.get() as instance:
        for line in sys.stdin:
            request = RangeRun.from_json(line)
            with execute_job(
                repository.get_reconstructable_job(_ASSET_JOB),
                instance,
                run_config=dict(request.config),
                tags=request.all_tags,
                asset_selection=[AssetKey.from_user_string(key) for key in request.assets],
                raise_on_error=False,
            ):
                pass


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        traceback.print_exc()
        print(describe_damage(error) or describe_in_a_line(error), file=sys.stderr)  # noqa: T201
        sys.exit(1)
