"""`overwrite`: a partition becomes what was computed."""

from backfill_engine.publishing.write_modes.mode import WriteMode


class Overwrite(WriteMode):
    """Replaces a partition by what was computed from its inputs."""

    name = "overwrite"
