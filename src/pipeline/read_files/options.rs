//! The names of all options, what we do with each, and the reading of a value with its type.
//!
//! An option is never passed over in silence: it is used, or it is an error that says why and what instead.

use std::ops::RangeInclusive;

use super::FileFormat;
use crate::byte_size::parse_byte_size;
use crate::ddl::TypeError;
use crate::diagnostic::{Diagnostic, nearest};
use crate::query::{OptionValue, ReadOption};
use crate::text::{Span, Spanned};
use crate::timestamp::parse_timestamp_us;

/// What an option of a certain name means to us.
pub(super) enum Rule {
    /// Read for every format.
    Any,
    /// Governs the micro-batches of a stream; without effect in a batch read.
    Stream,
    /// Read for these formats.
    Formats(&'static [FileFormat]),
    /// Another name of an option.
    Alias(&'static str),
    /// Known to Databricks, not to us. Values that ask for what happens anyway are taken: `same`.
    Unsupported { same: &'static [&'static str], why: &'static str },
}

use FileFormat::{Avro, Csv, Json, Text};
use Rule::{Alias, Any, Formats, Stream};

const fn unsupported(why: &'static str) -> Rule {
    Rule::Unsupported { same: &[], why }
}

const fn only(same: &'static [&'static str], why: &'static str) -> Rule {
    Rule::Unsupported { same, why }
}

const LOCAL_LISTING: &str = "new files are found by listing the folder; remove it";
const XML: &str = "the format xml is not supported; convert the files to JSON";
const MERGED: &str = "the schemas of all sampled files are always merged; remove it";
const REBASE: &str = "dates before 1582 are read as they are stored; remove it";

/// The options of `read_files`, with or without the prefix `cloudFiles.`.
pub(super) const FILE_OPTIONS: &[(&str, Rule)] = &[
    ("format", Any),
    ("schema", Any),
    ("schemaHints", Any),
    ("inferColumnTypes", Any),
    ("partitionColumns", Any),
    ("schemaEvolutionMode", Any),
    ("rescuedDataColumn", Any),
    ("readerCaseSensitive", Any),
    ("modifiedAfter", Any),
    ("modifiedBefore", Any),
    ("pathGlobFilter", Any),
    ("fileNamePattern", Alias("pathGlobFilter")),
    ("recursiveFileLookup", Any),
    ("ignoreCorruptFiles", Any),
    ("ignoreMissingFiles", Any),
    ("useStrictGlobber", Any),
    ("timeZone", Any),
    ("maxFilesPerTrigger", Stream),
    ("maxBytesPerTrigger", Stream),
    ("includeExistingFiles", Stream),
    ("allowOverwrites", Stream),
    ("mode", Formats(&[Json, Csv, Avro])),
    ("columnNameOfCorruptRecord", Formats(&[Json, Csv])),
    ("multiLine", Formats(&[Json, Csv])),
    ("dateFormat", Formats(&[Json, Csv])),
    ("timestampFormat", Formats(&[Json, Csv])),
    ("primitivesAsString", Formats(&[Json])),
    ("prefersDecimal", Formats(&[Json])),
    ("inferTimestamp", Formats(&[Json])),
    ("dropFieldIfAllNull", Formats(&[Json])),
    ("allowComments", Formats(&[Json])),
    ("allowSingleQuotes", Formats(&[Json])),
    ("allowUnquotedFieldNames", Formats(&[Json])),
    ("allowNonNumericNumbers", Formats(&[Json])),
    ("allowNumericLeadingZeros", Formats(&[Json])),
    ("allowBackslashEscapingAnyCharacter", Formats(&[Json])),
    ("allowUnquotedControlChars", Formats(&[Json])),
    ("header", Formats(&[Csv])),
    ("sep", Formats(&[Csv])),
    ("delimiter", Alias("sep")),
    ("quote", Formats(&[Csv])),
    ("escape", Formats(&[Csv])),
    ("comment", Formats(&[Csv])),
    ("nullValue", Formats(&[Csv])),
    ("emptyValue", Formats(&[Csv])),
    ("nanValue", Formats(&[Csv])),
    ("positiveInf", Formats(&[Csv])),
    ("negativeInf", Formats(&[Csv])),
    ("skipRows", Formats(&[Csv])),
    ("enforceSchema", Formats(&[Csv])),
    ("ignoreLeadingWhiteSpace", Formats(&[Csv])),
    ("ignoreTrailingWhiteSpace", Formats(&[Csv])),
    ("maxColumns", Formats(&[Csv])),
    ("preferDate", Formats(&[Csv])),
    ("wholeText", Formats(&[Text])),
    ("encoding", only(&["utf-8", "utf8"], "text is read as UTF-8; convert the files")),
    ("charset", only(&["utf-8", "utf8"], "text is read as UTF-8; convert the files")),
    ("lineSep", only(&["\n", "\\n", "\r\n", "\\r\\n"], "lines end with \\n or \\r\\n; remove it")),
    ("locale", only(&["en-us"], "numbers and dates are read as in en-US; remove it")),
    ("mergeSchema", only(&["true"], MERGED)),
    ("cleanSource", only(&["off"], "files are never deleted or moved; remove it")),
    ("cleanSource.retentionDuration", unsupported("files are never deleted or moved; remove it")),
    ("cleanSource.moveDestination", unsupported("files are never deleted or moved; remove it")),
    ("useNotifications", only(&["false"], LOCAL_LISTING)),
    ("useManagedFileEvents", only(&["false"], LOCAL_LISTING)),
    ("useIncrementalListing", only(&["false", "auto"], LOCAL_LISTING)),
    ("backfillInterval", unsupported("each update lists the whole folder; remove it")),
    ("maxFileAge", unsupported("files are remembered for good; remove it")),
    ("schemaLocation", unsupported("the pipeline keeps the schema itself; remove it")),
    ("validateOptions", only(&["true"], "options are always checked; remove it")),
    ("ignoredPathSegmentRegex", only(&["^[._]"], "names that start with `_` or `.` are skipped; remove it")),
    ("inferSchema", unsupported("use inferColumnTypes")),
    ("samplingRatio", only(&["1", "1.0"], "the sample is taken by files; remove it")),
    ("compression", unsupported("it is told by the file's name, .gz or .zst; remove it")),
    ("badRecordsPath", unsupported("broken records go to the rescued data column; use mode or rescuedDataColumn")),
    ("singleVariantColumn", unsupported("there is no VARIANT; read text and use from_json")),
    ("timestampNTZFormat", unsupported("read the column as STRING and use to_timestamp_ntz")),
    ("enableDateTimeParsingFallback", unsupported("give dateFormat or timestampFormat")),
    ("maxCharsPerColumn", only(&["-1"], "values may have any length; remove it")),
    ("unescapedQuoteHandling", unsupported("quotes inside unquoted values are kept; remove it")),
    ("charToEscapeQuoteEscaping", unsupported("use escape")),
    ("datetimeRebaseMode", only(&["corrected"], REBASE)),
    ("int96RebaseMode", only(&["corrected"], REBASE)),
    ("avroSchema", unsupported("use schema")),
    ("avroSchemaEvolutionMode", unsupported("use schemaEvolutionMode")),
    ("rowTag", unsupported(XML)),
    ("attributePrefix", unsupported(XML)),
    ("valueTag", unsupported(XML)),
    ("rowValidationXSDPath", unsupported(XML)),
    ("excludeAttribute", unsupported(XML)),
    ("ignoreNamespace", unsupported(XML)),
];

/// The options of `STREAM t WITH (…)`.
pub(super) const TABLE_OPTIONS: &[(&str, Rule)] = &[
    ("startingVersion", Any),
    ("startingTimestamp", Any),
    ("skipChangeCommits", Any),
    ("maxFilesPerTrigger", Any),
    ("maxBytesPerTrigger", Any),
    ("readChangeFeed", Any),
    ("readChangeData", Alias("readChangeFeed")),
    ("ignoreChanges", only(&["false"], "it is deprecated and gives rows twice; use readChangeFeed")),
    ("ignoreDeletes", only(&["false"], "it is deprecated; use skipChangeCommits")),
    ("failOnDataLoss", only(&["true"], "versions that are gone are always an error; remove it")),
    ("excludeRegex", unsupported("filter rows in the query")),
    ("schemaTrackingLocation", unsupported("the pipeline keeps the schema itself; remove it")),
    ("allowSourceColumnDrop", unsupported("a column that is dropped needs a full refresh; remove it")),
    ("allowSourceColumnRename", unsupported("a column that is renamed needs a full refresh; remove it")),
    ("allowSourceColumnTypeChange", unsupported("a type that changes needs a full refresh; remove it")),
    ("withEventTimeOrder", only(&["false"], "versions are read in the order of their commits; remove it")),
];

/// The options of one call, by the name in the table, each at most once and a constant.
pub(super) struct OptionReader<'a> {
    given: Vec<(&'static str, &'static Rule, &'a ReadOption)>,
    pub diagnostics: Vec<Diagnostic>,
}

impl<'a> OptionReader<'a> {
    /// Sorts out what is unknown, unsupported, given twice or no constant. `call` is how people know the call.
    pub fn new(options: &'a [ReadOption], known: &'static [(&'static str, Rule)], call: &str) -> OptionReader<'a> {
        let mut reader = OptionReader { given: Vec::new(), diagnostics: Vec::new() };
        for option in options {
            if let Err(diagnostic) = reader.admit(option, known, call) {
                reader.diagnostics.push(*diagnostic);
            }
        }
        reader
    }

    /// Takes one option in, or says why not.
    fn admit(
        &mut self,
        option: &'a ReadOption,
        known: &'static [(&'static str, Rule)],
        call: &str,
    ) -> Result<(), Box<Diagnostic>> {
        let (written, place) = (option.name.value.as_str(), option.name.span);
        let bare = match written.split_at_checked("cloudFiles.".len()) {
            Some((prefix, bare)) if prefix.eq_ignore_ascii_case("cloudFiles.") => bare,
            _ => written,
        };
        let find = |name: &str| known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let (mut name, mut rule) = match find(bare) {
            Some((name, rule)) => (*name, rule),
            None => {
                let unknown = Diagnostic::error("unknown-option", place, format!("{call} has no option `{written}`"))
                    .condition("CF_UNKNOWN_OPTION_KEYS_ERROR");
                return Err(Box::new(match nearest(bare, known.iter().map(|(name, _)| *name)) {
                    Some(near) => unknown.help(format!("did you mean `{near}`?")).edit(place, near),
                    None => unknown.help("remove it"),
                }));
            }
        };
        if let Rule::Alias(real) = rule {
            let (real, real_rule) = find(real).expect("an alias names an option of the same table");
            (name, rule) = (real, real_rule);
        }
        if let OptionValue::Expression(sql) = &option.value.value {
            let message = format!("option `{written}` must be a constant, found the expression `{sql}`");
            return Err(Box::new(
                Diagnostic::error("option-value", option.value.span, message)
                    .help("write the value itself, or `${name}` with the value in [configuration] or --set name=…"),
            ));
        }
        if let Rule::Unsupported { same, why } = rule {
            let text = option.value.value.text();
            if same.iter().any(|value| value.eq_ignore_ascii_case(&text)) {
                return Ok(());
            }
            let message = format!("option `{written}` is not supported: {}", shown(&option.value.value));
            return Err(Box::new(Diagnostic::error("unsupported-option", place, message).help(*why)));
        }
        if let Some((.., first)) = self.given.iter().find(|(given, ..)| *given == name) {
            return Err(Box::new(
                Diagnostic::error("duplicate-option", place, format!("option `{written}` is given twice"))
                    .label(first.name.span, "first given here")
                    .help("remove one"),
            ));
        }
        self.given.push((name, rule, option));
        Ok(())
    }

    /// Reports the options that belong to other formats.
    pub fn check_format(&mut self, format: FileFormat) {
        for (_, rule, option) in &self.given {
            if let Rule::Formats(formats) = rule
                && !formats.contains(&format)
            {
                let names: Vec<_> = formats.iter().map(|format| format.word()).collect();
                self.diagnostics.push(
                    Diagnostic::error(
                        "option-of-other-format",
                        option.name.span,
                        format!("option `{}` has no meaning for the format {}", option.name.value, format.word()),
                    )
                    .reason(format!("it belongs to {}", names.join(", ")))
                    .help("remove it"),
                );
            }
        }
    }

    /// Warns of the options that govern micro-batches.
    pub fn warn_of_stream_options(&mut self) {
        for (_, rule, option) in &self.given {
            if let Rule::Stream = rule {
                self.diagnostics.push(
                    Diagnostic::warning(
                        "option-without-effect",
                        option.name.span,
                        format!("option `{}` has no effect in a batch read", option.name.value),
                    )
                    .reason("a batch read takes all files at once")
                    .help("remove it, or read the files with STREAM"),
                );
            }
        }
    }

    /// The option as written.
    pub fn option(&self, name: &'static str) -> Option<&'a ReadOption> {
        self.given.iter().find(|(given, ..)| *given == name).map(|(.., option)| *option)
    }

    /// The value as text, blanks kept.
    pub fn text(&self, name: &'static str) -> Option<Spanned<String>> {
        let option = self.option(name)?;
        Some(Spanned::new(option.value.value.text(), option.value.span))
    }

    pub fn boolean(&mut self, name: &'static str, default: bool) -> bool {
        let Some(option) = self.option(name) else { return default };
        match &option.value.value {
            OptionValue::Bool(boolean) => *boolean,
            OptionValue::Text(text) if text.trim().eq_ignore_ascii_case("true") => true,
            OptionValue::Text(text) if text.trim().eq_ignore_ascii_case("false") => false,
            _ => self.wrong(option, "true or false", default),
        }
    }

    /// A whole number in `range`.
    pub fn count(&mut self, name: &'static str, range: RangeInclusive<usize>, default: usize) -> usize {
        let Some(option) = self.option(name) else { return default };
        match &option.value.value {
            OptionValue::Number(text) | OptionValue::Text(text) => match text.trim().parse() {
                Ok(number) if range.contains(&number) => number,
                _ if *range.end() >= i64::MAX as usize => {
                    self.wrong(option, &format!("a whole number of at least {}", range.start()), default)
                }
                _ => self.wrong(option, &format!("a whole number from {} to {}", range.start(), range.end()), default),
            },
            _ => self.wrong(option, "a whole number", default),
        }
    }

    /// A size above zero.
    pub fn bytes(&mut self, name: &'static str) -> Option<u64> {
        let option = self.option(name)?;
        match parse_byte_size(&option.value.value.text()) {
            Some(bytes) if bytes > 0 => Some(bytes),
            _ => self.wrong(option, "a size above zero, such as '512m' or '10g'", None),
        }
    }

    /// One character; none if empty. `\t` and its like may be written out.
    pub fn character(&mut self, name: &'static str, default: Option<char>) -> Option<char> {
        let Some(option) = self.option(name) else { return default };
        let text = option.value.value.text();
        let text = match text.as_str() {
            "\\t" => "\t",
            "\\\\" => "\\",
            "\\0" | "\\u0000" => "\0",
            text => text,
        };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (first, None) => first,
            _ => self.wrong(option, "one character", default),
        }
    }

    /// One of a few words, compared without regard to case.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
        let option = self.option(name)?;
        let text = option.value.value.text();
        if let Some((_, choice)) = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim())) {
            return Some(*choice);
        }
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        let mut diagnostic = wrong_value(option, &format!("one of {}", words.join(", ")));
        if let Some(near) = nearest(&text, words) {
            diagnostic = diagnostic.help(format!("did you mean '{near}'?"));
        }
        self.diagnostics.push(diagnostic);
        None
    }

    /// A point in time, in microseconds since 1970 UTC.
    pub fn timestamp_us(&mut self, name: &'static str, time_zone: &str) -> Option<i64> {
        let option = self.option(name)?;
        match parse_timestamp_us(&option.value.value.text(), time_zone) {
            Some(us) => Some(us),
            None => self.wrong(option, "a timestamp such as '2025-01-01T00:00:00.000+00:00'", None),
        }
    }

    /// Types or a column list that didn't parse, at its place in the value.
    pub fn wrong_types(&mut self, name: &str, value: &Spanned<String>, error: TypeError) {
        let message = format!("option `{name}`: {}", error.message);
        let diagnostic = Diagnostic::error("invalid-schema", inside(value, &error.range), message);
        self.diagnostics.push(match error.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
    }

    fn wrong<T>(&mut self, option: &ReadOption, expected: &str, otherwise: T) -> T {
        self.diagnostics.push(wrong_value(option, expected));
        otherwise
    }
}

fn wrong_value(option: &ReadOption, expected: &str) -> Diagnostic {
    let found = shown(&option.value.value);
    let message = format!("option `{}` must be {expected}, found {found}", option.name.value);
    Diagnostic::error("option-value", option.value.span, message)
}

/// The value as people wrote it.
fn shown(value: &OptionValue) -> String {
    match value {
        OptionValue::Text(text) => format!("`'{text}'`"),
        other => format!("`{}`", other.text()),
    }
}

/// The place of a part of a string literal: exact if the literal is the text in one-byte quotes, as nearly
/// always; else the literal.
fn inside(value: &Spanned<String>, range: &std::ops::Range<usize>) -> Span {
    let span = value.span;
    match span.end - span.start == value.value.len() + 2 {
        true => Span { file: span.file, start: span.start + 1 + range.start, end: span.start + 1 + range.end },
        false => span,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_once_and_aliases_lead_somewhere() {
        for table in [FILE_OPTIONS, TABLE_OPTIONS] {
            for (i, (name, rule)) in table.iter().enumerate() {
                assert!(table[..i].iter().all(|(other, _)| !other.eq_ignore_ascii_case(name)), "{name} twice");
                if let Rule::Alias(real) = rule {
                    assert!(table.iter().any(|(other, rule)| other == real && !matches!(rule, Rule::Alias(_))));
                }
            }
        }
    }
}
