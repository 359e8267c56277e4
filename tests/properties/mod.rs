//! Whatever way the input comes and the program is interrupted, the tables are those of a naive oracle: read all
//! JSON files, keep the rows.
//!
//! - `splits.rs`: files split into runs, batches, names and orders; runs stopped, rebuilt and compared
//! - `kills.rs`: the same with a process that dies at a random step
//! - `changes.rs`: AUTO CDC: histories of keys in any order, batching and mix of flows, killed in between
//! - `columns.rs`: AUTO CDC: events that say nothing of some columns, while the columns of their flows grow
//!
//! Here: the input, its oracle and the workspace. A seed that failed is kept in `failing_seeds.txt` and tried
//! first from then on.

mod changes;
mod columns;
mod kills;
mod random;
mod splits;

use std::collections::BTreeMap;
use std::path::Path;

use engine::Engine;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// A fixed number of cases; `PROPTEST_CASES` looks further.
pub fn cases(count: u32) -> ProptestConfig {
    let count = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(count);
    let seeds = FileFailurePersistence::Direct("tests/properties/failing_seeds.txt");
    ProptestConfig { failure_persistence: Some(Box::new(seeds)), ..ProptestConfig::with_cases(count) }
}

/// A source file: rows as JSON objects, the values of the fields `a` and `b` where they have them.
#[derive(Debug, Clone)]
pub struct InputFile {
    pub name: String,
    pub rows: Vec<(Option<i64>, Option<String>)>,
}

/// Files in the order in which they arrive, with names in any other order.
pub fn input_files(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<InputFile>> {
    // Blanks, signs that URLs escape, folders like those of partitions, upper and lower case.
    let name = "[a-zA-Z0-9][a-zA-Z0-9 _%+äß-]{0,6}";
    let row = (proptest::option::weighted(0.7, -3..3_i64), proptest::option::weighted(0.4, "[x-z\"\\\\é ]{0,3}"));
    let rows = proptest::collection::vec(row, 0..4);
    let names = proptest::collection::hash_set(name, count);
    (names, proptest::collection::vec(rows, 12)).prop_map(|(names, rows)| {
        let mut unique = std::collections::BTreeSet::new();
        let names = names.into_iter().filter(|name| unique.insert(name.to_lowercase()));
        names.zip(rows).map(|(name, rows)| InputFile { name, rows }).collect()
    })
}

impl InputFile {
    /// Its rows as the tables show them: `column=value`, without NULLs. `id` says which file and row it is.
    pub fn expected(&self) -> impl Iterator<Item = String> + '_ {
        self.rows.iter().enumerate().map(|(n, (a, b))| {
            let mut values = Vec::new();
            values.extend(a.map(|a| format!("a={a}")));
            values.extend(b.as_ref().map(|b| format!("b={b}")));
            values.push(format!("id={}#{n}", self.name));
            values.join(" ")
        })
    }

    pub fn write(&self, folder: &Path) {
        let mut text = String::new();
        for (n, (a, b)) in self.rows.iter().enumerate() {
            let mut row = serde_json::json!({ "id": format!("{}#{n}", self.name) });
            a.iter().for_each(|a| row["a"] = (*a).into());
            b.iter().for_each(|b| row["b"] = b.as_str().into());
            text.push_str(&format!("{row}\n"));
        }
        // As a whole or not at all, as producers are told to do.
        std::fs::write(folder.join("draft.tmp"), text).unwrap();
        std::fs::rename(folder.join("draft.tmp"), folder.join(format!("{}.json", self.name))).unwrap();
    }
}

/// What the tables hold after all of `files`.
pub fn oracle(files: &[InputFile]) -> BTreeMap<&'static str, Vec<String>> {
    let mut rows: Vec<String> = files.iter().flat_map(InputFile::expected).collect();
    rows.sort();
    let sum: i64 = files.iter().flat_map(|file| &file.rows).filter_map(|(a, _)| *a).sum();
    let has_a = files.iter().flat_map(|file| &file.rows).any(|(a, _)| a.is_some());
    let gold = match has_a {
        true => format!("n={} total={sum}", rows.len()),
        false => format!("n={}", rows.len()),
    };
    BTreeMap::from([("events", rows.clone()), ("silver", rows), ("gold", vec![gold])])
}

/// Makes a workspace: files into a table, a stream of it, a view. `options` go into read_files.
pub fn workspace(folder: &Path, options: &str) {
    let sql = format!(
        "CREATE OR REFRESH STREAMING TABLE events
         AS SELECT * EXCEPT (_rescued_data) FROM STREAM read_files('data', format => 'json', pathGlobFilter => '*.json',
            schemaHints => 'id STRING, a BIGINT', {options});
         CREATE OR REFRESH STREAMING TABLE silver AS SELECT * FROM STREAM(events);
         CREATE OR REFRESH MATERIALIZED VIEW gold AS SELECT count(*) AS n, sum(a) AS total FROM silver;"
    );
    std::fs::create_dir_all(folder.join("transformations")).unwrap();
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::write(folder.join("flowbench.toml"), "[pipeline]\nname = \"property\"\n").unwrap();
    std::fs::write(folder.join("transformations/pipeline.sql"), sql).unwrap();
}

/// The rows of the tables, as in [`InputFile::expected`].
pub async fn tables(folder: &Path) -> BTreeMap<&'static str, Vec<String>> {
    let engine = Engine::open(folder, &[]).unwrap();
    let mut tables = BTreeMap::new();
    for table in ["events", "silver", "gold"] {
        let found = engine.sql(&format!("SELECT * FROM {table}"), None).await.unwrap();
        let text = |row: &Vec<Option<String>>| {
            let values =
                found.columns.iter().zip(row).filter_map(|(column, value)| Some((&column.name, value.as_ref()?)));
            let mut values: Vec<String> = values.map(|(name, value)| format!("{name}={value}")).collect();
            values.sort();
            values.join(" ")
        };
        let mut rows: Vec<String> = found.rows.iter().map(text).collect();
        rows.sort();
        tables.insert(table, rows);
    }
    tables
}
