-- Spark's SQL that DataFusion reads otherwise, or that must come through as it is.
CREATE VIEW intervals AS
  SELECT ts + INTERVAL '1 hour', ts - INTERVAL '1 day 2 hours', ts + INTERVAL 1 HOUR, ts + INTERVAL 1 DAY 30 MINUTES,
    ts + INTERVAL -2 HOURS, ts + INTERVAL '3' DAYS, ts + INTERVAL '-5 minutes', ts + INTERVAL 1 QUARTER,
    ts + INTERVAL '1-2' YEAR TO MONTH FROM t;
CREATE VIEW strings AS
  SELECT 'it\'s', "double ""quoted""", r'\d+', '\\d+', 'tab\there', 'per\%cent', 'it''s' FROM t WHERE x RLIKE '\\w';
CREATE VIEW wildcards AS SELECT * EXCEPT (a, b) FROM t;
CREATE VIEW grouping AS SELECT k, count(*) AS n FROM t GROUP BY ALL HAVING n > 1 ORDER BY ALL;
CREATE VIEW qualifying AS SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC) = 1;
CREATE VIEW paths AS SELECT payload:user.name AS name, payload:items[0] AS item, s.field, s.inner.deep FROM t;
CREATE VIEW nulls AS SELECT a <=> b AS same, a IS DISTINCT FROM stream AS differs, EXTRACT(YEAR FROM ts) AS y FROM t;
CREATE VIEW casts AS SELECT CAST(x AS BIGINT), x::string, try_cast(y AS DECIMAL(10, 2)), DATE '2025-01-01' FROM t;
CREATE VIEW lambdas AS SELECT transform(xs, x -> x + 1) AS ys, filter(xs, x -> x > 0) AS zs FROM t;
CREATE VIEW structs AS SELECT struct(a, b) AS s, named_struct('a', 1) AS n, array(1, 2) AS xs, map('k', 1) AS m FROM t;
CREATE VIEW names AS SELECT `my col`, `t`.`timestamp`, timestamp FROM `t` WHERE year(timestamp) >= '2025';
CREATE VIEW windows AS SELECT sum(x) FILTER (WHERE y) OVER w AS s FROM t WINDOW w AS (PARTITION BY k);
CREATE VIEW comments AS SELECT /* a ; comment */ 1 AS x -- ${not_needed}
FROM t;
CREATE VIEW parameters AS SELECT * FROM ${source} WHERE y >= ${begin_year} AND y IN (${years});
CREATE VIEW differences AS SELECT x FROM a MINUS SELECT x FROM b;
CREATE VIEW joins AS SELECT a.x FROM a SEMI JOIN b ON a.x = b.x LEFT ANTI JOIN c ON a.x = c.x;
CREATE VIEW patterns AS SELECT x RLIKE 'a' AS a, lower(t.y) NOT RLIKE "b\\.c" AS b FROM t;
CREATE VIEW quoted AS SELECT `${odd}`.x FROM `${odd}`;
CREATE VIEW qualified_patterns AS SELECT * FROM sales.t WHERE sales.t.x RLIKE 'p' AND NOT sales.t.y RLIKE sales.t.z;
CREATE VIEW lateral_free AS SELECT explode(items) AS item FROM (SELECT * FROM a UNION DISTINCT SELECT * FROM b) AS u;
CREATE VIEW scalar AS SELECT (SELECT max(x) FROM a) AS m, CASE WHEN EXISTS (SELECT 1 FROM b) THEN 1 ELSE 2 END AS c;
CREATE VIEW joined AS SELECT a.*, b.y FROM a JOIN (b JOIN c USING (k)) ON a.k = b.k, d CROSS JOIN e NATURAL JOIN f;
CREATE VIEW shadowed AS WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH a AS (SELECT * FROM a) SELECT * FROM a) b, s.a;
CREATE VIEW sets AS SELECT x FROM a EXCEPT SELECT x FROM STREAM b INTERSECT SELECT x FROM read_files('p');
CREATE VIEW grouped AS SELECT k, sum(x) FROM a GROUP BY GROUPING SETS ((k), ()) ORDER BY k NULLS LAST LIMIT 10 OFFSET 2;
CREATE VIEW types AS SELECT CAST(s AS STRUCT<a: INT, b: ARRAY<STRING>>) AS c, CAST(x AS MAP<STRING, BIGINT>) AS m FROM t;
