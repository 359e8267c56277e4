-- Appends each file of the folder once: run, add a file, run again.
CREATE OR REFRESH STREAMING TABLE orders_raw
COMMENT "orders as they came in"
AS SELECT *, _metadata.file_name AS source_file
FROM STREAM read_files("${source}", format => "json");

-- Only what is new in orders_raw.
CREATE OR REFRESH STREAMING TABLE orders
AS SELECT order_id, customer, CAST(amount AS DECIMAL(12, 2)) AS amount, to_timestamp(ordered_at) AS ordered_at
FROM STREAM orders_raw
WHERE amount > 0;

-- Computed anew when orders changed.
CREATE OR REFRESH MATERIALIZED VIEW revenue_by_customer
AS SELECT customer, count(*) AS orders, sum(amount) AS revenue
FROM orders
GROUP BY customer;

-- History that lies elsewhere is brought in one time by a once flow, a backfill, beside the live flow:
-- CREATE FLOW backfill_2024 AS
-- INSERT INTO ONCE orders_raw BY NAME
-- SELECT *, _metadata.file_name AS source_file FROM read_files("data/orders_2024", format => "json");
