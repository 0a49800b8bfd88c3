"""Lands ten days of readings, a month of trips and two days of sales: `python land.py data`.

On one of the days a meter ran backwards; four of the trips are of another year; the sales of twenty
days are in a table that another program wrote.
"""

import datetime as dt
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake


def land_trips(root: Path) -> None:
    """Lands January's file: a trip every hour, and four of 2002."""
    noon = dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001
    starts = [noon + dt.timedelta(hours=hours) for hours in range(-12, 31 * 24 - 12)]
    starts += [dt.datetime(2002, 12, 31, 23)] * 4  # noqa: DTZ001
    trips = {
        "tpep_pickup_datetime": starts,
        "PULocationID": [number % 3 for number in range(len(starts))],
        "total_amount": [10.0] * len(starts),
    }
    path = root / "trips" / "yellow_tripdata_2024-01.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(trips), path)


def land_zones(root: Path) -> None:
    """Writes the zones of two boroughs, by another program."""
    zones = {"zone": pa.array([0, 1, 2], pa.int32()), "borough": ["Queens", "Bronx", "Bronx"]}
    write_deltalake(root / "zones", pa.table(zones))


def land_sales(root: Path) -> None:
    """Writes twenty days by another program, and lands two: half of the last, and the next."""
    days = [dt.date(2024, 1, number) for number in range(1, 21) for _ in range(8)]
    shops = [f"shop {number % 8}" for number in range(len(days))]
    sales = pa.table({"day": days, "shop": shops, "amount": [10.0] * len(days)})
    write_deltalake(root / "nightly" / "sales", sales, partition_by=["day"])
    folder = root / "landing" / "sales"
    folder.mkdir(parents=True)
    for day, count in (("2024-01-20", 3), ("2024-01-21", 8)):
        lines = ["shop,amount", *(f"shop {number},12.5" for number in range(count))]
        (folder / f"{day}.csv").write_text("\n".join(lines))


def land_readings(root: Path) -> None:
    """Lands them below a folder."""
    for number in range(1, 11):
        day = dt.date(2024, 1, number)
        folder = root / "readings" / f"year={day:%Y}" / f"month={day:%m}" / f"day={day:%d}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            {
                "meter": meter,
                "read_at": f"{day}T0{meter}:30:00Z",
                "litres": -1.0 if (number, meter) == (4, 2) else meter * 10 + 0.5,
            }
            for meter in (1, 2, 3)
        ]
        (folder / "readings.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    data = Path(sys.argv[1])
    land_readings(data / "landing")
    land_trips(data / "landing")
    land_sales(data)
    land_zones(data)
