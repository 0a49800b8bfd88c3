MODEL (
  name features.carrier_delays,
  dialect duckdb,
  kind INCREMENTAL_BY_TIME_RANGE (time_column flight_date),
  start '2013-01-01',
  cron '@daily',
  columns (
    flight_date DATE, carrier TEXT, origin TEXT, flights_7d BIGINT, cancelled_7d BIGINT,
    mean_dep_delay_7d DOUBLE, mean_arr_delay_7d DOUBLE, late_share_7d DOUBLE
  ),
  audits (
    unique_combination_of_columns(columns := (flight_date, carrier, origin)),
    not_null(columns := (flight_date, carrier, origin, flights_7d, cancelled_7d)),
    null_share(by := flight_date, of := late_share_7d, at_most := 0.25),
    null_share(by := flight_date, of := mean_dep_delay_7d, at_most := 0.25),
    null_share(by := flight_date, of := mean_arr_delay_7d, at_most := 0.25),
    accepted_range(column := late_share_7d, min_v := 0, max_v := 1),
    share_that_holds(by := flight_date, holds := (cancelled_7d BETWEEN 0 AND flights_7d)),
    share_that_holds(
      by := flight_date,
      holds := (mean_arr_delay_7d - mean_dep_delay_7d BETWEEN -30 AND 20),
      fails_at_most := 0.2
    )
  )
);

WITH daily AS (
  SELECT
    flight_date, carrier, origin,
    COUNT(*) AS flights,
    COUNT_IF(cancelled) AS cancelled,
    SUM(dep_delay) AS dep_delay_minutes,
    COUNT(dep_delay) AS departed,
    SUM(arr_delay) AS arr_delay_minutes,
    COUNT(arr_delay) AS arrived,
    COUNT_IF(arr_delay > 15) AS late
  FROM staging.flights
  WHERE flight_date BETWEEN @start_date - INTERVAL 6 DAY AND @end_date
  GROUP BY flight_date, carrier, origin
), windows AS (
  SELECT CAST(daily.flight_date + days.later * INTERVAL '1' DAY AS DATE) AS flight_date,
    daily.* EXCLUDE (flight_date)
  FROM daily
  CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6)) AS days(later)
)
SELECT
  flight_date, carrier, origin,
  CAST(SUM(flights) AS BIGINT) AS flights_7d,
  CAST(SUM(cancelled) AS BIGINT) AS cancelled_7d,
  CAST(SUM(dep_delay_minutes) AS DOUBLE) / NULLIF(SUM(departed), 0) AS mean_dep_delay_7d,
  CAST(SUM(arr_delay_minutes) AS DOUBLE) / NULLIF(SUM(arrived), 0) AS mean_arr_delay_7d,
  CAST(SUM(late) AS DOUBLE) / NULLIF(SUM(arrived), 0) AS late_share_7d
FROM windows
WHERE flight_date BETWEEN @start_date AND @end_date
GROUP BY flight_date, carrier, origin
