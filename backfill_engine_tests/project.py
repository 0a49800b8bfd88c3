"""The sample project, which most tests of the engine work with."""

from dagster import SensorDefinition

from backfill_assets import assets
from backfill_assets.definitions import defs as defs
from backfill_engine.assembly import list_table_assets
from backfill_engine.asset_definitions import find_catalogs

SAMPLES = list_table_assets([assets])
"""The table assets of the samples, as declared."""

_REPOSITORY = defs.get_repository_def()

(CATALOG,) = find_catalogs(_REPOSITORY.asset_graph)
"""The catalog of the samples; settings are those of the environment at each moment."""

RAW_FLIGHTS = CATALOG.find_table("raw/flights")
STAGING_FLIGHTS = CATALOG.find_table("staging/flights")
CARRIER_DELAYS = CATALOG.find_table("features/carrier_delays")
CARRIER_DELAYS_V2 = CATALOG.find_table("features/carrier_delays_v2")
SERVED_CARRIER_DELAYS = CATALOG.find_table("serving/carrier_delays")
TRAINING_EXAMPLES = CATALOG.find_table("serving/training_examples")
RAW_WEATHER = CATALOG.find_table("raw/weather")
STAGING_WEATHER = CATALOG.find_table("staging/weather")
DEPARTURE_CONDITIONS = CATALOG.find_table("features/departure_conditions")
RAW_ORDERS = CATALOG.find_table("raw/orders")
STAGING_ORDERS = CATALOG.find_table("staging/orders")
CUSTOMER_ORDERS = CATALOG.find_table("features/customer_orders")


def find_sensor(name: str) -> SensorDefinition:
    """Finds a sensor of the samples."""
    return _REPOSITORY.get_sensor_def(name)


continue_after_withheld = find_sensor("continue_after_withheld")
go_on_after_pause = find_sensor("go_on_after_pause")
observe_landing = find_sensor("observe_landing")
process_due_partitions = find_sensor("process_due_partitions")
recover_dead_runs = find_sensor("recover_dead_runs")
report_withheld = find_sensor("report_withheld")
