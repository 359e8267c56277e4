"""The same change feed in DuckDB, to compare with.

  duckdb_auto_cdc.py apply KIND DATABASE FOLDER      applies the files that are new in FOLDER, in order of name
  duckdb_auto_cdc.py compare KIND DATABASE ROWS.csv  compares the table with the rows of another one
KIND: scd1-merge, scd1, scd2

`apply` prints {"batch_s": [seconds of each file]}. Each file is one transaction, together with the note that it is
done. Files may bring late and repeated events; a key and sequence stand for one event.

Type 1 keeps one row a key, that of the newest event, deletes too, which the view hides: an older event that comes
later must lose against a delete as well. `scd1-merge` is what is usually written by hand: MERGE INTO a table whose
primary key is the key. `scd1` is faster: a table without a primary key, DELETE and INSERT. Type 2 keeps all events and
makes the rows of the keys in a file anew.

`compare` prints {"ours": rows, "theirs": rows, "keys": how many differ, "examples": [...]}.
"""
import json
import pathlib
import sys
import time

import duckdb

COLUMNS = {
    "name": "VARCHAR",
    "email": "VARCHAR",
    "phone": "VARCHAR",
    "street": "VARCHAR",
    "city": "VARCHAR",
    "country": "VARCHAR",
    "segment": "VARCHAR",
    "credit_limit": "BIGINT",
    "balance": "DOUBLE",
}
PERIOD = {"__START_AT": "TIMESTAMPTZ", "__END_AT": "TIMESTAMPTZ"}
NAMES = ", ".join(COLUMNS)
TYPED = ", ".join(f"{name} {of}" for name, of in COLUMNS.items())


def create(db, kind):
    db.execute("CREATE TABLE IF NOT EXISTS done (file VARCHAR PRIMARY KEY)")
    if kind in ("scd1", "scd1-merge"):
        primary_key = "PRIMARY KEY" if kind == "scd1-merge" else ""
        db.execute(f"""CREATE TABLE IF NOT EXISTS newest (
            customer_id BIGINT {primary_key}, {TYPED}, seq TIMESTAMPTZ, is_deleted BOOLEAN)""")
        db.execute(f"""CREATE VIEW IF NOT EXISTS customers AS
            SELECT customer_id, {NAMES} FROM newest WHERE NOT is_deleted""")
    else:
        db.execute(f"""CREATE TABLE IF NOT EXISTS events (
            customer_id BIGINT, seq TIMESTAMPTZ, is_delete BOOLEAN, {TYPED})""")
        db.execute(f"""CREATE TABLE IF NOT EXISTS customers (
            customer_id BIGINT, {TYPED}, __START_AT TIMESTAMPTZ, __END_AT TIMESTAMPTZ)""")


def newest_events(file):
    return f"""SELECT customer_id, {NAMES}, seq, op = 'DELETE' AS is_deleted FROM read_parquet('{file}')
        QUALIFY row_number() OVER (PARTITION BY customer_id ORDER BY seq DESC) = 1"""


def merge_type_1(db, file):
    # The key is not among what is set: DuckDB would take it out of its index and put it in again.
    news = ", ".join(f"{name} = batch.{name}" for name in [*COLUMNS, "seq", "is_deleted"])
    db.execute(f"""MERGE INTO newest USING ({newest_events(file)}) AS batch USING (customer_id)
        WHEN MATCHED AND batch.seq > newest.seq THEN UPDATE SET {news}
        WHEN NOT MATCHED THEN INSERT""")


def apply_type_1(db, file):
    # MERGE, or INSERT ON CONFLICT, is as fast or slower for a large file (DuckDB 2.0), and takes seconds for a
    # thousand events into a million rows.
    db.execute(f"CREATE OR REPLACE TEMP TABLE batch AS {newest_events(file)}")
    db.execute("""DELETE FROM batch USING newest
        WHERE newest.customer_id = batch.customer_id AND newest.seq >= batch.seq""")
    db.execute("DELETE FROM newest WHERE customer_id IN (SELECT customer_id FROM batch)")
    db.execute("INSERT INTO newest SELECT * FROM batch")


def apply_type_2(db, file):
    db.execute(f"""CREATE OR REPLACE TEMP TABLE batch AS
        SELECT DISTINCT ON (customer_id, seq) customer_id, seq, op = 'DELETE' AS is_delete, {NAMES}
        FROM read_parquet('{file}')""")
    db.execute("INSERT INTO events SELECT batch.* FROM batch ANTI JOIN events USING (customer_id, seq)")
    db.execute("CREATE OR REPLACE TEMP TABLE touched AS SELECT DISTINCT customer_id FROM batch")
    db.execute("DELETE FROM customers WHERE customer_id IN (SELECT customer_id FROM touched)")
    db.execute(f"""
        INSERT INTO customers
        WITH beside AS (
            SELECT *, row({NAMES}) AS attributes, lag(attributes) OVER key AS before, lag(is_delete) OVER key AS gone
            FROM events SEMI JOIN touched USING (customer_id)
            WINDOW key AS (PARTITION BY customer_id ORDER BY seq)
        ), steps AS (
            -- An event that repeats what the key is already is no step.
            SELECT * FROM beside WHERE is_delete OR gone IS NOT FALSE OR attributes IS DISTINCT FROM before
        ), rows AS (
            SELECT *, lead(seq) OVER (PARTITION BY customer_id ORDER BY seq) AS until FROM steps
        )
        SELECT customer_id, {NAMES}, seq, until FROM rows WHERE NOT is_delete""")


APPLY = {"scd1-merge": merge_type_1, "scd1": apply_type_1, "scd2": apply_type_2}


def apply(db, kind, folder):
    create(db, kind)
    done = {file for (file,) in db.execute("SELECT file FROM done").fetchall()}
    seconds = []
    for file in sorted(pathlib.Path(folder).glob("*.parquet")):
        if file.name in done:
            continue
        started = time.perf_counter()
        db.execute("BEGIN")
        APPLY[kind](db, file)
        db.execute("INSERT INTO done VALUES (?)", [file.name])
        db.execute("COMMIT")
        seconds.append(time.perf_counter() - started)
    return {"batch_s": seconds}


def compare(db, kind, file):
    columns = {"customer_id": "BIGINT"} | COLUMNS | (PERIOD if kind == "scd2" else {})
    names = ", ".join(columns)
    db.execute(f"CREATE TEMP VIEW ours AS SELECT {names} FROM read_csv('{file}', header = true, columns = {columns})")
    db.execute(f"CREATE TEMP VIEW theirs AS SELECT {names} FROM customers")
    # Not every row of both sides in memory, only a number a key: the sum of its rows' hashes.
    differing = db.execute(f"""
        WITH sides AS (
            SELECT customer_id, 1 AS side, hash({names})::HUGEINT AS hash FROM ours
            UNION ALL SELECT customer_id, -1, -hash({names})::HUGEINT FROM theirs)
        SELECT customer_id FROM sides GROUP BY customer_id HAVING sum(hash) <> 0 OR sum(side) <> 0
        ORDER BY customer_id""").fetchall()
    examples = []
    for (key,) in differing[:3]:
        for side, other in (("ours", "theirs"), ("theirs", "ours")):
            rows = lambda table: f"SELECT * FROM {table} WHERE customer_id = {key}"
            alone = db.execute(f"{rows(side)} EXCEPT ALL {rows(other)} ORDER BY ALL LIMIT 2").fetchall()
            examples += [f"only in {side}: {', '.join(map(str, row))}" for row in alone]
    count = lambda table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return {"ours": count("ours"), "theirs": count("theirs"), "keys": len(differing), "examples": examples}


command, kind, database, path = sys.argv[1:]
with duckdb.connect(database) as db:
    db.execute("SET TimeZone = 'UTC'")
    print(json.dumps({"apply": apply, "compare": compare}[command](db, kind, path)))
