//! Spark's SQL functions: those of DataFusion, of datafusion-spark, of datafusion-functions-json, and ours for
//! what they lack or mean differently. Later ones replace earlier ones of the same name; a test names each.
//!
//! - `mod.rs`: registering and listing;
//! - `function`: one scalar function as a value: parameters, type of the result, how it is computed;
//! - `moments`: DATE, TIMESTAMP or text as a date or an instant in the session's time zone;
//! - `dates`: parts of dates, calendar arithmetic, truncation;
//! - `patterns`: Spark's date patterns (`yyyy-MM-dd HH:mm:ss`); `timestamps`: the functions that use them;
//! - `casts`: `string(x)`, `date(x)`, `timestamp(x)`: what CAST means in Spark; names of types;
//! - `json`: paths into JSON text, `from_json`, `to_json`;
//! - `texts`, `numbers`, `collections`: the rest, by what they work on.
//!
//! Errors at run time are those of Spark's ANSI mode, Databricks' default: a cast that fails, a division by
//! zero, an index out of bounds end the query; `try_cast`, `try_divide`, `try_to_timestamp`, `get` and
//! `try_element_at` give NULL instead.
//!
//! Not here: syntax (`crate::session`); aggregates that are only other spellings (`session::syntax`).

mod casts;
mod collections;
mod dates;
mod function;
mod json;
mod moments;
mod numbers;
mod patterns;
mod texts;
mod timestamps;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use datafusion::error::Result;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateDefaults};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, WindowUDF};

pub(crate) use casts::type_name;
use function::Function;

/// Registers all functions; what is registered later wins.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    let all = &*ALL;
    for (_, function) in &all.scalars {
        state.register_udf(Arc::clone(function))?;
    }
    for (_, function) in &all.aggregates {
        state.register_udaf(Arc::clone(function))?;
    }
    for (_, function) in &all.windows {
        state.register_udwf(Arc::clone(function))?;
    }
    for (_, function) in &all.higher_order {
        state.register_higher_order_function(Arc::clone(function))?;
    }
    Ok(())
}

/// What a function gives for rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionKind {
    /// A value for a row.
    Scalar,
    /// A value for a group of rows.
    Aggregate,
    /// A value for a row, from the rows around it.
    Window,
    /// Rows.
    Table,
}

/// Where a function comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum FunctionSource {
    #[serde(rename = "datafusion")]
    DataFusion,
    #[serde(rename = "datafusion-spark")]
    DataFusionSpark,
    #[serde(rename = "datafusion-functions-json")]
    Json,
    #[serde(rename = "flowbench")]
    Flowbench,
}

/// A function as `flowbench functions` lists it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FunctionInfo {
    pub name: String,
    pub aliases: Vec<String>,
    pub kind: FunctionKind,
    /// `date_format(timestamp, pattern)`.
    pub signature: String,
    pub description: String,
    pub source: FunctionSource,
}

/// Returns the functions that a query can call, by name, each once.
pub fn list() -> Vec<FunctionInfo> {
    let mut by_name: BTreeMap<(String, FunctionKind), FunctionInfo> = BTreeMap::new();
    let mut add = |info: FunctionInfo| {
        // A later function takes the names of earlier ones away, aliases too.
        let taken: Vec<String> = std::iter::once(&info.name).chain(&info.aliases).cloned().collect();
        for earlier in by_name.values_mut().filter(|earlier| earlier.kind == info.kind) {
            earlier.aliases.retain(|alias| !taken.contains(alias));
        }
        by_name.retain(|(name, kind), _| *kind != info.kind || !taken.contains(name));
        by_name.insert((info.name.clone(), info.kind), info);
    };
    let text = |name: &str, documentation: Option<&datafusion::logical_expr::Documentation>| match documentation {
        Some(documentation) => (documentation.syntax_example.clone(), first_sentence(&documentation.description)),
        None => (format!("{name}(…)"), String::new()),
    };
    for (source, function) in &ALL.scalars {
        let (signature, description) = text(function.name(), function.documentation());
        let (name, aliases) = (function.name().to_string(), function.aliases().to_vec());
        add(FunctionInfo { name, aliases, kind: FunctionKind::Scalar, signature, description, source: *source });
    }
    for (source, function) in &ALL.higher_order {
        let (signature, description) = text(function.name(), function.documentation());
        let (name, aliases) = (function.name().to_string(), function.aliases().to_vec());
        add(FunctionInfo { name, aliases, kind: FunctionKind::Scalar, signature, description, source: *source });
    }
    for (source, function) in &ALL.aggregates {
        let (signature, description) = text(function.name(), function.documentation());
        let (name, aliases) = (function.name().to_string(), function.aliases().to_vec());
        add(FunctionInfo { name, aliases, kind: FunctionKind::Aggregate, signature, description, source: *source });
    }
    for (source, function) in &ALL.windows {
        let (signature, description) = text(function.name(), function.documentation());
        let (name, aliases) = (function.name().to_string(), function.aliases().to_vec());
        add(FunctionInfo { name, aliases, kind: FunctionKind::Window, signature, description, source: *source });
    }
    for (name, kind, signature, description) in SPELLINGS {
        add(FunctionInfo {
            name: name.to_string(),
            aliases: vec![],
            kind: *kind,
            signature: signature.to_string(),
            description: description.to_string(),
            source: FunctionSource::Flowbench,
        });
    }
    by_name.into_values().filter(|info| !info.name.starts_with("__")).collect()
}

/// What `session::syntax` turns into other functions.
const SPELLINGS: &[(&str, FunctionKind, &str, &str)] = &[
    ("any_value", FunctionKind::Aggregate, "any_value(x [, ignoreNull])", "Some value of the group"),
    ("approx_percentile", FunctionKind::Aggregate, "approx_percentile(x, p)", "Approximate percentile"),
    ("count_if", FunctionKind::Aggregate, "count_if(condition)", "Number of rows for which the condition is true"),
    ("exists", FunctionKind::Scalar, "exists(array, x -> condition)", "True if an element meets the condition"),
    ("explode", FunctionKind::Table, "explode(array | map)", "A row for each element"),
    ("explode_outer", FunctionKind::Table, "explode_outer(array)", "A row for each element, one if there is none"),
    ("filter", FunctionKind::Scalar, "filter(array, x -> condition)", "The elements that meet the condition"),
    ("first", FunctionKind::Aggregate, "first(x [, ignoreNull])", "The first value of the group"),
    ("last", FunctionKind::Aggregate, "last(x [, ignoreNull])", "The last value of the group"),
    ("max_by", FunctionKind::Aggregate, "max_by(x, y)", "The x of the row with the greatest y"),
    ("min_by", FunctionKind::Aggregate, "min_by(x, y)", "The x of the row with the least y"),
    ("percentile", FunctionKind::Aggregate, "percentile(x, p)", "Exact percentile, interpolated"),
    ("percentile_approx", FunctionKind::Aggregate, "percentile_approx(x, p)", "Approximate percentile"),
    ("posexplode", FunctionKind::Table, "posexplode(array)", "A row for each element, with its position from 0"),
    ("struct", FunctionKind::Scalar, "struct(a, b AS c, …)", "A struct with the fields a and c"),
    ("transform", FunctionKind::Scalar, "transform(array, x -> value)", "The array with each element replaced"),
];

/// All names that a query can call, aliases too.
pub(crate) fn names() -> Vec<String> {
    list().into_iter().flat_map(|info| std::iter::once(info.name).chain(info.aliases)).collect()
}

/// Calls one of the scalar functions by its name.
///
/// # Panics
/// If there is no such function: the names in this crate are constants, tried by tests.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let function = BY_NAME.get(name).expect("the function is registered");
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), args))
}

fn first_sentence(text: &str) -> String {
    let text = text.trim();
    let end = text.find(". ").or_else(|| text.find(".\n")).or_else(|| text.find('\n')).unwrap_or(text.len());
    text[..end].trim_end_matches('.').to_string()
}

type Sourced<T> = (FunctionSource, Arc<T>);

/// In the order of registration.
struct All {
    scalars: Vec<Sourced<ScalarUDF>>,
    aggregates: Vec<Sourced<AggregateUDF>>,
    windows: Vec<Sourced<WindowUDF>>,
    higher_order: Vec<Sourced<HigherOrderUDF>>,
}

static ALL: LazyLock<All> = LazyLock::new(|| {
    use FunctionSource::{DataFusion, DataFusionSpark, Flowbench, Json};
    use datafusion_functions_json::udfs as json_udfs;
    let mut scalars: Vec<Sourced<ScalarUDF>> = Vec::new();
    scalars.extend(SessionStateDefaults::default_scalar_functions().into_iter().map(|f| (DataFusion, f)));
    scalars.extend(
        datafusion_spark::all_default_scalar_functions()
            .into_iter()
            .filter(|f| !LEFT_OUT.contains(&f.name()))
            .map(|f| (DataFusionSpark, f)),
    );
    // Without the operators `->` and `?` of that library, which are not Spark's.
    let json = [
        json_udfs::json_get_udf(),
        json_udfs::json_get_bool_udf(),
        json_udfs::json_get_float_udf(),
        json_udfs::json_get_int_udf(),
        json_udfs::json_get_json_udf(),
        json_udfs::json_get_array_udf(),
        json_udfs::json_as_text_udf(),
        json_udfs::json_get_str_udf(),
        json_udfs::json_contains_udf(),
        json_udfs::json_length_udf(),
        json_udfs::json_object_keys_udf(),
    ];
    scalars.extend(json.into_iter().map(|f| (Json, f)));
    // DataFusion's and datafusion-spark's functions under names that only Spark has.
    for (name, alias) in SCALAR_ALIASES {
        let known = scalars.iter().rev().find(|(_, function)| function.name() == *name);
        let (source, function) = known.expect("aliases name functions that exist");
        let renamed = function.as_ref().clone().with_aliases([*alias]);
        scalars.push((*source, Arc::new(renamed)));
    }
    let ours = [
        casts::FUNCTIONS,
        collections::FUNCTIONS,
        dates::FUNCTIONS,
        json::FUNCTIONS,
        numbers::FUNCTIONS,
        texts::FUNCTIONS,
        timestamps::FUNCTIONS,
    ];
    let ours = ours.into_iter().flatten().map(|f| Arc::new(ScalarUDF::new_from_impl(Function::new(f))));
    scalars.extend(ours.map(|f| (Flowbench, f)));
    scalars.push((Flowbench, Arc::new(ScalarUDF::new_from_impl(timestamps::Now::default()))));
    scalars.push((Flowbench, Arc::new(ScalarUDF::new_from_impl(json::FromJson::default()))));

    let mut aggregates: Vec<Sourced<AggregateUDF>> = Vec::new();
    aggregates.extend(SessionStateDefaults::default_aggregate_functions().into_iter().map(|f| (DataFusion, f)));
    aggregates.extend(datafusion_spark::all_default_aggregate_functions().into_iter().map(|f| (DataFusionSpark, f)));
    for (name, alias) in AGGREGATE_ALIASES {
        let known = aggregates.iter().rev().find(|(_, function)| function.name() == *name);
        let (source, function) = known.expect("aliases name functions that exist");
        aggregates.push((*source, Arc::new(function.as_ref().clone().with_aliases([*alias]))));
    }

    let windows = SessionStateDefaults::default_window_functions().into_iter().map(|f| (DataFusion, f)).collect();
    let higher_order =
        SessionStateDefaults::default_higher_order_functions().into_iter().map(|f| (DataFusion, f)).collect();
    All { scalars, aggregates, windows, higher_order }
});

static BY_NAME: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| by_name(&ALL.scalars));

fn by_name(functions: &[Sourced<ScalarUDF>]) -> HashMap<String, Arc<ScalarUDF>> {
    let mut by_name = HashMap::new();
    for (_, function) in functions {
        by_name.insert(function.name().to_string(), Arc::clone(function));
        for alias in function.aliases() {
            by_name.insert(alias.clone(), Arc::clone(function));
        }
    }
    by_name
}

/// Functions of datafusion-spark that are not Spark's, or not replayable.
const LEFT_OUT: &[&str] = &["spark_cast", "shuffle"];

/// Spark's names of functions that exist under others.
const SCALAR_ALIASES: &[(&str, &str)] = &[
    ("regexp_like", "rlike"),
    ("regexp_like", "regexp"),
    ("ends_with", "endswith"),
    ("starts_with", "startswith"),
    ("strpos", "instr"),
    ("substr_index", "substring_index"),
    ("generate_series", "sequence"),
    ("format_string", "printf"),
    ("lower", "lcase"),
    ("upper", "ucase"),
    ("length", "len"),
    ("if", "iff"),
    ("sha1", "sha"),
    ("signum", "sign"),
    ("substring", "substr"),
    ("array_remove_all", "array_remove"),
];

const AGGREGATE_ALIASES: &[(&str, &str)] =
    &[("approx_distinct", "approx_count_distinct"), ("bool_and", "every"), ("bool_or", "some"), ("var", "variance")];

#[cfg(test)]
mod tests;
