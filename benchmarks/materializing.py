"""Range runs of any tables, as commands: `dagster asset materialize --partition-range`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from backfill_engine.tables.declarations import Table
from benchmarks.variants import DAGSTER_RANGE, Command, prepare_command

PROJECT = "backfill_assets.definitions"


def prepare_range(
    tables: Sequence[Table],
    first: str,
    last: str,
    *,
    landing: Path,
    scratch: Path,
    module: str = PROJECT,
    settings: Mapping[str, str] | None = None,
) -> Command:
    """Makes what the process needs before it starts: a Dagster home, unless it is there.

    Args:
        tables: whose assets to materialize, of one grain.
        first: partition key.
        last: partition key, included.
        landing: the landing zone, filled.
        scratch: where the process may write; `variants.find_warehouse` says where its tables are.
        module: of the definitions.
        settings: further environment.
    """
    # Its home and environment; assets and range are others.
    command = prepare_command(DAGSTER_RANGE, days=1, landing=landing, scratch=scratch)
    selection = ",".join(f'key:"{table.key}"' for table in tables)
    arguments = [
        *(command.arguments[0], "asset", "materialize", "-m", module),
        *("--select", selection, "--partition-range", f"{first}...{last}"),
    ]
    return Command(arguments, {**command.environment, **(settings or {})})
