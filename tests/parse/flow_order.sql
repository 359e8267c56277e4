-- DEPENDS ON: one flow or several, before or behind the comment.
CREATE FLOW live DEPENDS ON (backfill_2024, `back fill`) AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
CREATE FLOW one COMMENT 'late' DEPENDS ON backfill_2024 AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
create flow other depends on (bronze.raw) comment 'late' as insert into once events select * from s;
CREATE FLOW by_parameter DEPENDS ON (${source}, x_${begin_year}) AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
-- What is wrong with it is said; the name of the flow stays known.
CREATE FLOW bare_list DEPENDS ON a, b AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
CREATE FLOW twice DEPENDS ON a DEPENDS ON (b) AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
CREATE FLOW two_comments COMMENT 'a' COMMENT 'b' AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
CREATE FLOW none DEPENDS ON () AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
CREATE FLOW nothing DEPENDS ON AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
CREATE FLOW quoted DEPENDS ON ('a') AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
CREATE FLOW trailing DEPENDS ON (a, ) AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
CREATE FLOW unclosed DEPENDS ON (a AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
CREATE FLOW too_deep DEPENDS ON (a.b.c.d) AS INSERT INTO events BY NAME SELECT * FROM STREAM s;
-- Only flows with a name of their own wait.
CREATE STREAMING TABLE t DEPENDS ON (a) AS SELECT * FROM STREAM s;
CREATE MATERIALIZED VIEW m DEPENDS ON (a, b) COMMENT 'kept' AS SELECT 1 AS x;
CREATE TEMPORARY VIEW v DEPENDS ON a AS SELECT 1 AS x;
