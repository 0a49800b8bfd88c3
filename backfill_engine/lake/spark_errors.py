"""What Spark raises: its own exceptions where it knows the error, Py4J's where it doesn't."""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JError)
