MODEL (
  name raw.flights,
  kind INCREMENTAL_BY_TIME_RANGE (time_column landing_date),
  start '2013-01-01',
  cron '@daily',
  columns (
    landing_date DATE, flight_date DATE, year INT, month INT, day INT,
    dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT,
    arr_delay INT, carrier TEXT, flight INT, tailnum TEXT, origin TEXT, dest TEXT,
    air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMPTZ, source_file TEXT
  ),
  audits (
    not_null(columns := (flight_date, year, month, day, carrier, flight, origin)),
    enough_rows(by := landing_date, least := 0.045),
    null_share(by := landing_date, of := distance, at_most := 0.01),
    null_share(by := landing_date, of := dest, at_most := 0.01),
    null_share(by := landing_date, of := time_hour, at_most := 0.01),
    null_share(by := landing_date, of := tailnum, at_most := 0.5),
    accepted_range(column := month, min_v := 1, max_v := 12),
    accepted_range(column := day, min_v := 1, max_v := 31),
    accepted_range(column := hour, min_v := 0, max_v := 23),
    accepted_range(column := minute, min_v := 0, max_v := 59),
    accepted_range(column := distance, min_v := 1, max_v := 12500),
    forall(criteria := (flight_date <= landing_date))
  )
);

SELECT
  CAST(
    regexp_replace(filename, '.*/year=([0-9]+)/month=([0-9]+)/day=([0-9]+)/.*', '\1-\2-\3') AS DATE
  ) AS landing_date,
  make_date(year, month, day) AS flight_date,
  year, month, day, dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time, arr_delay,
  carrier, flight, tailnum, origin, dest, air_time, distance, hour, minute, time_hour,
  regexp_extract(filename, 'flights/year=.*$') AS source_file
FROM read_json(
  @landed_files(),
  format = 'newline_delimited',
  filename = true,
  hive_partitioning = false,
  columns = {
    year: 'INT', month: 'INT', day: 'INT', dep_time: 'INT', sched_dep_time: 'INT',
    dep_delay: 'INT', arr_time: 'INT', sched_arr_time: 'INT', arr_delay: 'INT', carrier: 'TEXT',
    flight: 'INT', tailnum: 'TEXT', origin: 'TEXT', dest: 'TEXT', air_time: 'INT',
    distance: 'INT', hour: 'INT', minute: 'INT', time_hour: 'TIMESTAMPTZ'
  }
)
WHERE landing_date BETWEEN @start_date AND @end_date
