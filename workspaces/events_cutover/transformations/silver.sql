-- Reads the table that the three flows write, so it runs after all of them: that needs no DEPENDS ON.
CREATE OR REFRESH STREAMING TABLE registrations
COMMENT 'Events with a time and an amount'
AS SELECT id, to_timestamp(timestamp) AS registered_at, plan, CAST(amount_cents AS BIGINT) AS amount_cents
FROM STREAM(events)
WHERE id IS NOT NULL;
