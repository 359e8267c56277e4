//! Functions of text where DataFusion's differ from Spark's: regular expressions, `split`, `locate`.
//!
//! Patterns are those of the `regex` crate: Java's without look-around and back references.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, ListBuilder, StringArray, StringBuilder};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use regex::Regex;

use super::function::{Call, Definition, Param, Returns};

const TWO_TEXTS: &[Param] = &[Param::Text, Param::Text];
const TWO_TEXTS_AND_NUMBER: &[Param] = &[Param::Text, Param::Text, Param::Long];

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new(
        "split",
        TWO_TEXTS_AND_NUMBER,
        Returns::TextArray,
        split,
        "split(text, pattern [, limit])",
        "The parts between matches of a regular expression; at most `limit` if it is positive",
    )
    .optional(1),
    Definition::new(
        "regexp_extract",
        TWO_TEXTS_AND_NUMBER,
        Returns::Text,
        regexp_extract,
        "regexp_extract(text, pattern [, group])",
        "The group (1 by default) of the first match; empty if there is none",
    )
    .optional(1),
    Definition::new(
        "regexp_extract_all",
        TWO_TEXTS_AND_NUMBER,
        Returns::TextArray,
        regexp_extract_all,
        "regexp_extract_all(text, pattern [, group])",
        "The group (1 by default) of all matches",
    )
    .optional(1),
    Definition::new(
        "regexp_substr",
        TWO_TEXTS,
        Returns::Text,
        |call| {
            let mut patterns = Patterns::default();
            call.rows::<StringArray, _>(|row| {
                let (Some(text), Some(pattern)) = (call.str(0, row), call.str(1, row)) else { return Ok(None) };
                Ok(patterns.get(pattern)?.find(text).map(|found| found.as_str().to_string()))
            })
        },
        "regexp_substr(text, pattern)",
        "The first match, NULL if there is none",
    ),
    Definition::new(
        "regexp_replace",
        &[Param::Text, Param::Text, Param::Text, Param::Long],
        Returns::Text,
        regexp_replace,
        "regexp_replace(text, pattern, replacement [, position])",
        "The text with all matches replaced; `$1` is a group",
    )
    .optional(1),
    Definition::new(
        "locate",
        TWO_TEXTS_AND_NUMBER,
        Returns::Int,
        locate,
        "locate(part, text [, position])",
        "Where the part first stands at or after the position, from 1; 0 if nowhere",
    )
    .optional(1)
    .aliases(&["position", "charindex"]),
    Definition::new(
        "left",
        &[Param::Text, Param::Long],
        Returns::Text,
        |call| {
            call.rows::<StringArray, _>(|row| {
                let (Some(text), Some(count)) = (call.str(0, row), call.long(1, row)) else { return Ok(None) };
                Ok(Some(text.chars().take(count.max(0) as usize).collect::<String>()))
            })
        },
        "left(text, count)",
        "The first characters",
    ),
    Definition::new(
        "right",
        &[Param::Text, Param::Long],
        Returns::Text,
        |call| {
            call.rows::<StringArray, _>(|row| {
                let (Some(text), Some(count)) = (call.str(0, row), call.long(1, row)) else { return Ok(None) };
                let skipped = text.chars().count().saturating_sub(count.max(0) as usize);
                Ok(Some(text.chars().skip(skipped).collect::<String>()))
            })
        },
        "right(text, count)",
        "The last characters",
    ),
];

/// The last pattern, compiled; a constant one is compiled once.
#[derive(Default)]
struct Patterns(Option<(String, Regex)>);

impl Patterns {
    fn get(&mut self, pattern: &str) -> Result<&Regex> {
        if self.0.as_ref().is_none_or(|(known, _)| known != pattern) {
            let regex = Regex::new(pattern).map_err(|error| {
                exec_datafusion_err!("not a regular expression: `{pattern}`: {error} (INVALID_PARAMETER_VALUE.PATTERN)")
            })?;
            self.0 = Some((pattern.to_string(), regex));
        }
        self.0.as_ref().map(|(_, regex)| regex).ok_or_else(|| exec_datafusion_err!("no pattern"))
    }
}

/// Texts of each row as an array of arrays.
fn text_arrays<'a>(rows: usize, mut row: impl FnMut(usize) -> Result<Option<Vec<Cow<'a, str>>>>) -> Result<ArrayRef> {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for i in 0..rows {
        match row(i)? {
            Some(parts) => {
                parts.iter().for_each(|part| builder.values().append_value(part));
                builder.append(true);
            }
            None => builder.append(false),
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn split(call: &Call) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    text_arrays(call.rows, |row| {
        let (Some(text), Some(pattern)) = (call.str(0, row), call.str(1, row)) else { return Ok(None) };
        let limit = match call.has(2) {
            true => match call.long(2, row) {
                Some(limit) => limit,
                None => return Ok(None),
            },
            false => -1,
        };
        let regex = patterns.get(pattern)?;
        let mut parts: Vec<Cow<str>> = Vec::new();
        let mut at = 0;
        for found in regex.find_iter(text) {
            if limit > 0 && parts.len() as i64 == limit - 1 {
                break;
            }
            // Java: an empty match at the start splits nothing off; nor does one at the end.
            if found.is_empty() && (found.start() == 0 || found.start() == text.len()) {
                continue;
            }
            parts.push(Cow::Borrowed(&text[at..found.start()]));
            at = found.end();
        }
        parts.push(Cow::Borrowed(&text[at..]));
        Ok(Some(parts))
    })
}

/// The number of the group that is asked for; 1 by default.
fn group(call: &Call, row: usize, regex: &Regex) -> Result<Option<usize>> {
    let Some(group) = (if call.has(2) { call.long(2, row) } else { Some(1) }) else { return Ok(None) };
    match usize::try_from(group) {
        Ok(group) if group < regex.captures_len() => Ok(Some(group)),
        _ => exec_err!(
            "the pattern has {} groups, not {group} (INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX)",
            regex.captures_len() - 1
        ),
    }
}

fn regexp_extract(call: &Call) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    call.rows::<StringArray, _>(|row| {
        let (Some(text), Some(pattern)) = (call.str(0, row), call.str(1, row)) else { return Ok(None) };
        let regex = patterns.get(pattern)?;
        let Some(group) = group(call, row, regex)? else { return Ok(None) };
        let found = regex.captures(text).and_then(|found| found.get(group));
        Ok(Some(found.map_or(String::new(), |found| found.as_str().to_string())))
    })
}

fn regexp_extract_all(call: &Call) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    text_arrays(call.rows, |row| {
        let (Some(text), Some(pattern)) = (call.str(0, row), call.str(1, row)) else { return Ok(None) };
        let regex = patterns.get(pattern)?;
        let Some(group) = group(call, row, regex)? else { return Ok(None) };
        let parts = regex.captures_iter(text).map(|found| Cow::Borrowed(found.get(group).map_or("", |g| g.as_str())));
        Ok(Some(parts.collect()))
    })
}

fn regexp_replace(call: &Call) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    call.rows::<StringArray, _>(|row| {
        let (Some(text), Some(pattern), Some(by)) = (call.str(0, row), call.str(1, row), call.str(2, row)) else {
            return Ok(None);
        };
        let Some(position) = (if call.has(3) { call.long(3, row) } else { Some(1) }) else { return Ok(None) };
        let skipped = text.char_indices().nth(position.max(1) as usize - 1).map_or(text.len(), |(i, _)| i);
        let by = java_replacement(by);
        let (before, rest) = text.split_at(skipped);
        Ok(Some(format!("{before}{}", patterns.get(pattern)?.replace_all(rest, by.as_str()))))
    })
}

/// Java's `$1x` and `\$` as the regex crate's `${1}x` and `$$`.
fn java_replacement(by: &str) -> String {
    let mut out = String::new();
    let mut chars = by.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('$') => out.push_str("$$"),
                Some(c) => out.push(c),
                None => {}
            },
            '$' if chars.peek().is_some_and(char::is_ascii_digit) => {
                let digit = chars.next().unwrap_or('0');
                out.push_str(&format!("${{{digit}}}"));
            }
            c => out.push(c),
        }
    }
    out
}

fn locate(call: &Call) -> Result<ArrayRef> {
    call.rows::<Int32Array, _>(|row| {
        let (Some(part), Some(text)) = (call.str(0, row), call.str(1, row)) else { return Ok(None) };
        let Some(position) = (if call.has(2) { call.long(2, row) } else { Some(1) }) else { return Ok(Some(0)) };
        if position < 1 {
            return Ok(Some(0));
        }
        let Some(skipped) = text.char_indices().map(|(i, _)| i).chain([text.len()]).nth(position as usize - 1) else {
            return Ok(Some(0));
        };
        let found = text[skipped..].find(part).map(|i| text[..skipped + i].chars().count() as i32 + 1);
        Ok(Some(found.unwrap_or(0)))
    })
}
