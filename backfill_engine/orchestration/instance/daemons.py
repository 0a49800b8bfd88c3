"""Whether a daemon is there to carry out what is asked of Dagster."""

import time

from dagster import DagsterInstance

NO_DAEMON = "no daemon is running in this Dagster home"
DAEMON_COMMANDS = "`dagster dev`, or for `dagster-daemon run`"

_SILENT_SECONDS = 300  # after which Dagster's own pages call a daemon not running


def has_daemon(instance: DagsterInstance) -> bool:
    """Tells whether the daemon that carries out backfills gave a sign of life lately."""
    beat = instance.get_daemon_heartbeats().get("BACKFILL")
    return beat is not None and time.time() - beat.timestamp < _SILENT_SECONDS
