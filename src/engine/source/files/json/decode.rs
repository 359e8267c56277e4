//! The record decoder: bytes of JSON lines or documents in, Arrow columns out, in one pass guided by the schema.
//!
//! Not here: the rules of single values (`value.rs`), inference (`infer.rs`), files and threads (the caller: one
//! decoder for each thread; a large file is cut by `split_records`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use pipeline::read_files::{JsonOptions, ParseMode, ReadFiles};

use super::column::{Struct, Values, nullable};
use super::cursor::{Corrupt, Cursor};
use super::lenient::Lenient;
use super::records::{BYTE_ORDER_MARK, Records};
use super::rescue::{Rescued, append_json_string, append_member};
use super::time::TimeFormat;
use super::value::{Context, Counts, Fit, read_object};
use crate::error::{Error, Result};

/// A batch also ends when so many bytes of input went into it.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// Keeps the bytes of a column, six times as many if escaped for the rescued data, below what `i32` counts.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// What to decode, and how.
#[derive(Debug, Clone)]
pub struct DecoderConfig {
    /// Columns that come from the records: no partition columns, no rescued data. Read as nullable.
    pub schema: SchemaRef,
    /// There is a column of rescued data.
    pub rescue: bool,
    /// A STRING column of `schema` that takes the text of corrupt records.
    pub corrupt_column: Option<usize>,
    pub parse_mode: ParseMode,
    pub reader_case_sensitive: bool,
    /// The input is one document: an object, or an array of objects. Else one object a line.
    pub multi_line: bool,
    /// IANA name, for timestamps without offset.
    pub time_zone: String,
    /// Spark patterns.
    pub timestamp_format: Option<String>,
    pub date_format: Option<String>,
    pub options: JsonOptions,
    /// `decode` stops at so many rows.
    pub batch_rows_max: usize,
}

/// What Spark calls the column of corrupt records, unless `columnNameOfCorruptRecord` says otherwise.
const CORRUPT_RECORD: &str = "_corrupt_record";

impl DecoderConfig {
    /// The configuration that a `read_files` call asks for, with the schema found for it.
    pub fn new(read_files: &ReadFiles, schema: SchemaRef, batch_rows_max: usize) -> DecoderConfig {
        let corrupt_column = read_files.corrupt_record_column.as_deref().unwrap_or(CORRUPT_RECORD);
        DecoderConfig {
            rescue: read_files.rescued_data_column.is_some(),
            corrupt_column: schema.index_of(corrupt_column).ok(),
            schema,
            parse_mode: read_files.parse_mode,
            reader_case_sensitive: read_files.reader_case_sensitive,
            multi_line: read_files.multi_line,
            time_zone: read_files.time_zone.clone(),
            timestamp_format: read_files.timestamp_format.clone(),
            date_format: read_files.date_format.clone(),
            options: read_files.json.clone(),
            batch_rows_max,
        }
    }
}

/// Rows as columns.
#[derive(Debug, Clone)]
pub struct DecodedBatch {
    /// As in [`Decoder::schema`].
    pub columns: Vec<ArrayRef>,
    /// JSON text, if `DecoderConfig::rescue`.
    pub rescued: Option<ArrayRef>,
    pub row_count: usize,
}

/// What a decoder has seen since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecodeStats {
    /// Corrupt ones included.
    pub records: u64,
    /// Records that could not be read: kept as NULLs or dropped, as the parse mode says.
    pub corrupt: u64,
    /// Corrupt records that became no row.
    pub dropped: u64,
    /// Values that fit no column: NULL there, and rescued if there is a column for it.
    pub misfits: u64,
    /// Keys that differ from a column's name in case only (with `reader_case_sensitive`).
    pub other_case: u64,
    /// Dotted paths of fields that the schema lacks, with the number of their values that aren't null.
    pub unknown: BTreeMap<String, u64>,
    /// Values of unknown fields past the number of paths that are remembered.
    pub unknown_beyond_max: u64,
}

/// See the module.
pub struct Decoder {
    schema: SchemaRef,
    root: Struct,
    rescued: Option<Rescued>,
    corrupt_column: Option<usize>,
    parse_mode: ParseMode,
    multi_line: bool,
    lenient: Option<Lenient>,
    batch_rows_max: usize,
    context: Context,
    rows: usize,
    /// Bytes of input in the batch so far.
    batch_bytes: usize,
    file: String,
    /// `"_file_path":"…"`
    file_member: Vec<u8>,
    /// Number of the next line.
    line: u64,
    stats: DecodeStats,
}

impl Decoder {
    /// Makes a decoder.
    ///
    /// # Errors
    /// A column of a type that JSON isn't read into, a time pattern or zone that can't be read.
    pub fn new(config: DecoderConfig) -> Result<Decoder> {
        let schema = Schema::new(config.schema.fields().iter().map(nullable).collect::<Vec<FieldRef>>());
        let mut root = Struct::new(schema.fields(), "", config.batch_rows_max)?;
        if let Some(position) = config.corrupt_column {
            check_corrupt_column(schema.fields().get(position))?;
            root.keys.hide(position);
        }
        let times =
            TimeFormat::new(&config.time_zone, config.timestamp_format.as_deref(), config.date_format.as_deref())?;
        Ok(Decoder {
            schema: schema.into(),
            root,
            rescued: config.rescue.then(|| Rescued::new(config.batch_rows_max)),
            corrupt_column: config.corrupt_column,
            parse_mode: config.parse_mode,
            multi_line: config.multi_line,
            lenient: Lenient::new(&config.options),
            batch_rows_max: config.batch_rows_max.max(1),
            context: Context {
                times,
                rescues: config.rescue,
                is_case_sensitive: config.reader_case_sensitive,
                allows_non_numeric: config.options.allow_non_numeric_numbers,
                members: Vec::new(),
                scratch: Vec::new(),
                record: 0,
                counts: Counts::default(),
            },
            rows: 0,
            batch_bytes: 0,
            file: String::new(),
            file_member: Vec::new(),
            line: 1,
            stats: DecodeStats::default(),
        })
    }

    /// The schema of the batches: the configured one, with every field nullable.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Says where the bytes that follow come from: an absolute path, for rescued data and errors, and the number
    /// of the first line, which is 1 unless a part of a file is decoded.
    pub fn begin_file(&mut self, file: &str, first_line: u64) {
        self.file = file.to_string();
        self.file_member = b"\"_file_path\":".to_vec();
        append_json_string(&mut self.file_member, file.as_bytes());
        self.line = first_line;
    }

    /// Decodes `bytes`: whole lines, or with `multi_line` a whole document. Returns how many bytes were used up:
    /// fewer than all when the batch is full; call again with the rest after `take`. A document is always used up
    /// as a whole, whatever its number of rows.
    ///
    /// # Errors
    /// In the mode FAILFAST, the first corrupt record; a record or document of more than 256 MiB.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.multi_line {
            self.decode_document(bytes)?;
            return Ok(bytes.len());
        }
        let mut records = Records::new(bytes, self.line);
        while !self.is_full()
            && let Some(record) = records.next()
        {
            self.line = record.line;
            self.batch_bytes += record.bytes.len();
            self.check_length(record.bytes.len())?;
            self.decode_line(record.bytes, record.is_utf8)?;
        }
        self.line = records.line();
        Ok(records.at())
    }

    /// The number of rows in the batch so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether `decode` would stop at once.
    pub fn is_full(&self) -> bool {
        self.rows >= self.batch_rows_max || self.batch_bytes >= BATCH_BYTES_MAX
    }

    /// Hands out the rows decoded so far.
    ///
    /// # Errors
    /// Arrow refuses the columns, which would be our bug.
    pub fn take(&mut self) -> Result<DecodedBatch> {
        let columns = self.root.children.iter_mut().map(|column| column.take()).collect::<Result<Vec<_>, _>>();
        let rescued = self.rescued.as_mut().map(Rescued::take).transpose();
        let row_count = std::mem::take(&mut self.rows);
        self.batch_bytes = 0;
        Ok(DecodedBatch { columns: columns.map_err(internal)?, rescued: rescued.map_err(internal)?, row_count })
    }

    /// What was seen since the decoder was made.
    pub fn stats(&mut self) -> DecodeStats {
        let mut stats = self.stats.clone();
        stats.misfits = self.context.counts.misfits;
        stats.other_case = self.context.counts.other_case;
        self.root.visit_keys(&mut |keys| {
            keys.unknown(&mut stats.unknown);
            stats.unknown_beyond_max += keys.unknown_beyond_max();
        });
        stats
    }

    fn decode_line(&mut self, line: &[u8], is_utf8: bool) -> Result<()> {
        let text = if is_utf8 { Ok(self.normalise(line)) } else { Err(Corrupt::InvalidUtf8) };
        self.decode_text(line, text)
    }

    fn decode_document(&mut self, bytes: &[u8]) -> Result<()> {
        self.check_length(bytes.len())?;
        let document = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        if document.trim_ascii().is_empty() {
            return Ok(());
        }
        self.batch_bytes += bytes.len();
        let is_utf8 = std::str::from_utf8(document).is_ok();
        let text = if is_utf8 { Ok(self.normalise(document)) } else { Err(Corrupt::InvalidUtf8) };
        self.decode_text(document, text)
    }

    fn normalise<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match &self.lenient {
            Some(lenient) => lenient.normalise(text),
            None => text.into(),
        }
    }

    /// Reads the rows of `text`; if that fails, nothing of it is left and `original` is a corrupt record.
    #[inline]
    fn decode_text(&mut self, original: &[u8], text: Result<Cow<[u8]>, Corrupt>) -> Result<()> {
        let rows_before = self.rows;
        let counts_before = self.context.counts;
        self.context.record += 1;
        let result = text.and_then(|text| {
            let mut cursor = Cursor::new(&text, self.context.allows_non_numeric);
            cursor.each_row(self.multi_line, |cursor| self.read_row(cursor))?;
            cursor.end()
        });
        match result {
            Ok(()) => self.stats.records += (self.rows - rows_before) as u64,
            Err(corrupt) => {
                self.take_back(rows_before, counts_before);
                self.stats.records += 1;
                self.append_corrupt(original, corrupt)?;
            }
        }
        Ok(())
    }

    fn read_row(&mut self, cursor: &mut Cursor) -> Result<(), Corrupt> {
        let fit = read_object(&mut self.root, self.rows, cursor, &mut self.context)?;
        if let Some(rescued) = &mut self.rescued {
            let members = if fit == Fit::Members { self.context.members.as_slice() } else { &[] };
            rescued.append(members, &self.file_member);
        }
        self.rows += 1;
        Ok(())
    }

    /// Undoes what a corrupt record has done.
    #[cold]
    fn take_back(&mut self, rows: usize, counts: Counts) {
        self.root.children.iter_mut().for_each(|column| column.truncate(rows));
        if let Some(rescued) = &mut self.rescued {
            rescued.truncate(rows);
        }
        self.rows = rows;
        if self.context.counts.unknown > counts.unknown {
            let record = self.context.record;
            self.root.visit_keys(&mut |keys| keys.forget(record));
        }
        self.context.counts = counts;
    }

    #[cold]
    fn append_corrupt(&mut self, text: &[u8], corrupt: Corrupt) -> Result<()> {
        self.stats.corrupt += 1;
        match self.parse_mode {
            ParseMode::FailFast => Err(Error::user(
                "malformed-record",
                format!("{}:{}: malformed JSON record: {}", self.file, self.line, corrupt.reason()),
                "mend the record, or use the mode PERMISSIVE, which keeps its text, or DROPMALFORMED",
            )),
            ParseMode::DropMalformed => {
                self.stats.dropped += 1;
                Ok(())
            }
            ParseMode::Permissive => {
                self.append_corrupt_row(text);
                Ok(())
            }
        }
    }

    /// Appends a row of NULLs that keeps the record's text where there is a place for it.
    fn append_corrupt_row(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text.trim_ascii_end());
        let mut members = Vec::new();
        for (position, column) in self.root.children.iter_mut().enumerate() {
            match &mut column.values {
                Values::String(strings) if self.corrupt_column == Some(position) => {
                    strings.bytes.extend_from_slice(text.as_bytes());
                    strings.end_value();
                    column.nulls.append_non_null();
                }
                _ => column.append_null(),
            }
        }
        if self.corrupt_column.is_none() {
            let mut json = Vec::new();
            append_json_string(&mut json, text.as_bytes());
            append_member(&mut members, CORRUPT_RECORD.as_bytes(), &json);
        }
        if let Some(rescued) = &mut self.rescued {
            rescued.append(&members, &self.file_member);
        }
        self.rows += 1;
    }

    fn check_length(&self, length: usize) -> Result<()> {
        if length <= RECORD_BYTES_MAX {
            return Ok(());
        }
        let megabytes = length >> 20;
        Err(Error::user(
            "record-too-long",
            format!(
                "{}:{}: a record of {megabytes} MiB; the most is {} MiB",
                self.file,
                self.line,
                RECORD_BYTES_MAX >> 20
            ),
            "write one record a line, and read the file without `multiLine`",
        ))
    }
}

fn check_corrupt_column(field: Option<&FieldRef>) -> Result<()> {
    match field {
        Some(field) if *field.data_type() == DataType::Utf8 => Ok(()),
        Some(field) => Err(Error::user(
            "corrupt-column-type",
            format!("column `{}` for corrupt records is no STRING", field.name()),
            "declare it as STRING",
        )),
        None => Err(Error::Internal("the column for corrupt records is not in the schema".into())),
    }
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("decoded JSON columns: {error}"))
}
