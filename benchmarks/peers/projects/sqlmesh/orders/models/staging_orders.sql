MODEL (
  name staging.orders,
  kind FULL,
  start '2013-01-01',
  columns (
    order_bucket BIGINT, order_key BIGINT, customer_key BIGINT, order_status TEXT, order_date DATE,
    order_priority TEXT, total_cents BIGINT, net_cents BIGINT, lines BIGINT, returned_lines BIGINT,
    late_lines BIGINT, records BIGINT
  ),
  audits (
    unique_values(columns := (order_key)),
    accepted_range(column := lines, min_v := 1, max_v := 7),
    accepted_range(column := net_cents, min_v := 0, max_v := 100000000)
  )
);

WITH records AS (
  SELECT *, COUNT(*) OVER same_record AS landed
  FROM raw.orders
  WINDOW same_record AS (PARTITION BY order_bucket, order_key, record, line_number)
  QUALIFY ROW_NUMBER() OVER (
    PARTITION BY order_bucket, order_key, record, line_number ORDER BY source_file DESC
  ) = 1
), orders AS (
  SELECT
    order_bucket, order_key,
    MAX(customer_key) AS customer_key,
    MAX(order_status) AS order_status,
    MAX(order_date) AS order_date,
    MAX(order_priority) AS order_priority,
    MAX(total_cents) AS total_cents,
    CAST(SUM(price_cents * (100 - discount_percent)) AS BIGINT) AS net_hundredths,
    COUNT_IF(record = 'line') AS lines,
    COUNT_IF(record = 'line' AND return_flag = 'R') AS returned_lines,
    COUNT_IF(record = 'line' AND receipt_date > commit_date) AS late_lines,
    SUM(landed) AS records,
    COUNT_IF(record = 'order') AS heads
  FROM records
  GROUP BY order_bucket, order_key
)
SELECT
  order_bucket, order_key, customer_key, order_status, order_date, order_priority, total_cents,
  (net_hundredths + 50) // 100 AS net_cents,
  lines, returned_lines, late_lines,
  CAST(records AS BIGINT) AS records
FROM orders
WHERE heads > 0 AND lines > 0
