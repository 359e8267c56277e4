-- The columns are written down, so that both flows have to fit them.
CREATE OR REFRESH STREAMING TABLE orders (
  order_id STRING NOT NULL,
  ordered_at TIMESTAMP COMMENT 'midnight in Berlin for the old shop, which kept days only',
  customer_id BIGINT,
  status STRING,
  amount_cents BIGINT,
  shop STRING COMMENT 'new or old'
);

CREATE FLOW orders_live
AS INSERT INTO orders BY NAME
SELECT order_id, to_timestamp(ordered_at) AS ordered_at, customer_id, status, amount_cents, 'new' AS shop
FROM STREAM read_files('/shop/orders', format => 'json');

-- The old shop's table in the terms of ours: names, types, units.
CREATE FLOW orders_legacy
AS INSERT INTO ONCE orders BY NAME
SELECT
  concat('legacy-', nr) AS order_id,
  to_timestamp(datum, 'dd.MM.yyyy') AS ordered_at,
  CAST(kunde AS BIGINT) AS customer_id,
  CASE st WHEN 'P' THEN 'paid' WHEN 'C' THEN 'canceled' END AS status,
  CAST(round(CAST(betrag AS DOUBLE) * 100) AS BIGINT) AS amount_cents,
  'old' AS shop
FROM legacy.orders;

CREATE OR REFRESH MATERIALIZED VIEW orders_per_month
AS SELECT date_format(ordered_at, 'yyyy-MM') AS month, shop, count(*) AS orders, sum(amount_cents) / 100 AS amount
FROM orders
GROUP BY ALL;
