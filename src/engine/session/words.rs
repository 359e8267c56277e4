//! DataFusion's errors in the user's words: Spark's names of types, no advice about DataFusion's own code.
//!
//! Not here: where an error is (`plan`), names that are not found (`spelling`).

use std::sync::LazyLock;

use datafusion::error::DataFusionError;
use regex::{Captures, Regex};

use super::plan_error::name_differently;

/// An error for people.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Worded {
    /// Lower case, no final period.
    pub message: String,
    pub help: Option<String>,
    /// A piece of the query, as a pattern, where the error is if nothing else tells.
    pub place: Option<String>,
}

/// The error's own words without DataFusion's preamble, stack and advice.
pub(super) fn plain(error: &DataFusionError) -> String {
    let text = error.strip_backtrace();
    let text = text.split("\n\nbacktrace").next().unwrap_or_default();
    let prefixes =
        ["Error during planning: ", "This feature is not implemented: ", "Schema error: ", "Execution error: "];
    let text = prefixes.iter().fold(text, |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
    text.trim().trim_end_matches('.').to_string()
}

/// A rule: what DataFusion says, and what is said instead.
type Rule = (Regex, fn(&Captures<'_>) -> Worded);

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    /// What a message looks like, and how its parts are put in Spark's words.
    type Rule = (&'static str, fn(&Captures<'_>) -> Worded);
    let rules: [Rule; 13] = [
        // A signature of ours knows best.
        (r"[Ff]unction '(\w+)' takes other arguments: `([^`]+)`", |found| Worded {
            message: format!("`{}` takes other arguments: `{}`", &found[1], &found[2]),
            help: Some("`flowbench functions` shows what each function takes".to_string()),
            place: Some(word(&found[1])),
        }),
        (r"[Ff]unction '(\w+)' cannot take (.+?) as its argument (\d+): `([^`]+)`", |found| Worded {
            message: format!("argument {} of `{}` can't be {}: `{}`", &found[3], &found[1], &found[2], &found[4]),
            help: None,
            place: Some(word(&found[1])),
        }),
        (r"(?s)No function matches the given name and argument types '(\w+)\((.*?)\)'\. You might", |found| Worded {
            message: match &found[2] {
                "" => format!("`{}` takes arguments", &found[1]),
                types => format!("`{}` can't take ({types})", &found[1]),
            },
            help: Some("cast the arguments; `flowbench functions` shows what each function takes".to_string()),
            place: Some(word(&found[1])),
        }),
        (r"[Cc]annot coerce arithmetic expression (.+?) ([-+*/%]) (.+?) to valid types", |found| Worded {
            message: format!("`{}` can't be computed with {} and {}", &found[2], &found[1], &found[3]),
            help: Some("cast one of them, such as CAST(… AS BIGINT)".to_string()),
            place: None,
        }),
        (r#"column "([^"]+)" must appear in the GROUP BY clause"#, |found| {
            let column = last_part(&found[1]);
            Worded {
                message: format!("column `{column}` is neither in GROUP BY nor in an aggregate"),
                help: Some(format!("add it to GROUP BY, or take one of its values: any_value({column})")),
                place: Some(word(column)),
            }
        }),
        (r"(?i)cannot create filter with non-boolean predicate '(.+)' returning (.+)", |found| Worded {
            message: format!("a condition is true or false, `{}` is {}", last_part(&found[1]), &found[2]),
            help: Some("compare it with something".to_string()),
            place: Some(word(last_part(&found[1]))),
        }),
        (r#"require unique expression names but the expression "(.+?)" at position"#, |found| {
            let name = found[1].rsplit_once(" AS ").map_or_else(|| last_part(&found[1]), |(_, alias)| alias);
            Worded {
                message: format!("the query gives two columns named `{name}`"),
                help: Some(name_differently(name)),
                place: None,
            }
        }),
        (r"(?i)^field (\w+) not found in struct", |found| Worded {
            message: format!("the struct has no field `{}`", &found[1]),
            help: Some("`flowbench describe` shows the fields of a dataset's columns".to_string()),
            place: Some(format!(r"\.\s*`?{}\b", regex::escape(&found[1]))),
        }),
        (r"(?i)cannot access field at argument 1: type (.+) is not Struct", |found| Worded {
            message: format!("only structs and maps have fields, not {}", &found[1]),
            help: Some("an array's items are taken by position: items[0].name".to_string()),
            place: None,
        }),
        (r"(?i)ast node in sqltorel: Lambda", |_| Worded {
            message: "`->` makes a function, which is no value".to_string(),
            help: Some("give it to a function that takes one: transform(items, item -> item + 1)".to_string()),
            place: Some("->".to_string()),
        }),
        (r"(?i)ast node in sqltorel: (\w+)", |found| Worded {
            message: format!("this expression ({}) is not supported", &found[1]),
            ..Worded::default()
        }),
        (r"(?s)Cannot cast string '(.*)' to value of (\S+) type", |found| Worded {
            message: format!(
                "cannot read `{}` as {} (CAST_INVALID_INPUT); `try_cast` gives NULL instead",
                found[1].chars().take(60).collect::<String>(),
                &found[2]
            ),
            ..Worded::default()
        }),
        (r"(?i)Interval Expression with last_field", |_| Worded {
            message: "intervals of two units (`… TO …`) are not supported".to_string(),
            help: Some("write the units out: INTERVAL '1 year 2 months'".to_string()),
            place: Some(r"\bTO\b".to_string()),
        }),
    ];
    rules.map(|(pattern, say)| (Regex::new(pattern).expect("the pattern is constant"), say)).into_iter().collect()
});

/// Says an error's text to the user.
pub(super) fn say(text: &str) -> Worded {
    let text = spark_types(text);
    if let Some(said) = by_rule(&text) {
        return said;
    }
    let text = text.split("\n\nThis issue was likely caused").next().unwrap_or_default();
    let text = text.split("\nThis issue was likely caused").next().unwrap_or_default();
    let text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    Worded {
        message: lower_first(text.trim_start_matches("Internal error: ").trim_end_matches('.')),
        ..Worded::default()
    }
}

fn by_rule(text: &str) -> Option<Worded> {
    RULES.iter().find_map(|(pattern, say)| pattern.captures(text).map(|found| say(&found)))
}

/// Says an error of a query that ran.
pub(crate) fn in_words(error: &DataFusionError) -> String {
    let text = plain(error);
    by_rule(&spark_types(&text)).map_or(text, |said| said.message)
}

/// Arrow's names of types → Spark's, from the inside out.
fn spark_types(text: &str) -> String {
    static NAMES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"\b(Large)?Utf8(View)?\b", "STRING"),
            (r"\bU?Int64\b", "BIGINT"),
            (r"\bU?Int32\b", "INT"),
            (r"\bU?Int16\b", "SMALLINT"),
            (r"\bU?Int8\b", "TINYINT"),
            (r"\bFloat64\b", "DOUBLE"),
            (r"\bFloat(32|16)\b", "FLOAT"),
            (r"\bDate(32|64)\b", "DATE"),
            (r#"\bTimestamp\((ns|µs|ms|s), "[^"]*"\)"#, "TIMESTAMP"),
            (r"\bTimestamp\((ns|µs|ms|s)\)", "TIMESTAMP_NTZ"),
            (r"\b(Duration|Interval)\(\w+\)", "INTERVAL"),
            (r"\bDecimal\d+\((\d+), (-?\d+)\)", "DECIMAL($1,$2)"),
        ]
        .map(|(pattern, name)| (Regex::new(pattern).expect("the pattern is constant"), name))
        .into()
    });
    static NESTED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r", field: '[^']*'\)", ")"),
            (r"\b(?:Large)?List\((?:non-null )?([^()]*(?:\(\d+,\d+\)[^()]*)*)\)", "ARRAY<$1>"),
            (r"\bStruct\(([^()]*(?:\(\d+,\d+\)[^()]*)*)\)", "STRUCT<$1>"),
        ]
        .map(|(pattern, name)| (Regex::new(pattern).expect("the pattern is constant"), name))
        .into()
    });
    let mut text =
        NAMES.iter().fold(text.to_string(), |text, (pattern, name)| pattern.replace_all(&text, *name).into());
    // Each round closes the innermost.
    for _ in 0..8 {
        let next = NESTED.iter().fold(text.clone(), |text, (pattern, name)| pattern.replace_all(&text, *name).into());
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn word(name: &str) -> String {
    format!(r"\b{}\b", regex::escape(name))
}

/// `t.id` → `id`.
fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// `ORDER BY …` stays as it is.
pub(super) fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !chars.clone().next().is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_called_as_in_spark() {
        for (arrow, spark) in [
            ("Utf8 + List(Int64, field: 'element')", "STRING + ARRAY<BIGINT>"),
            ("List(List(Decimal128(10, 2)))", "ARRAY<ARRAY<DECIMAL(10,2)>>"),
            (r#"Struct("a": Int64, "t": Timestamp(µs, "UTC"))"#, r#"STRUCT<"a": BIGINT, "t": TIMESTAMP>"#),
            ("count(Int64(1))", "count(BIGINT(1))"),
        ] {
            assert_eq!(spark_types(arrow), spark);
        }
    }
}
