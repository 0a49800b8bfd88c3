MODEL (
  name raw.orders,
  kind FULL,
  start '2013-01-01',
  columns (
    order_bucket BIGINT, order_key BIGINT, record TEXT, customer_key BIGINT, order_status TEXT,
    total_cents BIGINT, order_date DATE, order_priority TEXT, line_number INT, part_key BIGINT,
    supplier_key BIGINT, quantity DOUBLE, price_cents BIGINT, discount_percent INT,
    tax_percent INT, return_flag TEXT, ship_date DATE, commit_date DATE, receipt_date DATE,
    source_file TEXT
  ),
  audits (
    not_null(columns := (order_bucket, order_key, record)),
    accepted_range(column := discount_percent, min_v := 0, max_v := 100),
    accepted_range(column := tax_percent, min_v := 0, max_v := 100),
    accepted_range(column := line_number, min_v := 1, max_v := 7)
  )
);

SELECT
  o_orderkey // @bucket_step * @bucket_step AS order_bucket,
  o_orderkey AS order_key,
  'order' AS record,
  o_custkey AS customer_key,
  o_orderstatus AS order_status,
  CAST(o_totalprice * 100 AS BIGINT) AS total_cents,
  o_orderdate AS order_date,
  o_orderpriority AS order_priority,
  NULL::INT AS line_number,
  NULL::BIGINT AS part_key,
  NULL::BIGINT AS supplier_key,
  NULL::DOUBLE AS quantity,
  NULL::BIGINT AS price_cents,
  NULL::INT AS discount_percent,
  NULL::INT AS tax_percent,
  NULL::TEXT AS return_flag,
  NULL::DATE AS ship_date,
  NULL::DATE AS commit_date,
  NULL::DATE AS receipt_date,
  regexp_extract(filename, 'orders/orders/.*$') AS source_file
FROM read_parquet(@landing || '/orders/orders/*.parquet', filename = true)
UNION ALL
SELECT
  l_orderkey // @bucket_step * @bucket_step,
  l_orderkey,
  'line',
  NULL, NULL, NULL, NULL, NULL,
  l_linenumber,
  l_partkey,
  l_suppkey,
  CAST(l_quantity AS DOUBLE),
  CAST(l_extendedprice * 100 AS BIGINT),
  CAST(l_discount * 100 AS INT),
  CAST(l_tax * 100 AS INT),
  l_returnflag,
  l_shipdate,
  l_commitdate,
  l_receiptdate,
  regexp_extract(filename, 'orders/lineitem/.*$')
FROM read_parquet(@landing || '/orders/lineitem/*.parquet', filename = true)
