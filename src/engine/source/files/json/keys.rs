//! Finds the column of an object's key, and counts the keys that have none.
//!
//! Records of one source mostly have the same keys in the same order, so the key that came after the last one in
//! the record before is tried first, as bytes: `"name":` is compared in one go, quotes and colon included. Keys
//! without a column are predicted alike, so that reading few columns of wide records is fast.

use std::collections::{BTreeMap, HashMap};

use super::cursor::{Corrupt, Cursor, Text};
use super::rescue::append_json_string;

/// At most so many keys that aren't the columns' own are remembered for each object type; of the rest only the sum.
const UNKNOWN_KEYS_MAX: usize = 1000;

/// The keys of one object type: those of its columns, in their order, then the others that were seen.
pub struct Keys {
    keys: Vec<Key>,
    by_name: HashMap<Box<[u8]>, usize>,
    /// The key that a record started with.
    first: usize,
    /// Dotted path of the object; empty for the record itself.
    path: String,
    column_count: usize,
    unknown_beyond_max: u64,
}

struct Key {
    name: Box<[u8]>,
    /// `"name":`
    token: Box<[u8]>,
    meaning: Meaning,
    /// The key that came after this one the last time.
    next: usize,
    seen: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Column(usize),
    Unknown,
    OtherCase,
}

/// How often an unknown key had a value. What the latest record adds can be taken back, should it prove corrupt.
#[derive(Default)]
struct Seen {
    count: u64,
    record: u64,
    count_in_record: u64,
}

/// What a key is. `raw` is the key as written, without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match<'a> {
    Column(usize),
    /// No column has it. `key` is its place here, once it is remembered.
    Unknown {
        raw: &'a [u8],
        key: Option<usize>,
    },
    /// A column's name in other letters (`readerCaseSensitive`), or a name that is taken.
    OtherCase {
        raw: &'a [u8],
    },
}

/// Where in an object we are: remembers the last key to predict the next.
pub struct Prediction {
    last: usize,
    expected: usize,
}

const NONE: usize = usize::MAX;

impl Keys {
    /// The keys of the columns of these names, in order.
    pub fn new<'n>(names: impl Iterator<Item = &'n str>, path: &str) -> Keys {
        let mut keys = Keys {
            keys: Vec::new(),
            by_name: HashMap::new(),
            first: 0,
            path: path.into(),
            column_count: 0,
            unknown_beyond_max: 0,
        };
        names.for_each(|name| keys.add_column(name));
        keys
    }

    /// The path of member `name` of the object at `path`; a name with a dot in it is quoted by backticks.
    pub fn join(path: &str, name: &str) -> String {
        let name = if name.contains('.') { format!("`{name}`") } else { name.to_string() };
        if path.is_empty() { name } else { format!("{path}.{name}") }
    }

    /// Adds the next column.
    pub fn add_column(&mut self, name: &str) {
        self.add(name.as_bytes(), Meaning::Column(self.column_count));
        self.column_count += 1;
    }

    /// The column of this very name.
    pub fn column(&self, name: &str) -> Option<usize> {
        match self.keys[*self.by_name.get(name.as_bytes())?].meaning {
            Meaning::Column(column) => Some(column),
            Meaning::Unknown | Meaning::OtherCase => None,
        }
    }

    /// Never fills `column` from a record's key: the key is rescued as if it were written in other letters.
    pub fn hide(&mut self, column: usize) {
        let key = self.keys.iter_mut().find(|key| key.meaning == Meaning::Column(column));
        key.expect("every column has a key").meaning = Meaning::OtherCase;
    }

    /// The prediction at an object's start.
    #[inline(always)]
    pub fn start(&self) -> Prediction {
        Prediction { last: NONE, expected: self.first }
    }

    /// Reads a key and its colon, and stops at the value.
    #[inline(always)]
    pub fn read<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        prediction: &mut Prediction,
        is_case_sensitive: bool,
    ) -> Result<Match<'a>, Corrupt> {
        let rest = cursor.rest();
        if let Some(key) = self.keys.get(prediction.expected)
            && rest.starts_with(&key.token)
        {
            cursor.at += key.token.len();
            cursor.skip_space();
            let position = prediction.expected;
            *prediction = Prediction { last: position, expected: key.next };
            if let Meaning::Column(column) = key.meaning {
                return Ok(Match::Column(column));
            }
            return Ok(key.meaning.as_match(&rest[1..key.token.len() - 2], position));
        }
        self.search(cursor, prediction, is_case_sensitive)
    }

    #[inline(never)]
    fn search<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        prediction: &mut Prediction,
        is_case_sensitive: bool,
    ) -> Result<Match<'a>, Corrupt> {
        let text = cursor.key()?;
        let mut scratch = Vec::new();
        let name = text.bytes(&mut scratch);
        let position = match self.by_name.get(name) {
            Some(position) => *position,
            None => match self.column_in_other_case(name) {
                Some(column) if !is_case_sensitive && self.has_room() => self.add(name, Meaning::Column(column)),
                Some(column) if !is_case_sensitive => return Ok(Match::Column(column)),
                Some(_) => return Ok(Match::OtherCase { raw: text.raw }),
                None => return Ok(Match::Unknown { raw: text.raw, key: None }),
            },
        };
        match self.keys.get_mut(prediction.last) {
            Some(last) => last.next = position,
            None => self.first = position,
        }
        *prediction = Prediction { last: position, expected: self.keys[position].next };
        Ok(self.keys[position].meaning.as_match(text.raw, position))
    }

    fn column_in_other_case(&self, name: &[u8]) -> Option<usize> {
        let name = std::str::from_utf8(name).ok()?.to_lowercase();
        self.keys.iter().find_map(|key| match key.meaning {
            Meaning::Column(column) if String::from_utf8_lossy(&key.name).to_lowercase() == name => Some(column),
            _ => None,
        })
    }

    /// Remembers an unknown key and counts its values: `values` in the record of this number.
    #[inline]
    pub fn count_unknown(&mut self, raw: &[u8], key: Option<usize>, record: u64, values: u64) {
        let Some(position) = key.or_else(|| self.remember_unknown(raw)) else {
            self.unknown_beyond_max += values;
            return;
        };
        let seen = &mut self.keys[position].seen;
        if seen.record != record {
            *seen = Seen { count: seen.count + seen.count_in_record, record, count_in_record: 0 };
        }
        seen.count_in_record += values;
    }

    #[cold]
    fn remember_unknown(&mut self, raw: &[u8]) -> Option<usize> {
        self.has_room().then(|| self.add(name_of(raw).as_bytes(), Meaning::Unknown))
    }

    fn has_room(&self) -> bool {
        self.keys.len() - self.column_count < UNKNOWN_KEYS_MAX
    }

    fn add(&mut self, name: &[u8], meaning: Meaning) -> usize {
        let position = self.keys.len();
        let mut token = Vec::new();
        append_json_string(&mut token, name);
        token.push(b':');
        self.by_name.insert(name.into(), position);
        let next = position + 1;
        self.keys.push(Key { name: name.into(), token: token.into(), meaning, next, seen: Seen::default() });
        position
    }

    /// Takes back what the record of this number has counted.
    pub fn forget(&mut self, record: u64) {
        for key in self.keys.iter_mut().filter(|key| key.seen.record == record) {
            key.seen.count_in_record = 0;
        }
    }

    /// Adds the counts of unknown keys under their dotted paths.
    pub fn unknown(&self, counts: &mut BTreeMap<String, u64>) {
        for key in &self.keys {
            let count = key.seen.count + key.seen.count_in_record;
            if count > 0 {
                let name = String::from_utf8_lossy(&key.name);
                *counts.entry(Keys::join(&self.path, &name)).or_default() += count;
            }
        }
    }

    /// How often a key was unknown and is in none of the counts.
    pub fn unknown_beyond_max(&self) -> u64 {
        self.unknown_beyond_max
    }
}

impl Meaning {
    #[inline(always)]
    fn as_match(self, raw: &[u8], position: usize) -> Match<'_> {
        match self {
            Meaning::Column(column) => Match::Column(column),
            Meaning::Unknown => Match::Unknown { raw, key: Some(position) },
            Meaning::OtherCase => Match::OtherCase { raw },
        }
    }
}

/// The name that a key as written, without quotes, stands for.
pub fn name_of(raw: &[u8]) -> String {
    let text = Text { raw, is_escaped: true };
    String::from_utf8_lossy(text.bytes(&mut Vec::new())).into_owned()
}
