-- A stream joined with a table that does not stream: each order meets the customers as they are in that update.
CREATE OR REFRESH STREAMING TABLE silver.orders
COMMENT 'Orders of customers, without the test orders of the shop'
AS SELECT
  o.order_id,
  to_timestamp(o.ordered_at) AS ordered_at,
  o.customer_id,
  coalesce(c.country, 'unknown') AS country,
  o.status,
  o.amount_cents,
  o.items
FROM STREAM(bronze.orders) AS o
LEFT JOIN shop.customers AS c ON o.customer_id = c.customer_id
WHERE o.status <> 'TEST';

-- A row for each item of an order.
CREATE OR REFRESH STREAMING TABLE silver.order_items
AS SELECT order_id, item.sku, item.quantity, item.quantity * item.unit_price_cents AS amount_cents
FROM (SELECT order_id, explode(items) AS item FROM STREAM(silver.orders));

-- Never stored: it takes away the orders that the shop delivered twice.
CREATE TEMPORARY VIEW current_orders
AS SELECT * FROM silver.orders
QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY ordered_at) = 1;
