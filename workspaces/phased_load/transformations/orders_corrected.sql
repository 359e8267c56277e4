-- Both tables together; it runs after their flows because it reads them.
CREATE OR REFRESH MATERIALIZED VIEW orders_per_phase
COMMENT 'Orders and revenue by phase, corrections applied'
AS SELECT phase, count(*) AS orders, count(corrections.order_id) AS corrected,
  sum(coalesce(corrections.amount_cents, orders.amount_cents)) / 100 AS revenue
FROM orders LEFT JOIN corrections ON orders.order_id = corrections.order_id
GROUP BY phase;
