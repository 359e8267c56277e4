-- Every way to read something.
CREATE TEMPORARY VIEW a AS SELECT * FROM STREAM t;
CREATE TEMPORARY VIEW b AS SELECT s.x, t.y FROM STREAM(sales.orders) s JOIN stream(t) ON s.id = t.id;
CREATE TEMPORARY VIEW c AS SELECT orders.id FROM STREAM sales.orders;
CREATE TEMPORARY VIEW d AS SELECT sales.orders.id, sales.orders.address.city FROM sales.orders;
CREATE TEMPORARY VIEW e AS
  SELECT * FROM STREAM orders WITH (SKIPCHANGECOMMITS = TRUE, STARTINGVERSION = 3) o WHERE o.x > 1;
CREATE TEMPORARY VIEW f AS SELECT * FROM STREAM read_stream("main.bronze.t", skipChangeCommits => true);
CREATE TEMPORARY VIEW g AS
  SELECT * FROM STREAM(read_files('${root}/x', `cloudFiles.maxFilesPerTrigger` => 10, header => TRUE,
    modifiedAfter => date_sub(current_date(), 1), sep => '\t'));
CREATE TEMPORARY VIEW h AS SELECT * FROM read_files("p", "json", map("cloudFiles.inferColumnTypes", "true")) f;
CREATE TEMPORARY VIEW i AS SELECT * FROM cloud_files("p", "csv", map("header", "true"));
CREATE TEMPORARY VIEW j AS
  WITH t AS (SELECT * FROM t), u AS (SELECT * FROM t)
  SELECT * FROM t, u, v WHERE EXISTS (SELECT 1 FROM w WHERE w.id = t.id) AND v.x IN (SELECT x FROM v);
CREATE TEMPORARY VIEW k AS
  SELECT a.x FROM (SELECT * FROM s.t UNION ALL SELECT * FROM s.u) a LEFT SEMI JOIN s.t b ON a.x = b.x;
CREATE TEMPORARY VIEW l AS SELECT stream, a stream FROM stream WHERE stream > 1;
CREATE TEMPORARY VIEW m AS SELECT *, _metadata.file_path, _metadata.file_name AS file FROM read_files('p');
CREATE TEMPORARY VIEW n AS
  SELECT f.* EXCEPT (x), g.*, f._metadata.file_size FROM STREAM read_files('p') f JOIN read_files('q') g ON f.id = g.id;
CREATE TEMPORARY VIEW o AS SELECT * FROM STREAM(LIVE.bronze) JOIN LIVE.dim ON bronze.k = dim.k;
CREATE TEMPORARY VIEW p AS SELECT id FROM range(3) JOIN range(1, 5) AS r ON range.id = r.id;
CREATE TEMPORARY VIEW q AS VALUES (1, 'a'), (2, 'b');
CREATE TEMPORARY VIEW r AS (SELECT 1 AS x) UNION (SELECT x FROM `odd name`.`t.1`);
CREATE TEMPORARY VIEW s AS WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n;
CREATE TEMPORARY VIEW u AS SELECT x FROM STREAM a UNION ALL SELECT x FROM STREAM b;
