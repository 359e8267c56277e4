//! The tables of state.db and how an older file becomes a newer one.
//!
//! `PRAGMA user_version` counts the steps of [`MIGRATIONS`] that a file has seen. A step that was released is
//! never edited; a change is a new step.

use rusqlite::{Connection, Result};

/// The version this program writes.
pub const NEWEST: i64 = MIGRATIONS.len() as i64;

/// Reads the file's version; 0 is a file without tables.
pub fn version(connection: &Connection) -> Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Runs the steps after `version`, all in one transaction.
pub fn migrate(connection: &Connection, version: i64) -> Result<()> {
    if version == NEWEST {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    for step in &MIGRATIONS[usize::try_from(version).unwrap_or(0)..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", NEWEST)?;
    transaction.commit()
}

const MIGRATIONS: [&str; 3] = [TABLES, VIEWS, SHADOW_DEFINITION];

const TABLES: &str = "
CREATE TABLE datasets (
    dataset                 TEXT PRIMARY KEY,           -- the name in lower case, without absent parts
    name                    TEXT NOT NULL,              -- as the user spells it
    kind                    TEXT NOT NULL,              -- streaming_table | materialized_view
    table_path              TEXT NOT NULL,              -- relative to the storage folder
    generation              INTEGER NOT NULL,           -- of the table's content; a full refresh makes the next
    last_generation         INTEGER NOT NULL,           -- the highest number ever given; none is given twice
    is_active               INTEGER NOT NULL,           -- 0: no longer in the files, the table is kept
    definition              TEXT NOT NULL,              -- JSON, as last applied to the table
    shadow_generation       INTEGER,                    -- being built by a full refresh
    shadow_update_id        INTEGER,
    shadow_phase            TEXT,                       -- building | promoting
    inputs_fingerprint      TEXT,                       -- JSON; what a materialized view was computed from
    refreshed_us            INTEGER,
    created_us              INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE flows (
    flow_id                 TEXT PRIMARY KEY,           -- UUID, part of the Delta application id; kept on rename
    name                    TEXT NOT NULL COLLATE NOCASE,
    dataset                 TEXT NOT NULL,
    kind                    TEXT NOT NULL,              -- append | once | complete
    generation              INTEGER NOT NULL,           -- the checkpoint in force
    last_generation         INTEGER NOT NULL,
    shadow_generation       INTEGER,                    -- the checkpoint that a full refresh is building
    definition              TEXT,                       -- the query as last run
    definition_hash         TEXT,
    created_us              INTEGER NOT NULL,
    last_run_us             INTEGER,
    is_retired              INTEGER NOT NULL DEFAULT 0, -- no longer in the files
    UNIQUE (dataset, name)
) WITHOUT ROWID;

CREATE TABLE checkpoints (
    flow_id                 TEXT NOT NULL,
    generation              INTEGER NOT NULL,
    reason                  TEXT NOT NULL,              -- what made it: created | full refresh | reset | imported …
    created_us              INTEGER NOT NULL,
    next_batch_id           INTEGER NOT NULL DEFAULT 0, -- ids below it were used; none is used twice
    forgotten_batch_id      INTEGER,                    -- the newest batch whose input is no longer recorded
    done_us                 INTEGER,                    -- a once flow is done
    done_update_id          INTEGER,
    done_rows               INTEGER,
    done_definition_hash    TEXT,
    PRIMARY KEY (flow_id, generation)
) WITHOUT ROWID;

CREATE TABLE sources (
    source_id               INTEGER PRIMARY KEY,
    flow_id                 TEXT NOT NULL,
    generation              INTEGER NOT NULL,
    source                  TEXT NOT NULL,              -- the source's key in the flow
    schema                  TEXT,                       -- JSON; fixed once stored, widened by schema evolution
    table_id                TEXT,                       -- of a Delta source: a table made anew has another
    start_options           TEXT,                       -- JSON; those that only the first start obeys
    offset                  TEXT,                       -- the end of what was committed
    created_us              INTEGER NOT NULL,
    UNIQUE (flow_id, generation, source)
);

CREATE TABLE micro_batches (
    flow_id                 TEXT NOT NULL,
    generation              INTEGER NOT NULL,
    batch_id                INTEGER NOT NULL,
    state                   TEXT NOT NULL,              -- planned | committed
    update_id               INTEGER,
    files                   INTEGER NOT NULL,
    bytes                   INTEGER NOT NULL,
    rows_read               INTEGER,
    rows_written            INTEGER,
    rows_rescued            INTEGER,
    duration_ms             INTEGER,
    table_version           INTEGER,
    planned_us              INTEGER NOT NULL,
    committed_us            INTEGER,
    PRIMARY KEY (flow_id, generation, batch_id)
) WITHOUT ROWID;

CREATE TABLE batch_inputs (
    flow_id                 TEXT NOT NULL,
    generation              INTEGER NOT NULL,
    batch_id                INTEGER NOT NULL,
    source_id               INTEGER NOT NULL,
    start_offset            TEXT,                       -- exclusive; absent: from the beginning
    end_offset              TEXT,                       -- inclusive; absent for files, which are in `files`
    PRIMARY KEY (flow_id, generation, batch_id, source_id)
) WITHOUT ROWID;

CREATE TABLE files (
    source_id               INTEGER NOT NULL,
    path                    TEXT NOT NULL,
    size_bytes              INTEGER NOT NULL,
    modified_us             INTEGER NOT NULL,
    batch_id                INTEGER NOT NULL,
    PRIMARY KEY (source_id, path)
) WITHOUT ROWID;

CREATE TABLE updates (
    update_id               INTEGER PRIMARY KEY AUTOINCREMENT,
    update_uuid             TEXT NOT NULL UNIQUE,
    cause                   TEXT NOT NULL,
    request                 TEXT NOT NULL,              -- JSON
    state                   TEXT NOT NULL,
    pid                     INTEGER NOT NULL,
    host                    TEXT NOT NULL,
    started_us              INTEGER NOT NULL,
    ended_us                INTEGER,
    error                   TEXT
);

CREATE TABLE update_flows (
    update_id               INTEGER NOT NULL,
    flow                    TEXT NOT NULL,
    dataset                 TEXT NOT NULL,
    state                   TEXT NOT NULL,
    batches                 INTEGER NOT NULL DEFAULT 0,
    rows_read               INTEGER NOT NULL DEFAULT 0,
    rows_written            INTEGER NOT NULL DEFAULT 0,
    rows_rescued            INTEGER NOT NULL DEFAULT 0,
    bytes_read              INTEGER NOT NULL DEFAULT 0,
    backlog_files           INTEGER,
    backlog_bytes           INTEGER,
    started_us              INTEGER,
    ended_us                INTEGER,
    error_code              TEXT,
    error                   TEXT,
    PRIMARY KEY (update_id, dataset, flow)
) WITHOUT ROWID;

CREATE TABLE events (
    sequence                INTEGER PRIMARY KEY AUTOINCREMENT,
    time_us                 INTEGER NOT NULL,
    level                   TEXT NOT NULL,              -- INFO | WARN | ERROR | METRICS
    event_type              TEXT NOT NULL,
    update_id               INTEGER,
    dataset                 TEXT,
    flow                    TEXT,
    batch_id                INTEGER,
    message                 TEXT NOT NULL,
    error                   TEXT,
    details                 TEXT NOT NULL               -- JSON, keyed by event_type
);
CREATE INDEX events_of_update ON events (update_id);
";

/// The definition (JSON) that the generation being promoted was built with; it is in force when that is.
const SHADOW_DEFINITION: &str = "ALTER TABLE datasets ADD COLUMN shadow_definition TEXT";

const VIEWS: &str = "
CREATE VIEW readable_updates AS
SELECT update_id, cause, state,
       strftime('%Y-%m-%dT%H:%M:%fZ', started_us / 1e6, 'unixepoch') AS started,
       strftime('%Y-%m-%dT%H:%M:%fZ', ended_us / 1e6, 'unixepoch') AS ended,
       error
FROM updates;

CREATE VIEW readable_batches AS
SELECT flows.dataset, flows.name AS flow, generation, batch_id, state, files, bytes, rows_read, rows_written,
       rows_rescued, duration_ms, table_version,
       strftime('%Y-%m-%dT%H:%M:%fZ', planned_us / 1e6, 'unixepoch') AS planned,
       strftime('%Y-%m-%dT%H:%M:%fZ', committed_us / 1e6, 'unixepoch') AS committed
FROM micro_batches JOIN flows USING (flow_id, generation);

CREATE VIEW readable_files AS
SELECT flows.dataset, flows.name AS flow, source, path, size_bytes,
       strftime('%Y-%m-%dT%H:%M:%fZ', modified_us / 1e6, 'unixepoch') AS modified, batch_id
FROM files JOIN sources USING (source_id) JOIN flows USING (flow_id, generation);

CREATE VIEW readable_events AS
SELECT sequence, strftime('%Y-%m-%dT%H:%M:%fZ', time_us / 1e6, 'unixepoch') AS time, level, event_type,
       update_id, dataset, flow, batch_id, message, error, details
FROM events;
";
