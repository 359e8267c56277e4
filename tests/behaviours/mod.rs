//! The rules of the reference pages on backfills, and what the product adds to them: each test is named after
//! its rule in the list of behaviours (`b_17_…`), or says the rule in its name.
//!
//! - `once_flows.rs`: what a once flow is: one time, durable, apart from the live flow
//! - `live_flow.rs`: the streaming flow beside it: triggers, start bounds, limits, several flows at a time
//! - `definitions.rs`: what may be written and how: SQL, TOML, parameters, comments
//! - `sources.rs`: which files are read, once each
//! - `schema.rs`: columns of history and live data together
//! - `traps.rs`: edits and renames that would read or drop rows without being asked to
//! - `layers.rs`: bronze, silver, gold; materialized views
//! - `table_streams.rs`: `STREAM table`, by version
//! - `table_feeds.rs`: what the versions of a table did to its rows, and AUTO CDC over it
//! - `refresh.rs`: selections, full refreshes, resets, failures and what they leave
//! - `order.rs`: `depends_on` as it runs; `order_rules.rs`: what it may say and how it is shown
//! - `snapshot_backfill.rs`: AUTO CDC FROM SNAPSHOT once, beside a change feed (C); `snapshots.rs`: snapshots alone
//! - `scd_migration.rs`: a seed of AUTO CDC ONCE and a live feed (D)
//! - `change_errors.rs`: the conditions of AUTO CDC, and where each is tested
//! - `change_feeds.rs`: AUTO CDC beyond that: clauses, several feeds, ties, refused batches
//! - `change_targets.rs`: what its targets hold to: drift, columns, resets, files; what others read of them
//! - `cutover.rs`: a seed and a live feed into one table, key by key; `histories.rs`: what is asked about such tables
//! - `other_engines.rs`: the tables as others read them, in any time zone

mod change_errors;
mod change_feeds;
mod change_targets;
mod changes;
mod cutover;
mod definitions;
mod histories;
mod layers;
mod live_flow;
mod once_flows;
mod order;
mod order_rules;
mod other_engines;
mod refresh;
mod scd_migration;
mod schema;
mod snapshot_backfill;
mod snapshots;
mod sources;
mod table_feeds;
mod table_streams;
mod traps;

use crate::fixture::{EVENTS, TestWorkspace};

/// The reference page's second pipeline over fixture F: a live flow from 2025 on, a once flow per earlier year.
fn registration(years: &[i32]) -> String {
    let backfills: Vec<String> = years.iter().map(|year| backfill(*year)).collect();
    format!("CREATE OR REFRESH STREAMING TABLE raw;\n{}\n{}", live(""), backfills.join("\n"))
}

/// The live flow; `options` are further ones of read_files: `, maxFilesPerTrigger => 1`.
fn live(options: &str) -> String {
    format!(
        "CREATE FLOW live AS INSERT INTO raw BY NAME SELECT * FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json', \
         modifiedAfter => '2024-12-31T23:59:59.999+00:00'{options}) WHERE year(timestamp) >= '2025';"
    )
}

fn backfill(year: i32) -> String {
    format!(
        "CREATE FLOW backfill_{year} AS INSERT INTO ONCE raw BY NAME SELECT * FROM read_files('{EVENTS}/year={year}/*/*', \
         format => 'json');"
    )
}

/// A workspace of one streaming table `raw` over all of fixture F, read by its default flow.
fn one_table(options: &str) -> TestWorkspace {
    TestWorkspace::new(&format!(
        "CREATE OR REFRESH STREAMING TABLE raw AS SELECT * FROM STREAM read_files('{EVENTS}/*/*/*', format => 'json'{options});"
    ))
}
