-- The fresh change feed as it arrives.
CREATE OR REFRESH STREAMING TABLE customers_cdc_bronze
COMMENT "Changes since the old warehouse was switched off"
AS SELECT customer_id, name, city, plan, operation, CAST(change_timestamp AS TIMESTAMP) AS change_timestamp
FROM STREAM read_files("/crm/feed/*.json", format => "json");
