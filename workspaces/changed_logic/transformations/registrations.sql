-- Raw rows are kept, without a rule in them.
CREATE OR REFRESH STREAMING TABLE registrations_raw
TBLPROPERTIES ('pipelines.reset.allowed' = 'false')
AS SELECT * FROM STREAM read_files('/Volumes/gc/demo/apps_raw/event_registration',
  format => 'json', schemaHints => 'amount_cents BIGINT');

-- The rule is here.
CREATE OR REFRESH STREAMING TABLE registrations
AS SELECT id, to_timestamp(timestamp) AS registered_at, plan, amount_cents,
  amount_cents * ${tax_percent} / 100 AS tax_cents
FROM STREAM(registrations_raw)
WHERE id IS NOT NULL;
