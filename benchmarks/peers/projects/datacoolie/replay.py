"""Replays the days of the three tables, one after another, as DataCoolie's driver does it."""

import argparse
import datetime as dt
import json
import os
import sys
from pathlib import Path

from datacoolie.core.models.run_config import ReplayConfig
from datacoolie.engines.spark_engine import SparkEngine
from datacoolie.metadata.file_provider import FileProvider
from datacoolie.orchestration.driver import DataCoolieDriver
from datacoolie.platforms.local_platform import LocalPlatform

_TABLES = (
    ("raw", "flights", "landing_date", "flights.read_raw"),
    ("staging", "flights", "flight_date", "flights.read_staging"),
    ("features", "carrier_delays", "flight_date", "flights.read_features"),
)


def build_metadata(warehouse: str) -> dict[str, object]:
    """Builds connections and dataflows; each replaces the rows of a chunk by the day's column."""
    return {
        "connections": [
            {"name": "functions", "connection_type": "function", "format": "function"},
            {
                "name": "lake",
                "connection_type": "lakehouse",
                "format": "delta",
                "configure": {"base_path": warehouse},
            },
        ],
        "dataflows": [
            {
                "name": f"{layer}_{table}",
                "stage": layer,
                "processing_mode": "batch",
                "source": {
                    "connection_name": "functions",
                    "python_function": function,
                    "watermark_columns": [day],
                    # A replay reads just its chunks; without this the replacement is refused.
                    "configure": {"backward_days": 1},
                },
                "destination": {
                    "connection_name": "lake",
                    "schema_name": layer,
                    "table": table,
                    "load_type": "merge_overwrite",
                    "partition_columns": [{"column": day}],
                    "configure": {"replace_by_watermark": True},
                },
                "transform": {},
            }
            for layer, table, day, function in _TABLES
        ],
    }


def main() -> None:
    """Replays the days, in chunks of as many; exits with 1 if a layer fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=dt.date.fromisoformat)
    parser.add_argument("last", type=dt.date.fromisoformat)
    parser.add_argument("--chunk-days", type=int, help="default: all of them in one chunk")
    options = parser.parse_args()

    warehouse = os.environ["PEER_WAREHOUSE"]
    metadata = Path(warehouse, "metadata.json")
    metadata.write_text(json.dumps(build_metadata(warehouse)), encoding="utf-8")
    platform = LocalPlatform()
    engine = SparkEngine(config=json.loads(os.environ["PEER_SPARK_CONF"]), platform=platform)
    provider = FileProvider(config_path=str(metadata), platform=platform)
    replay = ReplayConfig(
        start=options.first,
        end=options.last + dt.timedelta(days=1),
        chunk_interval={"days": options.chunk_days} if options.chunk_days else None,
    )
    with DataCoolieDriver(engine=engine, metadata_provider=provider) as driver:
        for layer, *_ in _TABLES:
            result = driver.run_replay(driver.load_dataflows(stage=layer), replay)
            print(f"{layer}: {result}", flush=True)
            if result.has_failures or not result.succeeded:
                sys.exit(1)


if __name__ == "__main__":
    main()
