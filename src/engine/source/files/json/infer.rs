//! The schema of records: what was seen of each field, as sets that can be merged in any order, and the type that
//! follows from it.
//!
//! Seen kinds only ever add up, so the schema doesn't depend on the order of records, files or merges. As Spark
//! does, fields are sorted by name; `null` alone, an empty array's elements and an empty object are STRING; integers
//! and fractions together are DOUBLE; integers too large for BIGINT are DECIMAL as long as 38 digits hold them;
//! whatever else comes together is STRING, which takes every value as its JSON text.
//!
//! Not here: schema hints and the columns of the path (the caller).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use pipeline::read_files::{JsonOptions, ReadFiles};

use super::cursor::{Corrupt, Cursor};
use super::keys::{Keys, Match, name_of};
use super::lenient::Lenient;
use super::records::{BYTE_ORDER_MARK, Records};
use super::time::TimeFormat;
use crate::error::Result;

const DECIMAL_DIGITS_MAX: u32 = 38;

/// How to look at records, and what to make of them.
#[derive(Debug, Clone)]
pub struct InferenceConfig {
    /// `inferColumnTypes`; if not, every column is STRING.
    pub infer_column_types: bool,
    pub reader_case_sensitive: bool,
    /// One document a file: an object, or an array of objects.
    pub multi_line: bool,
    pub time_zone: String,
    /// For `infer_timestamp`.
    pub timestamp_format: Option<String>,
    pub options: JsonOptions,
}

impl InferenceConfig {
    /// The configuration that a `read_files` call asks for.
    pub fn new(read_files: &ReadFiles) -> InferenceConfig {
        InferenceConfig {
            infer_column_types: read_files.infer_column_types,
            reader_case_sensitive: read_files.reader_case_sensitive,
            multi_line: read_files.multi_line,
            time_zone: read_files.time_zone.clone(),
            timestamp_format: read_files.timestamp_format.clone(),
            options: read_files.json.clone(),
        }
    }
}

/// What was seen so far.
pub struct Inference {
    config: InferenceConfig,
    times: TimeFormat,
    lenient: Option<Lenient>,
    root: Members,
    records: u64,
    corrupt: u64,
}

/// What was seen of a field, or of the elements of arrays.
#[derive(Default)]
struct Shape {
    kinds: u16,
    /// The most digits of its numbers before and after the point, where they matter.
    digits: (u32, u32),
    members: Option<Box<Members>>,
    element: Option<Box<Shape>>,
}

/// What was seen of the members of objects.
struct Members {
    keys: Keys,
    members: Vec<Member>,
}

struct Member {
    name: String,
    count: u64,
    shape: Shape,
}

/// The kinds of values, as bits of `Shape::kinds`; null is none.
mod kind {
    pub const BOOLEAN: u16 = 1;
    /// Fits BIGINT.
    pub const INTEGER: u16 = 2;
    pub const LARGE_INTEGER: u16 = 4;
    pub const FRACTION: u16 = 8;
    /// NaN and infinities, which no decimal can hold.
    pub const NON_NUMERIC: u16 = 16;
    pub const STRING: u16 = 32;
    /// A string that reads as a timestamp.
    pub const TIMESTAMP: u16 = 64;
    pub const ARRAY: u16 = 128;
    pub const OBJECT: u16 = 256;
    pub const NUMBERS: u16 = INTEGER | LARGE_INTEGER | FRACTION | NON_NUMERIC;
}

impl Inference {
    /// Makes an inference that has seen nothing.
    ///
    /// # Errors
    /// A time pattern or zone that can't be read.
    pub fn new(config: InferenceConfig) -> Result<Inference> {
        let times = TimeFormat::new(&config.time_zone, config.timestamp_format.as_deref(), None)?;
        let lenient = Lenient::new(&config.options);
        Ok(Inference { config, times, lenient, root: Members::new(), records: 0, corrupt: 0 })
    }

    /// How records are looked at.
    pub fn config(&self) -> &InferenceConfig {
        &self.config
    }

    /// Looks at a file's bytes, or at a part that starts and ends with a record.
    pub fn observe(&mut self, bytes: &[u8]) {
        if self.config.multi_line {
            let document = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
            if !document.trim_ascii().is_empty() {
                self.observe_text(document, std::str::from_utf8(document).is_ok());
            }
        } else {
            Records::new(bytes, 1).for_each(|record| self.observe_text(record.bytes, record.is_utf8));
        }
    }

    /// Adds what another inference of the same configuration has seen.
    pub fn merge(mut self, other: Inference) -> Inference {
        self.root.merge(other.root);
        self.records += other.records;
        self.corrupt += other.corrupt;
        self
    }

    /// How many records were seen, corrupt ones included.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How many records could not be read; they have no part in the schema.
    pub fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// The schema that holds every value seen.
    pub fn finish(self) -> Schema {
        let infers_types = self.config.infer_column_types;
        let mut fields = self.root.fields(&self.config);
        if !infers_types {
            fields = fields.iter().map(|field| Field::new(field.name(), DataType::Utf8, true)).collect();
        }
        Schema::new(fields)
    }

    fn observe_text(&mut self, text: &[u8], is_utf8: bool) {
        let normalised = match &self.lenient {
            Some(lenient) if is_utf8 => lenient.normalise(text),
            _ => text.into(),
        };
        let rows = if is_utf8 { self.check(&normalised) } else { Err(Corrupt::InvalidUtf8) };
        match rows {
            Ok(rows) => {
                self.records += rows;
                self.observe_rows(&normalised).expect("the text was checked");
            }
            Err(_) => {
                self.records += 1;
                self.corrupt += 1;
            }
        }
    }

    /// Counts the rows of a text, if it can be read: a corrupt one must not be seen half.
    fn check(&self, text: &[u8]) -> Result<u64, Corrupt> {
        let mut cursor = Cursor::new(text, self.config.options.allow_non_numeric_numbers);
        let rows = cursor.each_row(self.config.multi_line, Cursor::skip_value)?;
        cursor.end()?;
        Ok(rows)
    }

    fn observe_rows(&mut self, text: &[u8]) -> Result<u64, Corrupt> {
        let mut cursor = Cursor::new(text, self.config.options.allow_non_numeric_numbers);
        let mut observer = Observer { options: &self.config.options, times: &self.times, scratch: Vec::new() };
        let root = &mut self.root;
        cursor.each_row(self.config.multi_line, |cursor| observer.observe_object(root, cursor))
    }
}

struct Observer<'a> {
    options: &'a JsonOptions,
    times: &'a TimeFormat,
    scratch: Vec<u8>,
}

impl Observer<'_> {
    fn observe_object(&mut self, object: &mut Members, cursor: &mut Cursor) -> Result<(), Corrupt> {
        cursor.enter()?;
        cursor.at += 1;
        cursor.skip_space();
        if !cursor.eat(b'}') {
            let mut prediction = object.keys.start();
            loop {
                let position = match object.keys.read(cursor, &mut prediction, true)? {
                    Match::Column(position) => position,
                    Match::Unknown { raw, .. } | Match::OtherCase { raw } => object.add(name_of(raw)),
                };
                let member = &mut object.members[position];
                member.count += 1;
                self.observe_value(&mut member.shape, cursor)?;
                if !cursor.has_more(b'}')? {
                    break;
                }
            }
        }
        cursor.leave();
        Ok(())
    }

    fn observe_value(&mut self, shape: &mut Shape, cursor: &mut Cursor) -> Result<(), Corrupt> {
        shape.kinds |= match cursor.peek() {
            b'"' => {
                let text = cursor.string()?;
                let is_open = self.options.infer_timestamp && shape.kinds & kind::STRING == 0;
                let is_timestamp = is_open && self.times.looks_like_timestamp(text.bytes(&mut self.scratch));
                if is_timestamp { kind::TIMESTAMP } else { kind::STRING }
            }
            b'{' => {
                let members = shape.members.get_or_insert_with(|| Box::new(Members::new()));
                self.observe_object(members, cursor)?;
                kind::OBJECT
            }
            b'[' => {
                self.observe_elements(shape.element.get_or_insert_default(), cursor)?;
                kind::ARRAY
            }
            b't' | b'f' => {
                cursor.skip_value()?;
                kind::BOOLEAN
            }
            b'n' => {
                cursor.skip_value()?;
                0
            }
            _ if cursor.non_numeric().is_some() => kind::NON_NUMERIC,
            _ => self.observe_number(shape, cursor)?,
        };
        Ok(())
    }

    fn observe_number(&self, shape: &mut Shape, cursor: &mut Cursor) -> Result<u16, Corrupt> {
        let number = cursor.number()?;
        let kind = match number.as_i64() {
            Some(_) => kind::INTEGER,
            None if number.is_integer => kind::LARGE_INTEGER,
            None => kind::FRACTION,
        };
        if kind == kind::LARGE_INTEGER || self.options.prefers_decimal {
            let (whole, fraction) = number.decimal_digits();
            shape.digits = (shape.digits.0.max(whole), shape.digits.1.max(fraction));
        }
        Ok(kind)
    }

    fn observe_elements(&mut self, element: &mut Shape, cursor: &mut Cursor) -> Result<(), Corrupt> {
        cursor.enter()?;
        cursor.at += 1;
        cursor.skip_space();
        if !cursor.eat(b']') {
            loop {
                self.observe_value(element, cursor)?;
                if !cursor.has_more(b']')? {
                    break;
                }
            }
        }
        cursor.leave();
        Ok(())
    }
}

impl Members {
    fn new() -> Members {
        Members { keys: Keys::new([].into_iter(), ""), members: Vec::new() }
    }

    fn add(&mut self, name: String) -> usize {
        self.keys.add_column(&name);
        self.members.push(Member { name, count: 0, shape: Shape::default() });
        self.members.len() - 1
    }

    fn merge(&mut self, other: Members) {
        for member in other.members {
            let position = match self.keys.column(&member.name) {
                Some(position) => position,
                None => self.add(member.name),
            };
            self.members[position].count += member.count;
            self.members[position].shape.merge(member.shape);
        }
    }

    /// The fields, sorted by name. Of names that differ in case only, one can be a column: the commonest, or the
    /// first in order. Unless the reader is case sensitive, the others' values are meant for it too.
    fn fields(self, config: &InferenceConfig) -> Fields {
        let mut by_lower_case: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        for member in self.members {
            by_lower_case.entry(member.name.to_lowercase()).or_default().push(member);
        }
        let mut fields = Vec::new();
        for (_, mut members) in by_lower_case {
            members.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
            let mut members = members.into_iter();
            let mut chosen = members.next().expect("an entry is made with its first member");
            if !config.reader_case_sensitive {
                members.for_each(|other| chosen.shape.merge(other.shape));
            }
            let data_type = chosen.shape.data_type(config);
            if data_type.is_some() || !config.options.drop_field_if_all_null {
                fields.push(Field::new(chosen.name, data_type.unwrap_or(DataType::Utf8), true));
            }
        }
        fields.sort_by(|a, b| a.name().cmp(b.name()));
        fields.into()
    }
}

impl Shape {
    fn merge(&mut self, other: Shape) {
        self.kinds |= other.kinds;
        self.digits = (self.digits.0.max(other.digits.0), self.digits.1.max(other.digits.1));
        if let Some(members) = other.members {
            self.members.get_or_insert_with(|| Box::new(Members::new())).merge(*members);
        }
        if let Some(element) = other.element {
            self.element.get_or_insert_default().merge(*element);
        }
    }

    /// The type that holds all values; None if there were none but null, `[]` and `{}`.
    fn data_type(self, config: &InferenceConfig) -> Option<DataType> {
        let kinds = self.kinds;
        let (whole, fraction) = self.digits;
        let decimal = (whole + fraction <= DECIMAL_DIGITS_MAX)
            .then(|| DataType::Decimal128((whole + fraction).max(1) as u8, fraction as i8));
        let options = &config.options;
        Some(match kinds {
            0 => return None,
            kind::ARRAY => {
                let element = self.element.and_then(|element| element.data_type(config));
                if element.is_none() && options.drop_field_if_all_null {
                    return None;
                }
                DataType::List(Arc::new(Field::new("element", element.unwrap_or(DataType::Utf8), true)))
            }
            kind::OBJECT => {
                let fields = self.members.map(|members| members.fields(config)).unwrap_or_default();
                if fields.is_empty() {
                    return None;
                }
                DataType::Struct(fields)
            }
            _ if options.primitives_as_string => DataType::Utf8,
            kind::BOOLEAN => DataType::Boolean,
            kind::INTEGER => DataType::Int64,
            kind::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            _ if kinds & !(kind::INTEGER | kind::LARGE_INTEGER) == 0 => decimal.unwrap_or(DataType::Float64),
            _ if kinds & !kind::NUMBERS == 0 => match decimal {
                Some(decimal) if options.prefers_decimal && kinds & kind::NON_NUMERIC == 0 => decimal,
                _ => DataType::Float64,
            },
            _ => DataType::Utf8,
        })
    }
}
