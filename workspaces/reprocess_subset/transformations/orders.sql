CREATE OR REFRESH STREAMING TABLE orders_raw
COMMENT 'All that was delivered, corrections included; rows are only ever added';

CREATE FLOW orders_raw_live
AS INSERT INTO orders_raw BY NAME
SELECT *, 0 AS correction
FROM STREAM read_files('/shop/orders', format => 'json');

-- The day that was wrong, once more.
CREATE FLOW orders_raw_corrected
AS INSERT INTO ONCE orders_raw BY NAME
SELECT *, 1 AS correction
FROM read_files('/shop/corrections/${corrected_day}.json', format => 'json');

-- The latest word on each order.
CREATE OR REFRESH MATERIALIZED VIEW orders
AS SELECT order_id, date(to_timestamp(ordered_at)) AS day, customer_id, status, amount_cents, correction
FROM orders_raw
QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY correction DESC) = 1;
