CREATE OR REFRESH STREAMING TABLE customers_history
COMMENT "Every version of every customer";

-- One-time seed: the rows of the old warehouse as change events, each at the time from which it held.
CREATE FLOW customers_history_seed
AS AUTO CDC ONCE INTO customers_history
FROM stream(legacy.customers_scd2)
KEYS (customer_id)
SEQUENCE BY valid_from
COLUMNS * EXCEPT (valid_from, valid_to, is_current, _rescued_data)
STORED AS SCD TYPE 2;

-- Ongoing live CDC into the same target.
CREATE FLOW customers_history_cdc
AS AUTO CDC INTO customers_history
FROM stream(customers_cdc_bronze)
KEYS (customer_id)
APPLY AS DELETE WHEN operation = "DELETE"
SEQUENCE BY change_timestamp
COLUMNS * EXCEPT (operation, change_timestamp)
STORED AS SCD TYPE 2;
