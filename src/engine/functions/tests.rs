//! Runs the tables of cases in `tests/functions`, and names what replaces what.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::AsArray;
use datafusion::prelude::SessionContext;

use super::{FunctionKind, FunctionSource, list};
use crate::session::{flow_session, plan, tests::session_in};

/// The one value of the expression as text; `error: …` if it fails.
async fn evaluate(session: &SessionContext, expression: &str) -> String {
    let sql = format!("SELECT CAST(({expression}) AS STRING) AS value");
    let result = async {
        let plan = plan(session, &sql, vec![]).await.map_err(|errors| errors[0].message.clone())?;
        let frame = flow_session(session).execute_logical_plan(plan).await.map_err(|error| error.to_string())?;
        let batches = frame.collect().await.map_err(|error| error.to_string())?;
        let column = batches.iter().find(|batch| batch.num_rows() > 0).ok_or("no rows")?.column(0).clone();
        let text = column.as_string_opt::<i32>().ok_or("not text")?;
        Ok::<String, String>(if column.is_null(0) { "NULL".to_string() } else { text.value(0).to_string() })
    };
    result.await.unwrap_or_else(|error: String| format!("error: {error}"))
}

/// Runs a file of `expression => expected` lines.
async fn check(session: &SessionContext, cases: &str) -> usize {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in cases.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let (expression, expected) = line.rsplit_once(" => ").unwrap_or_else(|| panic!("no ` => ` in: {line}"));
        let found = evaluate(session, expression).await;
        let is_right = match expected.strip_prefix("error: ") {
            Some(words) => found.starts_with("error: ") && found.contains(words),
            None => found == expected.replace("<empty>", ""),
        };
        count += 1;
        if !is_right {
            wrong.push(format!("{expression}\n    expected {expected}\n    found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    count
}

macro_rules! cases {
    ($name:ident, $file:literal, $zone:literal) => {
        #[tokio::test]
        async fn $name() {
            let cases = include_str!(concat!("../../../tests/functions/", $file));
            assert!(check(&session_in($zone), cases).await > 0);
        }
    };
}

cases!(casts_and_operators_mean_what_spark_means, "operators.cases", "UTC");
cases!(collections_mean_what_spark_means, "collections.cases", "UTC");
cases!(json_means_what_spark_means, "json.cases", "UTC");
cases!(texts_and_numbers_mean_what_spark_means, "texts.cases", "UTC");
cases!(dates_follow_the_sessions_time_zone, "zones.cases", "America/Los_Angeles");
cases!(dates_mean_what_spark_means, "dates.cases", "UTC");

/// A function of ours or of Spark's that replaces another is named here, so that a new version of a library
/// can't change a function unseen.
#[test]
fn replaced_functions_are_known() {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut replaced = BTreeSet::new();
    for (source, function) in &super::ALL.scalars {
        for name in std::iter::once(function.name()).chain(function.aliases().iter().map(String::as_str)) {
            let meant = format!("{} of {source:?}", function.name());
            if let Some(earlier) = seen.insert(name.to_string(), meant.clone())
                && earlier != meant
            {
                replaced.insert(format!("{name}: {earlier} -> {meant}"));
            }
        }
    }
    let found = replaced.into_iter().collect::<Vec<_>>().join("\n");
    let expected = include_str!("../../../tests/functions/replaced.txt");
    assert_eq!(found.trim(), expected.trim(), "tests/functions/replaced.txt is out of date:\n{found}\n---");
}

#[test]
fn list_names_each_function_once() {
    let functions = list();
    let names: BTreeSet<_> = functions.iter().map(|info| (&info.name, info.kind)).collect();
    assert_eq!(names.len(), functions.len());
    let year = functions.iter().find(|info| info.name == "year").unwrap();
    assert_eq!((year.kind, year.source), (FunctionKind::Scalar, FunctionSource::Flowbench));
    assert!(functions.iter().any(|info| info.name == "sum" && info.kind == FunctionKind::Aggregate));
    assert!(functions.len() > 300, "{}", functions.len());
}
