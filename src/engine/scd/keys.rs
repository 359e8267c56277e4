//! The list of keys, page by page: one way through the side table, as far as a page goes.

use pipeline::scd::{KeyFlags, KeyPage, KeyRequest, KeySummary, key_words};

use super::history::{event_count, flags};
use super::origin::Origins;
use super::scd_table::ScdTable;
use super::value;
use crate::auto_cdc::side::KeyRange;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// So many keys are made texts at once.
const KEYS_AT_ONCE: usize = 1024;

/// A key that the flags let through.
struct Candidate {
    key: Vec<u8>,
    newest: Vec<u8>,
    versions: usize,
    events: usize,
    flags: KeyFlags,
}

impl Engine {
    /// A page of the keys of a table of AUTO CDC, in order of their values.
    ///
    /// # Errors
    /// `unknown-dataset`, `not-auto-cdc`, `nothing-stored`; `bad-cursor`.
    pub async fn scd_keys(&self, table: &str, request: &KeyRequest) -> Result<KeyPage> {
        let table = self.scd_table(table).await?;
        let origins = Origins::read(self.state_for_reading()?.as_ref(), &table.view.manifest().flows)?;
        let mut page = KeyPage {
            table: table.label.clone(),
            scd_type: table.spec.scd_type,
            key_columns: table.key_names.clone(),
            keys: Vec::new(),
            next: None,
        };
        let search = request.search.as_deref().map(str::to_lowercase);
        let range = match &request.after {
            Some(cursor) => KeyRange { from: Some(after(cursor)?), to: None },
            None => KeyRange::all(),
        };
        let mut scan = table.view.scan(&range)?;
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut last = Vec::new();
        loop {
            let members = scan.next()?;
            let is_end = members.is_none();
            if let Some(members) = members {
                let stored = ScdTable::stored(members[0].key, &members);
                let told = table.told(&stored);
                let flags = flags(&table, &told, &origins.late(&told.members));
                if request.only.is_none_or(|only| flags.fit(only)) {
                    candidates.push(Candidate {
                        key: members[0].key.to_vec(),
                        newest: members[0].sequence.to_vec(),
                        versions: told.rows.len(),
                        events: event_count(&table, &told),
                        flags,
                    });
                }
            }
            // Without a search every candidate counts; one more than asked for tells whether there is more.
            let is_enough = search.is_none() && page.keys.len() + candidates.len() > request.limit;
            if !is_end && !is_enough && candidates.len() < KEYS_AT_ONCE {
                continue;
            }
            for (key, candidate) in summaries(&table, std::mem::take(&mut candidates))? {
                if search.as_deref().is_some_and(|search| !key_words(&candidate.key).to_lowercase().contains(search)) {
                    continue;
                }
                if page.keys.len() == request.limit {
                    page.next = Some(cursor(&last));
                    return Ok(page);
                }
                page.keys.push(candidate);
                last = key;
            }
            if is_end {
                return Ok(page);
            }
        }
    }
}

fn summaries(table: &ScdTable, candidates: Vec<Candidate>) -> Result<Vec<(Vec<u8>, KeySummary)>> {
    let keys = candidates.iter().map(|candidate| candidate.key.as_slice());
    let keys = value::key_parts(&table.key_codec, &table.key_names, keys)?;
    let newest = candidates.iter().map(|candidate| candidate.newest.as_slice());
    let newest = value::sequences(&table.sequence_codec, newest)?;
    let texts = keys.into_iter().zip(newest);
    let summary = |(candidate, (key, newest)): (Candidate, _)| {
        let Candidate { versions, events, flags, .. } = candidate;
        (candidate.key, KeySummary { key, versions, events, newest, flags })
    };
    Ok(candidates.into_iter().zip(texts).map(summary).collect())
}

/// The text that stands for a key as the last of a page.
pub(super) fn cursor(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first key behind a cursor's.
///
/// # Errors
/// `bad-cursor`.
pub(super) fn after(cursor: &str) -> Result<Vec<u8>> {
    let digits: Option<Vec<u8>> = cursor.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    match digits.filter(|digits| digits.len().is_multiple_of(2)) {
        // Keys are prefix-free: the least string behind a key's is below every later key.
        Some(digits) => Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).chain([0]).collect()),
        None => Err(Error::user(
            "bad-cursor",
            format!("`{cursor}` is no place in a list of keys"),
            "take `next` of the page before",
        )),
    }
}
