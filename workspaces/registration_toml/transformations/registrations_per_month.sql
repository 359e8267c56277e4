-- SQL and TOML files mix freely: this reads the table that the TOML file defines.
CREATE OR REFRESH MATERIALIZED VIEW registrations_per_month
COMMENT 'Registrations and their revenue by month and plan'
AS SELECT year, month, plan, count(*) AS registrations, sum(amount_cents) / 100 AS revenue
FROM registration_events_raw
GROUP BY ALL;
