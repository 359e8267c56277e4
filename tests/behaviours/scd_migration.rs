//! A seed of AUTO CDC ONCE, which replays the history of a legacy table, and the live feed behind it (behaviours D).
//! Not here: D-6, D-8, D-11 and D-13, which are checks of their own.

use super::changes::{changes, errors, feed, put, table, validate, without_retries};
use crate::fixture::{ForeignTable, Outcome, TestWorkspace};

const LEGACY: &str = "customer_id BIGINT, name STRING, valid_from TIMESTAMP, valid_to TIMESTAMP, is_current BOOLEAN";
const LIVE: &str = "customer_id BIGINT, name STRING, change_timestamp TIMESTAMP";

/// The two sources: a legacy table that was loaded in one go, and the bronze table of the new feed.
fn sources() -> String {
    format!(
        "CREATE STREAMING TABLE legacy.customers_scd2 AS SELECT * FROM STREAM read_files('data/legacy', format => 'json', \
         schema => '{LEGACY}', schemaEvolutionMode => 'none');\n\
         CREATE STREAMING TABLE customers_cdc_bronze AS SELECT * FROM STREAM read_files('data/live', format => 'json', \
         schema => '{LIVE}', schemaEvolutionMode => 'none', maxFilesPerTrigger => 1);\n"
    )
}

fn table_of(scd_type: u8) -> String {
    format!("CREATE OR REFRESH STREAMING TABLE customers_history;\n{}{}", seed(scd_type), live(scd_type))
}

fn seed(scd_type: u8) -> String {
    format!(
        "CREATE FLOW customers_history_seed AS AUTO CDC ONCE INTO customers_history FROM stream(legacy.customers_scd2)\n\
         KEYS (customer_id) SEQUENCE BY valid_from COLUMNS * EXCEPT (valid_from, valid_to, is_current)\n\
         STORED AS SCD TYPE {scd_type};\n"
    )
}

fn live(scd_type: u8) -> String {
    format!(
        "CREATE FLOW customers_history_cdc AS AUTO CDC INTO customers_history FROM stream(customers_cdc_bronze)\n\
         KEYS (customer_id) SEQUENCE BY change_timestamp COLUMNS * EXCEPT (change_timestamp)\n\
         STORED AS SCD TYPE {scd_type};\n"
    )
}

fn legacy(id: u32, name: &str, from: u32) -> String {
    format!(
        "{{\"customer_id\":{id},\"name\":\"{name}\",\"valid_from\":\"{from}-01-01T00:00:00Z\",\"is_current\":true}}"
    )
}

fn change(id: u32, name: &str, year: u32) -> String {
    format!("{{\"customer_id\":{id},\"name\":\"{name}\",\"change_timestamp\":\"{year}-01-01T00:00:00Z\"}}")
}

fn put_all(workspace: &TestWorkspace, folder: &str, number: u32, rows: &[String]) {
    put(workspace, folder, number, &rows.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Six legacy rows of three customers, two live changes.
fn fed(sql: &str) -> TestWorkspace {
    let workspace = without_retries(sql);
    put_all(
        &workspace,
        "legacy",
        0,
        &[
            legacy(1, "Ada", 2020),
            legacy(1, "Ada L", 2021),
            legacy(2, "Bo", 2020),
            legacy(2, "Bob", 2022),
            legacy(2, "Bobby", 2023),
            legacy(3, "Cy", 2021),
        ],
    );
    put_all(&workspace, "live", 0, &[change(1, "Ada Lovelace", 2025), change(3, "Cyd", 2025)]);
    workspace
}

/// The history by years.
fn history(workspace: &TestWorkspace) -> Vec<String> {
    workspace.rows(
        "SELECT customer_id, name, year(__START_AT), year(__END_AT) FROM customers_history ORDER BY customer_id, __START_AT",
    )
}

const HISTORY: [&str; 8] = [
    "1|Ada|2020|2021",
    "1|Ada L|2021|2025",
    "1|Ada Lovelace|2025|null",
    "2|Bo|2020|2022",
    "2|Bob|2022|2023",
    "2|Bobby|2023|null",
    "3|Cy|2021|2025",
    "3|Cyd|2025|null",
];

fn seed_state(outcome: &Outcome) -> String {
    outcome.flow_state("customers_history_seed")
}

/// D-1, D-4: the legacy rows are replayed once, from a table that was loaded in one go, and the feed goes on.
#[test]
fn d_1_d_4_a_legacy_history_is_replayed_once_and_the_feed_goes_on() {
    let workspace = fed(&(sources() + &table_of(2)));
    let outcome = workspace.run_ok(&[]);
    assert_eq!(changes(&outcome, "customers_history_seed", "upserted"), 6);
    assert_eq!(history(&workspace), HISTORY);
    assert_eq!(
        workspace.columns("customers_history"),
        ["customer_id BIGINT", "name STRING", "__START_AT TIMESTAMP", "__END_AT TIMESTAMP"]
    );
    // Later rows of the legacy table are not read any more.
    put_all(&workspace, "legacy", 1, &[legacy(9, "late", 2024)]);
    assert_eq!(seed_state(&workspace.run_ok(&[])), "IDLE");
    assert_eq!(history(&workspace), HISTORY);
}

/// D-4 with the legacy table as another program wrote it.
#[test]
fn d_4_the_seed_reads_a_delta_table_of_another_program() {
    let workspace = without_retries(
        "CREATE STREAMING TABLE customers_history;\n\
         CREATE FLOW seed AS AUTO CDC ONCE INTO customers_history FROM stream(legacy.ids) KEYS (id) SEQUENCE BY id STORED AS SCD TYPE 2;",
    );
    workspace.write(
        "flowbench.toml",
        "[limits]\nretries = 0\n[[source]]\nname = \"legacy.ids\"\npath = \"legacy\"\nformat = \"delta\"\n",
    );
    let legacy = ForeignTable::at(&workspace.path("legacy"));
    legacy.append(1..=3);
    legacy.append(4..=4);
    workspace.run_ok(&[]);
    assert_eq!(table(&workspace, "customers_history"), ["1|1|null", "2|2|null", "3|3|null", "4|4|null"]);
    legacy.append(5..=5);
    assert_eq!(workspace.run_ok(&[]).flow_state("seed"), "IDLE");
    assert_eq!(workspace.count("customers_history"), 4);
}

/// D-2: what is only appended has no place in such a table; the message names both flows and the way.
#[test]
fn d_2_an_insert_once_into_the_table_of_a_change_feed_is_refused() {
    let workspace = fed(&(sources()
        + "CREATE STREAMING TABLE customers_history;\n"
        + &live(2)
        + "CREATE FLOW seed AS INSERT INTO ONCE customers_history BY NAME SELECT * FROM legacy.customers_scd2;"));
    let diagnostic = validate(&workspace, "insert-into-change-target");
    let message = diagnostic["message"].as_str().unwrap();
    assert!(message.contains("`seed`") && message.contains("`customers_history_cdc`"), "{message}");
    assert!(diagnostic["help"].as_str().unwrap().contains("AUTO CDC ONCE INTO customers_history"), "{diagnostic}");
    assert_eq!(workspace.run(&[]).code, Some(3));
    assert!(!workspace.path(".flowbench").exists(), "nothing is written");
}

/// D-3: the target is declared, before or behind its flows.
#[test]
fn d_3_the_target_is_declared_anywhere_in_the_files() {
    let workspace = fed(&(sources() + &seed(2) + &live(2)));
    let help = validate_all(&workspace, "unknown-target");
    assert!(help.iter().all(|help| help.contains("STREAMING TABLE customers_history")) && help.len() == 2, "{help:?}");
    workspace.define(&(live(2) + &seed(2) + "CREATE STREAMING TABLE customers_history;\n" + &sources()));
    workspace.run_ok(&[]);
    assert_eq!(history(&workspace), HISTORY);
}

fn validate_all(workspace: &TestWorkspace, code: &str) -> Vec<String> {
    let found = workspace.command(&["validate"]).diagnostics(code);
    found.iter().map(|diagnostic| diagnostic["help"].as_str().unwrap_or_default().to_string()).collect()
}

/// D-5: AUTO CDC makes the two columns itself.
#[test]
fn d_5_the_source_has_no_columns_of_the_intervals() {
    for (columns, clause) in [
        ("id BIGINT, __START_AT TIMESTAMP, seq BIGINT", "STORED AS SCD TYPE 2"),
        ("id BIGINT, __end_at TIMESTAMP, seq BIGINT", "STORED AS SCD TYPE 2"),
    ] {
        let workspace = without_retries(&format!(
            "CREATE STREAMING TABLE t;\n{}\
             CREATE FLOW seed AS AUTO CDC ONCE INTO t FROM STREAM(feed) KEYS (id) SEQUENCE BY seq {clause};",
            feed("feed", columns)
        ));
        put(&workspace, "feed", 0, &["{\"id\":1,\"seq\":1}"]);
        assert_eq!(errors(&workspace), ["reserved-name"], "{columns}");
    }
    let workspace = fed(&(sources() + &table_of(2)));
    workspace.run_ok(&[]);
    assert_eq!(
        workspace.rows(
            "SELECT name, year(__START_AT), year(__END_AT) FROM customers_history WHERE customer_id = 2 ORDER BY 2"
        ),
        ["Bo|2020|2022", "Bob|2022|2023", "Bobby|2023|null"]
    );
}

/// D-7: columns of validity would become columns of the target and signals of change; a warning writes the clause.
#[test]
fn d_7_columns_of_one_side_are_warned_of_with_the_clause_that_leaves_them_out() {
    let workspace = fed(&(sources()
        + &table_of(2)
            .replace("COLUMNS * EXCEPT (valid_from, valid_to, is_current)", "")
            .replace("COLUMNS * EXCEPT (change_timestamp)", "")));
    let helps = validate_all(&workspace, "columns-of-one-flow");
    assert!(helps[0].contains("COLUMNS * EXCEPT (valid_from, valid_to, is_current)"), "{helps:?}");
    assert!(helps[1].contains("COLUMNS * EXCEPT (change_timestamp)"), "{helps:?}");
    // It is a warning: the table is made, with NULL where a flow lacks a column.
    workspace.run_ok(&[]);
    assert_eq!(
        workspace.rows("SELECT name, valid_from, is_current, year(change_timestamp) FROM customers_history WHERE customer_id = 3 ORDER BY __START_AT"),
        ["Cy|2021-01-01 00:00:00|true|null", "Cyd|null|null|2025"]
    );
}

/// D-9: the page's text, letter for letter, runs.
#[test]
fn d_9_the_text_of_the_page_runs() {
    let workspace = fed(&sources());
    workspace.write("transformations/page.sql", include_str!("../parse/reference_scd_migration.sql"));
    workspace.run_ok(&[]);
    assert_eq!(history(&workspace), HISTORY);
}

/// D-10: keys, SCD type and type of the sequence agree; a cast makes them.
#[test]
fn d_10_the_flows_agree_on_keys_scd_type_and_type_of_the_sequence() {
    let workspace = fed("");
    let with = |seed: String| {
        workspace.define(&(sources() + "CREATE STREAMING TABLE customers_history;\n" + &live(2) + &seed))
    };
    with(seed(2).replace("KEYS (customer_id)", "KEYS (name)"));
    assert_eq!(errors(&workspace), ["keys-differ"]);
    with(seed(1));
    assert_eq!(errors(&workspace), ["scd-types-differ"]);
    with(seed(2).replace("BY valid_from", "BY CAST(valid_from AS DATE)"));
    assert_eq!(errors(&workspace), ["sequence-types-differ"]);
    with(seed(2).replace("BY valid_from", "BY CAST(CAST(valid_from AS DATE) AS TIMESTAMP)"));
    assert_eq!(errors(&workspace), [""; 0]);
    workspace.run_ok(&[]);
    assert_eq!(history(&workspace), HISTORY);
}

/// D-12: the same shape keeps the latest rows only, if both flows say so.
#[test]
fn d_12_the_same_with_the_latest_rows_only() {
    let workspace = fed(&(sources() + &table_of(1)));
    workspace.run_ok(&[]);
    assert_eq!(table(&workspace, "customers_history"), ["1|Ada Lovelace", "2|Bobby", "3|Cyd"]);
    workspace.define(&(sources() + &table_of(1).replace(&live(1), &live(2))));
    assert_eq!(errors(&workspace), ["auto-cdc-drift", "scd-types-differ"], "from one another, and from the table");
}

/// D-14: the seed is done once, and the table is the same whichever flow came first, and after a full refresh.
#[test]
fn d_14_the_order_of_seed_and_feed_does_not_matter() {
    for scd_type in [1, 2] {
        let shown = |workspace: &TestWorkspace| table(workspace, "customers_history");
        let mut tables = Vec::new();
        for order in
            [["customers_history_seed", "customers_history_cdc"], ["customers_history_cdc", "customers_history_seed"]]
        {
            let workspace = fed(&(sources() + &table_of(scd_type)));
            // A stale change, a tie, and one that only the feed has.
            put_all(&workspace, "live", 1, &[change(2, "stale", 2021), change(3, "tie", 2021), change(4, "new", 2024)]);
            workspace.run_ok(&["--refresh", "legacy.customers_scd2,customers_cdc_bronze"]);
            for flow in order {
                workspace.run_ok(&["--flow", flow]);
            }
            tables.push(shown(&workspace));
            assert_eq!(seed_state(&workspace.run_ok(&[])), "IDLE");
            let outcome = workspace.run_ok(&["--full-refresh", "customers_history"]);
            assert_eq!(seed_state(&outcome), "COMPLETED");
            tables.push(shown(&workspace));
            assert_eq!(seed_state(&workspace.run_ok(&[])), "IDLE");
        }
        let workspace = fed(&(sources() + &table_of(scd_type)));
        put_all(&workspace, "live", 1, &[change(2, "stale", 2021), change(3, "tie", 2021), change(4, "new", 2024)]);
        workspace.run_ok(&[]);
        tables.push(shown(&workspace));
        assert!(tables.iter().all(|table| *table == tables[0]), "SCD type {scd_type}: {tables:#?}");
        let tie = tables[0].iter().any(|row| row.starts_with("3|tie|2021"));
        assert_eq!(tie, scd_type == 2, "the live feed wins the tie: {tables:#?}");
    }
}
