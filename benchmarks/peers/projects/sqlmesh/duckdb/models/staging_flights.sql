MODEL (
  name staging.flights,
  kind INCREMENTAL_BY_TIME_RANGE (time_column flight_date),
  start '2013-01-01',
  cron '@daily',
  columns (
    flight_date DATE, carrier TEXT, flight INT, origin TEXT, dest TEXT, tailnum TEXT,
    scheduled_departure TIMESTAMPTZ, cancelled BOOLEAN, dep_time INT, sched_dep_time INT,
    dep_delay INT, arr_time INT, sched_arr_time INT, arr_delay INT, air_time INT, distance INT,
    hour INT, minute INT, landing_date DATE, source_file TEXT
  ),
  audits (
    unique_combination_of_columns(columns := (flight_date, carrier, flight, origin)),
    not_null(columns := (flight_date, carrier, flight, origin, cancelled, landing_date)),
    rows_like_the_weekdays(by := flight_date, least := 0.6, most := 1.75),
    null_share(by := flight_date, of := distance, at_most := 0.01),
    null_share(by := flight_date, of := dest, at_most := 0.01),
    null_share(by := flight_date, of := hour, at_most := 0.01),
    null_share(by := flight_date, of := scheduled_departure, at_most := 0.01),
    null_share(by := flight_date, of := air_time, at_most := 0.9),
    null_share(by := flight_date, of := tailnum, at_most := 0.5),
    accepted_range(column := distance, min_v := 1, max_v := 12500),
    accepted_range(column := hour, min_v := 0, max_v := 23),
    accepted_range(column := minute, min_v := 0, max_v := 59),
    accepted_range(column := air_time, min_v := 1, max_v := 1200),
    share_that_holds(by := flight_date, holds := (sched_dep_time = hour * 100 + minute)),
    share_that_holds(by := flight_date, holds := (dep_time IS NULL OR tailnum IS NOT NULL)),
    share_that_holds(
      by := flight_date,
      holds := (air_time BETWEEN distance / 9.5 AND distance / 6.0 + 40),
      fails_at_most := 0.05
    )
  )
);

SELECT
  flight_date, carrier, flight, origin, dest, tailnum,
  make_timestamp(year, month, day, hour, minute, 0.0) AT TIME ZONE 'America/New_York'
    AS scheduled_departure,
  dep_time IS NULL AS cancelled,
  dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time, arr_delay, air_time, distance,
  hour, minute, landing_date, source_file
FROM raw.flights
WHERE flight_date BETWEEN @start_date AND @end_date
  AND landing_date >= flight_date
QUALIFY row_number() OVER (
  PARTITION BY flight_date, carrier, flight, origin
  ORDER BY landing_date DESC, source_file DESC
) = 1
