CREATE OR REFRESH MATERIALIZED VIEW registrations_per_month
COMMENT 'Registrations and revenue, without a gap between history and live data'
AS SELECT date_format(registered_at, 'yyyy-MM') AS month, count(*) AS registrations, sum(amount_cents) / 100 AS revenue
FROM registrations
GROUP BY ALL;
