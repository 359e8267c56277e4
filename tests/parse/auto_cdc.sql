-- Every clause, in the order of the reference.
CREATE FLOW all_clauses COMMENT 'live' DEPENDS ON (seed) AS
AUTO CDC INTO customers
FROM STREAM(bronze.customers_cdc)
KEYS (customer_id, `tenant.id`)
IGNORE NULL UPDATES ON (name, email)
APPLY AS DELETE WHEN operation = 'DELETE' AND customers_cdc.source IS DISTINCT FROM 'test'
APPLY AS TRUNCATE WHEN operation = "TRUNCATE"
SEQUENCE BY STRUCT(changed_at, id)
COLUMNS * EXCEPT (operation, changed_at)
STORED AS SCD TYPE 1
COLUMNS TO UPDATE changed_columns;

-- The same in another order, lists without parentheses, keywords in lower case.
create flow other_order as auto cdc once into customers
stored as scd type 2 track history on * except last_seen, `count`
sequence by cast(changed_at as timestamp) + interval 1 hour
columns customer_id, name, last_seen, `count`
keys customer_id
apply as delete when op in ('d', 'D')
from stream customers_cdc with (skipchangecommits = true);

-- Columns that are called like the words of clauses.
CREATE FLOW named_like_clauses AS AUTO CDC INTO t FROM STREAM s KEYS (keys)
APPLY AS DELETE WHEN columns = 1 OR keys IN (1, 2) OR stored SEQUENCE BY sequence;

-- The default flow of a table, with a comment in an expression.
CREATE STREAMING TABLE combined COMMENT 'both' TBLPROPERTIES ('flowbench.nullKeys' = 'drop')
FLOW AUTO CDC ONCE FROM src KEYS (id) SEQUENCE BY a -- not b
  + 1 IGNORE NULL UPDATES ON * EXCEPT (b) TRACK HISTORY ON (a, c) STORED AS SCD TYPE 2;

-- Files as a feed; _metadata may order them and never lands in the table.
CREATE FLOW files AS AUTO CDC INTO t FROM STREAM read_files("cdc/*.json", format => "json") KEYS (id)
SEQUENCE BY _metadata.file_modification_time IGNORE NULL UPDATES;

-- Legacy.
APPLY CHANGES INTO LIVE.old FROM STREAM(LIVE.src) KEYS (id) APPLY AS DELETE WHEN gone SEQUENCE BY ts COLUMNS * EXCEPT (gone);

-- Snapshots: the reference's order of words, and the other one.
CREATE FLOW periodic AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM legacy.customers_snapshot) KEYS (id) STORED AS SCD TYPE 2 TRACK HISTORY ON name;
CREATE FLOW backfill AS AUTO CDC ONCE INTO t FROM SNAPSHOT (SELECT id, (a) FROM s WHERE b IN (SELECT b FROM u))
WITH VERSION (SELECT TIMESTAMP '2025-01-01T00:00:00Z' AS v) KEYS (id);
CREATE FLOW reversed AS AUTO CDC FROM SNAPSHOT (SELECT * FROM s) WITH VERSION (SELECT max(v) FROM s) KEYS (id) INTO ONCE t;
CREATE STREAMING TABLE own FLOW AUTO CDC FROM SNAPSHOT (SELECT * FROM s) KEYS (id);
CREATE FLOW parameters AS AUTO CDC INTO t FROM STREAM(${source}) KEYS (id) SEQUENCE BY "${begin_year}";
