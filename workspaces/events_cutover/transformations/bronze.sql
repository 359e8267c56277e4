-- One table, three flows, strictly one after the other: 2023, 2024, then live.
CREATE OR REFRESH STREAMING TABLE events
COMMENT 'Registration events: history first, live data behind it';

CREATE FLOW events_backfill_2023
COMMENT 'The first year of the history'
AS INSERT INTO ONCE events BY NAME
SELECT id, timestamp, plan, amount_cents
FROM read_files('/Volumes/gc/demo/apps_raw/event_registration/year=2023/*/*', format => 'json');

CREATE FLOW events_backfill_2024
COMMENT 'The second year, once the first is in the table'
DEPENDS ON (events_backfill_2023)
AS INSERT INTO ONCE events BY NAME
SELECT id, timestamp, plan, amount_cents
FROM read_files('/Volumes/gc/demo/apps_raw/event_registration/year=2024/*/*', format => 'json');

-- It waits, and stays what it is: a stream with a checkpoint of its own. When the history is done it is skipped
-- for good, and this flow starts at once.
CREATE FLOW events_live
COMMENT 'From 2025 on'
DEPENDS ON (events_backfill_2024)
AS INSERT INTO events BY NAME
SELECT id, timestamp, plan, amount_cents
FROM STREAM read_files('/Volumes/gc/demo/apps_raw/event_registration/year=2025/*/*',
  format => 'json', maxFilesPerTrigger => 10);
