//! Events that can't be applied: the words for what is refused of a micro-batch, before anything is written.

use super::events::Refused;
use crate::error::Error;

/// Unknown columns that a notice names.
const NAMES_MAX: usize = 8;
/// As much is shown of a name.
const NAME_CHARS_MAX: usize = 100;

impl Refused {
    /// The error of a micro-batch that has such events, a missing sequence first; None if it has none. `flow` begins
    /// the message, `place` says where an event stood.
    pub fn error(&self, flow: &str, batch: i64, keys: &[String], place: &dyn Fn([u64; 3]) -> String) -> Option<Error> {
        let examples = |wanted: &dyn Fn(&str) -> bool| {
            let found = self.examples.iter().filter(|(_, what)| wanted(what));
            let place = |position: Option<[u64; 3]>| match position {
                Some(position) => place(position),
                None => "a row that stands in no source".to_string(),
            };
            found
                .map(|(position, what)| format!("{} ({what} is NULL)", place(*position)))
                .collect::<Vec<_>>()
                .join(", ")
        };
        if self.null_sequences > 0 {
            return Some(Error::user(
                "null-sequence",
                format!(
                    "{flow}: batch {batch} has {} whose SEQUENCE BY is NULL, and so no place in the history of a \
                     key [AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE]: {}",
                    pipeline::number::counted(self.null_sequences, "event", "events"),
                    examples(&|what| what == "SEQUENCE BY")
                ),
                "nothing of the batch was applied; give the events a sequence, or leave them out in a temporary view that \
                 the flow reads: WHERE … IS NOT NULL",
            ));
        }
        if self.null_keys.iter().all(|count| *count == 0) {
            return None;
        }
        let counts: Vec<String> = keys
            .iter()
            .zip(&self.null_keys)
            .filter(|(_, count)| **count > 0)
            .map(|(key, count)| format!("`{key}`={count}"))
            .collect();
        Some(Error::user(
            "null-key",
            format!(
                "{flow}: batch {batch} has events without a key: {} [AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY]: {}",
                counts.join(", "),
                examples(&|what| what != "SEQUENCE BY")
            ),
            "nothing of the batch was applied; leave such events out in a temporary view that the flow reads, or let them \
             be dropped and counted: TBLPROPERTIES ('flowbench.nullKeys' = 'drop')",
        ))
    }

    /// The same where events without a key may be left out.
    pub fn without_keys(&self) -> Refused {
        Refused { null_keys: Vec::new(), ..self.clone() }
    }

    /// What `COLUMNS TO UPDATE` names and neither the flow has nor its source, `left_out`; None: nothing.
    pub fn unknown_columns(&self, left_out: &[String]) -> Option<String> {
        let is_left_out = |name: &str| left_out.iter().any(|column| column.eq_ignore_ascii_case(name));
        let unknown: Vec<String> = self
            .unknown_columns
            .iter()
            .filter(|(name, _)| !is_left_out(name))
            .map(|(name, count)| match name.char_indices().nth(NAME_CHARS_MAX) {
                None => format!("`{name}` ({count})"),
                Some((end, _)) => format!("`{}…` ({count})", &name[..end]),
            })
            .collect();
        let more = if unknown.len() > NAMES_MAX { ", …" } else { "" };
        let shown = unknown[..unknown.len().min(NAMES_MAX)].join(", ");
        (!unknown.is_empty()).then(|| format!("events name columns that the flow doesn't have: {shown}{more}"))
    }

    /// Events without a key.
    pub fn keyless(&self) -> u64 {
        self.null_keys.iter().sum()
    }
}
