//! CSV files: a record a line, or over many lines with `multiLine`.
//!
//! - [`record`]: text into fields; [`value`]: fields into values;
//! - here: headers, which field is which column, and records that are no records.
//!
//! Columns go by the header's names where the schema was inferred or may change or rescue, else by position, as
//! Spark's `enforceSchema` says.

mod record;
mod value;

use arrow::array::{Array, ArrayRef, BooleanArray, StringBuilder};
use arrow::compute::filter;
use pipeline::data_type::{DataType, Field};
use pipeline::read_files::{ParseMode, ReadFiles, SchemaEvolutionMode};

use self::record::{Dialect, Record};
use self::value::{Column, Values};
use super::list::FileEntry;
use super::read::Lines;
use super::rescue::{CORRUPT_RECORD, Rescue};
use super::scan::{Decoded, Output};
use super::split::Part;
use super::{BATCH_ROWS, ScanCounters};
use crate::error::{Error, Result};

/// Tells whether the records of a file can be found from any line on.
pub fn can_cut(spec: &ReadFiles) -> bool {
    // What is skipped at the start of a file must not reach into a second part.
    !spec.multi_line && spec.csv.skip_rows == 0 && spec.csv.comment.is_none()
}

/// The records of one part of a file, after what is skipped; the header is one of them.
struct Records<'a> {
    lines: Lines<'a>,
    dialect: Dialect,
    /// Text that is read but not yet a record, from `at` on.
    text: Vec<u8>,
    at: usize,
    is_end: bool,
    rows_to_skip: usize,
}

impl<'a> Records<'a> {
    fn open(spec: &ReadFiles, file: &'a FileEntry, part: Part) -> Result<Records<'a>> {
        let rows_to_skip = if part.start == 0 { spec.csv.skip_rows } else { 0 };
        let (lines, dialect) = (Lines::open(file, part)?, Dialect::new(spec));
        Ok(Records { lines, dialect, text: Vec::new(), at: 0, is_end: false, rows_to_skip })
    }

    /// Reads the next record with fields; returns its text, or `None` at the end.
    fn next(&mut self, record: &mut Record) -> Result<Option<&[u8]>> {
        loop {
            let rest = &self.text[self.at..];
            if rest.is_empty() && self.is_end {
                return Ok(None);
            }
            let length = match (rest.is_empty(), self.rows_to_skip) {
                (true, _) => None,
                (false, 0) => self.dialect.read(rest, self.is_end, record),
                (false, _) => {
                    self.rows_to_skip -= 1;
                    self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                    continue;
                }
            };
            match length {
                Some(length) => {
                    let start = self.at;
                    self.at += length;
                    if record.len() > 0 {
                        return Ok(Some(self.text[start..self.at].trim_ascii_end()));
                    }
                }
                None => {
                    self.text.drain(..self.at);
                    self.at = 0;
                    match self.lines.next_chunk()? {
                        Some(chunk) => self.text.extend_from_slice(chunk),
                        None => self.is_end = true,
                    }
                }
            }
        }
    }
}

/// Returns the names of a file's columns: its header's, or `_c0`, `_c1`, …; `None` for an empty file.
fn header(spec: &ReadFiles, file: &FileEntry) -> Result<Option<Vec<String>>> {
    let mut record = Record::default();
    let first = Part { file: 0, start: 0, end: file.size };
    let mut records = Records::open(spec, file, first)?;
    Ok(records.next(&mut record)?.is_some().then(|| names(spec, &record)))
}

fn names(spec: &ReadFiles, record: &Record) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(record.len());
    for (index, (field, _)) in record.iter().enumerate() {
        let mut name = String::from_utf8_lossy(field).into_owned();
        if !spec.csv.header || name.is_empty() {
            name = format!("_c{index}");
        }
        // Of columns of one name the later ones get their position, as in Spark.
        if names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            name = format!("{name}{index}");
        }
        names.push(name);
    }
    names
}

/// What the fields of some records say about their columns: the type, if there was any value.
pub type Evidence = Vec<(String, Option<DataType>)>;

/// Looks at every record of one part.
pub fn infer(spec: &ReadFiles, file: &FileEntry, part: Part) -> Result<Evidence> {
    let values = Values::new(spec)?;
    let names = if spec.csv.header { header(spec, file)?.unwrap_or_default() } else { Vec::new() };
    let mut evidence: Evidence = names.into_iter().map(|name| (name, None)).collect();
    let mut records = Records::open(spec, file, part)?;
    let mut record = Record::default();
    let mut is_header = spec.csv.header && part.start == 0;
    while records.next(&mut record)?.is_some() {
        if std::mem::take(&mut is_header) {
            continue;
        }
        check_columns(spec, file, &record)?;
        if !spec.csv.header {
            evidence.extend((evidence.len()..record.len()).map(|index| (format!("_c{index}"), None)));
        }
        for ((_, known), field) in evidence.iter_mut().zip(record.iter()) {
            if let Some(text) = values.text(field) {
                *known = Some(values.widen(known.take(), text));
            }
        }
    }
    Ok(evidence)
}

/// Returns the columns that all the evidence together speaks for.
pub fn columns(evidence: impl IntoIterator<Item = Evidence>) -> Vec<Field> {
    let mut columns: Evidence = Vec::new();
    for (name, data_type) in evidence.into_iter().flatten() {
        match columns.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            Some((_, known)) => {
                *known = match (known.take(), data_type) {
                    (Some(a), Some(b)) => Some(crate::data_type::widest_type(&a, &b)),
                    (a, b) => a.or(b),
                }
            }
            None => columns.push((name, data_type)),
        }
    }
    let field = |(name, data_type): (String, Option<DataType>)| Field {
        name,
        data_type: data_type.unwrap_or(DataType::String),
        is_nullable: true,
        comment: None,
    };
    columns.into_iter().map(field).collect()
}

fn check_columns(spec: &ReadFiles, file: &FileEntry, record: &Record) -> Result<()> {
    if record.len() <= spec.csv.max_columns {
        return Ok(());
    }
    Err(Error::user(
        "too-many-columns",
        format!("`{}` has a record of {} fields, `maxColumns` is {}", file.path, record.len(), spec.csv.max_columns),
        "set `maxColumns` higher, or check `sep` and `quote`",
    ))
}

/// What becomes of a field.
enum Place {
    /// Index into the columns being built.
    Column(usize),
    /// A column that nobody asked for, or one that comes from the path.
    Ignored,
    /// The schema has no such column.
    Unknown(String),
}

/// Returns the place of every field of the file's records.
fn places(file: &FileEntry, output: &Output<'_>) -> Result<Vec<Place>> {
    let (scan, spec) = (output.scan, &output.scan.spec);
    let is_growing = !matches!(spec.schema_evolution_mode, SchemaEvolutionMode::None);
    let goes_by_name = spec.csv.header && (is_growing || scan.schema.rescued.is_some());
    let find = |name: &str| output.data().iter().position(|column| column.name() == name);
    let place = |name: &str| match find(name) {
        Some(index) => Place::Column(index),
        None => Place::Ignored,
    };
    let declared: Vec<&str> = scan.schema.data_columns().map(|column| column.name().as_str()).collect();
    if !goes_by_name {
        if spec.csv.header && !spec.csv.enforce_schema {
            check_header(file, &header(spec, file)?.unwrap_or_default(), &declared, spec.reader_case_sensitive)?;
        }
        return Ok(declared.into_iter().map(place).collect());
    }
    let names = header(spec, file)?.unwrap_or_default();
    let by_name = |name: String| {
        let same = |declared: &&&str| match spec.reader_case_sensitive {
            true => **declared == name,
            false => declared.eq_ignore_ascii_case(&name),
        };
        match declared.iter().find(same) {
            Some(declared) => place(declared),
            None if scan.is_known(&name) => Place::Ignored,
            None => Place::Unknown(name),
        }
    };
    Ok(names.into_iter().map(by_name).collect())
}

fn check_header(file: &FileEntry, header: &[String], declared: &[&str], is_case_sensitive: bool) -> Result<()> {
    for (index, (found, declared)) in header.iter().zip(declared).enumerate() {
        let is_same = if is_case_sensitive { found == declared } else { found.eq_ignore_ascii_case(declared) };
        if !is_same {
            return Err(Error::user(
                "csv-header-differs",
                format!("column {} of `{}` is `{found}`, in the schema it is `{declared}`", index + 1, file.path),
                "mend the schema or the file; `enforceSchema => true` ignores headers",
            ));
        }
    }
    Ok(())
}

/// Reads one part.
pub fn read(file: &FileEntry, part: Part, output: &mut Output<'_>) -> Result<()> {
    let spec = output.scan.spec.clone();
    let places = places(file, output)?;
    if part.start == 0 {
        for place in &places {
            if let Place::Unknown(name) = place
                && !output.scan.is_known_in_any_case(name)
            {
                output.add_unknown(name, 1);
            }
        }
        output.check_unknown()?;
    }
    let mut rows = Rows::new(output, &spec, places)?;
    let mut records = Records::open(&spec, file, part)?;
    let mut record = Record::default();
    let mut is_header = spec.csv.header && part.start == 0;
    while let Some(text) = records.next(&mut record)? {
        if std::mem::take(&mut is_header) {
            continue;
        }
        check_columns(&spec, file, &record)?;
        rows.add(&record, text, file)?;
        if rows.count == BATCH_ROWS {
            output.push(rows.finish(file, output.counters())?)?;
        }
    }
    output.push(rows.finish(file, output.counters())?)
}

/// A batch under construction.
struct Rows {
    values: Values,
    mode: ParseMode,
    places: Vec<Place>,
    columns: Vec<Column>,
    names: Vec<String>,
    rescues: bool,
    rescue: Rescue,
    /// The text of corrupt records, if the schema has a column for it.
    corrupt: Option<StringBuilder>,
    is_kept: Vec<bool>,
    count: usize,
    corrupt_count: usize,
    /// Which columns have this row's value already; the others get NULL.
    is_set: Vec<bool>,
}

impl Rows {
    fn new(output: &Output<'_>, spec: &ReadFiles, places: Vec<Place>) -> Result<Rows> {
        let data = output.data();
        let columns = data.iter().map(|column| Column::new(column.name(), column.data_type()));
        Ok(Rows {
            values: Values::new(spec)?,
            mode: spec.parse_mode,
            places,
            columns: columns.collect::<Result<_>>()?,
            names: data.iter().map(|column| column.name().clone()).collect(),
            rescues: output.scan.schema.rescued.is_some(),
            rescue: Rescue::default(),
            corrupt: output.scan.schema.corrupt.as_ref().map(|_| StringBuilder::new()),
            is_kept: Vec::with_capacity(BATCH_ROWS),
            count: 0,
            corrupt_count: 0,
            is_set: vec![false; data.len()],
        })
    }

    fn add(&mut self, record: &Record, text: &[u8], file: &FileEntry) -> Result<()> {
        // A record with another number of fields isn't a record of this file, yet what it has is kept.
        let mut is_corrupt = record.len() != self.places.len();
        self.is_set.fill(false);
        for (field, place) in record.iter().zip(&self.places) {
            let Some(value) = self.values.text(field) else { continue };
            match place {
                Place::Column(index) => {
                    self.is_set[*index] = true;
                    if !self.columns[*index].append(value, &self.values) {
                        is_corrupt |= !self.rescues;
                        if self.rescues {
                            let value = String::from_utf8_lossy(value).into();
                            self.rescue.add(self.count, &[&self.names[*index]], value);
                        }
                    }
                }
                Place::Ignored => {}
                Place::Unknown(_) if !self.rescues => {}
                Place::Unknown(name) => {
                    self.rescue.add(self.count, &[name], String::from_utf8_lossy(value).into());
                }
            }
        }
        for (column, _) in self.columns.iter_mut().zip(&self.is_set).filter(|(_, is_set)| !**is_set) {
            column.append_null();
        }
        let is_dropped = is_corrupt && self.mode == ParseMode::DropMalformed;
        if is_corrupt && self.mode == ParseMode::FailFast {
            return Err(malformed(record, self.places.len(), text, file));
        }
        if is_corrupt && !is_dropped && self.rescues && self.corrupt.is_none() {
            let value = String::from_utf8_lossy(text).into();
            self.rescue.add(self.count, &[CORRUPT_RECORD], value);
            self.rescue.values -= 1;
        }
        if let Some(corrupt) = &mut self.corrupt {
            corrupt.append_option(is_corrupt.then(|| String::from_utf8_lossy(text)));
        }
        self.is_kept.push(!is_dropped);
        self.corrupt_count += usize::from(is_corrupt);
        self.count += 1;
        Ok(())
    }

    fn finish(&mut self, file: &FileEntry, counters: &ScanCounters) -> Result<Decoded> {
        let mut rows = std::mem::take(&mut self.count);
        let mut columns: Vec<ArrayRef> = self.columns.iter_mut().map(Column::finish).collect();
        ScanCounters::add(&counters.rescued_values, std::mem::take(&mut self.rescue.values));
        let mut rescued = self.rescue.finish(rows, &file.path);
        let mut corrupt = self.corrupt.as_mut().map(|corrupt| std::sync::Arc::new(corrupt.finish()) as ArrayRef);
        let is_kept = BooleanArray::from(std::mem::take(&mut self.is_kept));
        let dropped = is_kept.false_count();
        if dropped > 0 {
            let keep = |array: &ArrayRef| {
                filter(array, &is_kept).map_err(|error| Error::Internal(format!("dropping malformed rows: {error}")))
            };
            columns = columns.iter().map(keep).collect::<Result<_>>()?;
            rescued = rescued.as_ref().map(keep).transpose()?;
            corrupt = corrupt.as_ref().map(keep).transpose()?;
            rows -= dropped;
        }
        let corrupt_count = std::mem::take(&mut self.corrupt_count);
        ScanCounters::add(&counters.corrupt_kept, corrupt_count - dropped);
        ScanCounters::add(&counters.corrupt_dropped, dropped);
        debug_assert!(columns.iter().all(|column| column.len() == rows));
        Ok(Decoded { columns, rescued, corrupt, rows })
    }
}

fn malformed(record: &Record, expected: usize, text: &[u8], file: &FileEntry) -> Error {
    const SAMPLE_CHARS: usize = 120;
    let sample: String = String::from_utf8_lossy(text).chars().take(SAMPLE_CHARS).collect();
    Error::user(
        "malformed-record",
        format!("malformed record in `{}`: {} fields, {expected} expected: {sample}", file.path, record.len()),
        "mend the file, or set `mode => \"PERMISSIVE\"` to keep such records aside",
    )
}
