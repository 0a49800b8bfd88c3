"""SQLMesh on Spark: Delta tables in a Hive metastore on Derby, its own state in DuckDB."""

import json
import os
from pathlib import Path

from sqlmesh.core.config import (
    Config,
    DuckDBConnectionConfig,
    GatewayConfig,
    ModelDefaultsConfig,
    SparkConnectionConfig,
)

_WAREHOUSE = Path(os.environ["PEER_WAREHOUSE"])
# The project's settings of a session, so that none is slower for its settings.
_SPARK_CONF = {
    **json.loads(os.environ["PEER_SPARK_CONF"]),
    "spark.sql.warehouse.dir": str(_WAREHOUSE),
    "spark.hadoop.javax.jdo.option.ConnectionURL": (
        f"jdbc:derby:;databaseName={_WAREHOUSE / 'metastore'};create=true"
    ),
}

config = Config(
    gateways={
        "spark": GatewayConfig(
            connection=SparkConnectionConfig(config=_SPARK_CONF),
            state_connection=DuckDBConnectionConfig(database=str(_WAREHOUSE / "state.duckdb")),
        )
    },
    default_gateway="spark",
    model_defaults=ModelDefaultsConfig(dialect="spark", table_format="delta"),
    disable_anonymized_analytics=True,
)
