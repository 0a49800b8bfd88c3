MODEL (
  name features.customer_orders,
  kind FULL,
  start '2013-01-01',
  columns (
    order_bucket BIGINT, customer_key BIGINT, orders BIGINT, lines BIGINT, net_cents BIGINT,
    first_order_date DATE, last_order_date DATE, late_share DOUBLE, returned_share DOUBLE
  ),
  audits (
    unique_combination_of_columns(columns := (order_bucket, customer_key)),
    not_null(columns := (late_share, returned_share)),
    accepted_range(column := late_share, min_v := 0, max_v := 1),
    accepted_range(column := returned_share, min_v := 0, max_v := 1),
    forall(criteria := (lines BETWEEN orders AND 7 * orders, last_order_date >= first_order_date))
  )
);

SELECT
  order_bucket, customer_key,
  COUNT(*) AS orders,
  CAST(SUM(lines) AS BIGINT) AS lines,
  CAST(SUM(net_cents) AS BIGINT) AS net_cents,
  MIN(order_date) AS first_order_date,
  MAX(order_date) AS last_order_date,
  CAST(SUM(late_lines) AS DOUBLE) / NULLIF(SUM(lines), 0) AS late_share,
  CAST(SUM(returned_lines) AS DOUBLE) / NULLIF(SUM(lines), 0) AS returned_share
FROM staging.orders
GROUP BY order_bucket, customer_key
