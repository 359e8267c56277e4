"""The same load in DuckDB, to compare with: duckdb_backfill.py schema|inference EVENTS OUT.parquet

Prints the number of rows. Both sides use all cores, read the same files and write Snappy Parquet; DuckDB
writes one file and no table format around it.
"""
import sys

import duckdb

COLUMNS = {
    "event_id": "VARCHAR",
    "event_time": "TIMESTAMPTZ",
    "event_type": "VARCHAR",
    "user_id": "BIGINT",
    "user": "STRUCT(name VARCHAR, email VARCHAR, "
            "address STRUCT(city VARCHAR, country VARCHAR, lat DOUBLE, lon DOUBLE))",
    "device": "STRUCT(os VARCHAR, app_version VARCHAR, screen STRUCT(w BIGINT, h BIGINT))",
    "plan": "VARCHAR",
    "amount_cents": "BIGINT",
    "tags": "VARCHAR[]",
    "marketing_opt_in": "BOOLEAN",
    "referrer": "VARCHAR",
}

mode, events, out = sys.argv[1:]
read = f"read_json('{events}/year=*/*/*/*.json'"
if mode == "schema":
    read += f", format='newline_delimited', columns={COLUMNS}, hive_partitioning=false"
connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")
copied = connection.execute(f"COPY (SELECT * FROM {read})) TO '{out}' (FORMAT parquet, COMPRESSION snappy)")
print(copied.fetchone()[0])
