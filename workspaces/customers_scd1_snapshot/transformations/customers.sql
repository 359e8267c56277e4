-- The change feed, its times as times: sequence and snapshot version have one type.
CREATE TEMPORARY VIEW customers_cdc
AS SELECT * EXCEPT (change_timestamp), CAST(change_timestamp AS TIMESTAMP) AS change_timestamp
FROM STREAM read_files("/crm/changes/*.json", format => "json", maxFilesPerTrigger => 1);

CREATE OR REFRESH STREAMING TABLE customers
COMMENT "Customers as they are";

CREATE FLOW customers_incremental_cdc
COMMENT "What changes, day by day"
AS AUTO CDC INTO customers
FROM STREAM(customers_cdc)
KEYS (customer_id)
APPLY AS DELETE WHEN operation = "DELETE"
SEQUENCE BY change_timestamp
COLUMNS * EXCEPT (operation, change_timestamp, _rescued_data)
STORED AS SCD TYPE 1;

-- All customers as of the version. A key that it lacks was deleted by then; what is newer stays.
CREATE FLOW customers_snapshot
COMMENT "The state of 1 January, one time"
AS AUTO CDC ONCE INTO customers
FROM SNAPSHOT (SELECT customer_id, name, city, plan FROM legacy.customers_snapshot)
WITH VERSION (SELECT CAST("${backfill_version}" AS TIMESTAMP))
KEYS (customer_id)
STORED AS SCD TYPE 1;
