CREATE OR REFRESH MATERIALIZED VIEW gold.revenue_per_day
COMMENT 'Paid and shipped orders by day and country'
AS SELECT date(ordered_at) AS day, country, count(*) AS orders, sum(amount_cents) / 100 AS revenue
FROM current_orders
WHERE status IN ('paid', 'shipped')
GROUP BY ALL;

CREATE OR REFRESH MATERIALIZED VIEW gold.best_products
COMMENT 'The three products that sold most'
AS SELECT sku, sum(quantity) AS sold
FROM silver.order_items
GROUP BY sku
ORDER BY sold DESC, sku
LIMIT 3;
