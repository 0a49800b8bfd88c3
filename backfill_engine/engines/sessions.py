"""Which engine runs a session."""

from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from backfill_engine.engines.engine import Engine
from backfill_engine.engines.spark_engine import SPARK

_noted: WeakKeyDictionary[SparkSession, Engine] = WeakKeyDictionary()


def note_engine(session: SparkSession, engine: Engine) -> None:
    """Notes the engine of a session that another than Spark runs."""
    _noted[session] = engine


def find_engine(session: SparkSession) -> Engine:
    """Finds the engine of a session: Spark, unless another was noted."""
    return _noted.get(session, SPARK)
