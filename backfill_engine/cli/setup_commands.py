"""What comes before the first run: whether Spark can start."""

from backfill_engine.cli.terminal import echo
from backfill_engine.settings import read_settings


def check() -> None:
    """Check that Spark can start here; fetch and make what it needs unless that is cached."""
    from backfill_engine.spark.remotes import hide_parameters
    from backfill_engine.spark.session import check_prerequisites, is_trained, train_sessions

    settings = read_settings()
    jars, s3 = settings.jars, settings.s3
    check_prerequisites(remote=settings.spark_remote, jars=jars, s3=s3 is not None)
    if settings.spark_remote is None and not is_trained(jars=jars, s3=s3):
        echo("preparing Spark to start faster: half a minute, once", err=True)
        train_sessions(jars=jars, s3=s3)
    place = f"at {hide_parameters(settings.spark_remote)}" if settings.spark_remote else "here"
    echo(f"ready: Spark {place}")
