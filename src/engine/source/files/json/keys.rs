//! Finds the column of an object's key, and counts the keys that have none.
//!
//! Records of one source mostly have the same keys in the same order, so the key that came after the last one in
//! the record before is tried first, as bytes: `"name":` is compared in one go, quotes and colon included.

use std::collections::{BTreeMap, HashMap};

use super::cursor::{Corrupt, Cursor, Text};
use super::rescue::append_json_string;

/// At most so many distinct unknown keys are remembered for each object; the rest only as a sum.
const UNKNOWN_KEYS_MAX: usize = 1000;

/// The keys of one object type.
pub struct Keys {
    /// By position of the column.
    keys: Vec<Key>,
    by_name: HashMap<Box<[u8]>, usize>,
    /// The key that a record started with.
    first: usize,
    /// Dotted path of the object; empty for the record itself.
    path: String,
    unknown: HashMap<Box<[u8]>, UnknownKey>,
    unknown_beyond_max: u64,
}

struct Key {
    name: Box<[u8]>,
    /// `"name":`
    token: Box<[u8]>,
    /// The key that came after this one the last time.
    next: usize,
}

/// How often a key was seen; what the latest record adds can be taken back, should it prove corrupt.
#[derive(Default)]
struct UnknownKey {
    count: u64,
    record: u64,
    count_in_record: u64,
}

/// What a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match<'a> {
    Column(usize),
    /// No column has it; as written, without quotes.
    Unknown {
        raw: &'a [u8],
    },
    /// A column's name in other letters (`readerCaseSensitive`).
    OtherCase {
        raw: &'a [u8],
    },
}

/// Where in an object we are: remembers the last column to predict the next.
pub struct Prediction {
    last: usize,
    expected: usize,
}

const NONE: usize = usize::MAX;

impl Keys {
    pub fn new<'n>(names: impl Iterator<Item = &'n str>, path: &str) -> Keys {
        let mut keys = Keys {
            keys: Vec::new(),
            by_name: HashMap::new(),
            first: 0,
            path: path.into(),
            unknown: HashMap::new(),
            unknown_beyond_max: 0,
        };
        names.for_each(|name| keys.add(name));
        keys
    }

    /// Adds the next column.
    pub fn add(&mut self, name: &str) {
        let position = self.keys.len();
        let mut token = Vec::new();
        append_json_string(&mut token, name.as_bytes());
        token.push(b':');
        self.by_name.insert(name.as_bytes().into(), position);
        self.keys.push(Key { name: name.as_bytes().into(), token: token.into(), next: position + 1 });
    }

    /// The column of this very name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name.as_bytes()).copied()
    }

    /// The path of member `name` of the object at `path`; a name with a dot in it is quoted by backticks.
    pub fn join(path: &str, name: &str) -> String {
        let name = if name.contains('.') { format!("`{name}`") } else { name.to_string() };
        if path.is_empty() { name } else { format!("{path}.{name}") }
    }

    /// Never matches column `position`: it isn't filled from the record's keys.
    pub fn hide(&mut self, position: usize) {
        self.by_name.remove(&self.keys[position].name);
        // Predictions only ever point to keys of `by_name`, once the first ones are moved on.
        for next in self.keys.iter_mut().map(|key| &mut key.next).chain([&mut self.first]) {
            *next += (*next == position) as usize;
        }
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
        if let Some(key) = self.keys.get(prediction.expected)
            && cursor.rest().starts_with(&key.token)
        {
            cursor.at += key.token.len();
            cursor.skip_space();
            *prediction = Prediction { last: prediction.expected, expected: key.next };
            return Ok(Match::Column(prediction.last));
        }
        self.search(cursor, prediction, is_case_sensitive)
    }

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
            None => match self.position_in_other_case(name) {
                Some(position) if !is_case_sensitive => position,
                Some(_) => return Ok(Match::OtherCase { raw: text.raw }),
                None => return Ok(Match::Unknown { raw: text.raw }),
            },
        };
        match self.keys.get_mut(prediction.last) {
            Some(last) => last.next = position,
            None => self.first = position,
        }
        *prediction = Prediction { last: position, expected: self.keys[position].next };
        Ok(Match::Column(position))
    }

    fn position_in_other_case(&self, name: &[u8]) -> Option<usize> {
        let name = std::str::from_utf8(name).ok()?.to_lowercase();
        let is_same = |key: &Key| std::str::from_utf8(&key.name).is_ok_and(|key| key.to_lowercase() == name);
        self.by_name.values().copied().filter(|position| is_same(&self.keys[*position])).min()
    }

    /// Counts an unknown key with a value, seen in the record of this number.
    pub fn count_unknown(&mut self, raw: &[u8], record: u64) {
        if !self.unknown.contains_key(raw) {
            if self.unknown.len() >= UNKNOWN_KEYS_MAX {
                self.unknown_beyond_max += 1;
                return;
            }
            self.unknown.insert(raw.into(), UnknownKey::default());
        }
        let key = self.unknown.get_mut(raw).expect("the key was inserted if it wasn't there");
        if key.record != record {
            *key = UnknownKey { count: key.count + key.count_in_record, record, count_in_record: 0 };
        }
        key.count_in_record += 1;
    }

    /// Takes back what the record of this number has counted.
    pub fn forget(&mut self, record: u64) {
        for key in self.unknown.values_mut().filter(|key| key.record == record) {
            key.count_in_record = 0;
        }
    }

    /// Adds the counts of unknown keys under their dotted paths.
    pub fn unknown(&self, counts: &mut BTreeMap<String, u64>) {
        for (raw, key) in &self.unknown {
            let count = key.count + key.count_in_record;
            if count > 0 {
                let name = name_of(raw);
                *counts.entry(Keys::join(&self.path, &name)).or_default() += count;
            }
        }
    }

    /// How often a key was unknown and is in none of the counts.
    pub fn unknown_beyond_max(&self) -> u64 {
        self.unknown_beyond_max
    }
}

/// The name that a key as written, without quotes, stands for.
pub fn name_of(raw: &[u8]) -> String {
    let text = Text { raw, is_escaped: true };
    String::from_utf8_lossy(text.bytes(&mut Vec::new())).into_owned()
}
