AUDIT (name null_share, dialect duckdb);
SELECT @by FROM @this_model
GROUP BY @by
HAVING AVG(CASE WHEN @of IS NULL THEN 1.0 ELSE 0.0 END) > @at_most;

AUDIT (name share_that_holds, dialect duckdb, defaults (fails_at_most = 0.0));
SELECT @by FROM @this_model
GROUP BY @by
HAVING AVG(CASE WHEN NOT (@holds) THEN 1.0 ELSE 0.0 END) > @fails_at_most;

AUDIT (name enough_rows, dialect duckdb);
WITH days AS (SELECT @by AS day, COUNT(*) AS row_count FROM @this_model GROUP BY @by)
SELECT day FROM days
WHERE row_count < @least * (SELECT MAX(row_count) FROM days);

AUDIT (name rows_like_the_weekdays, dialect duckdb);
WITH days AS (SELECT @by AS day, COUNT(*) AS row_count FROM @this_model GROUP BY @by),
usual AS (
  SELECT DAYOFWEEK(day) AS weekday, MEDIAN(row_count) AS row_count FROM days GROUP BY DAYOFWEEK(day)
)
SELECT days.day FROM days JOIN usual ON DAYOFWEEK(days.day) = usual.weekday
WHERE days.row_count NOT BETWEEN @least * usual.row_count AND @most * usual.row_count;
