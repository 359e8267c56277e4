//! The arguments of `read_files`, and of `[[source]]`, checked and completed with the defaults.

use super::options::{FILE_OPTIONS, OptionReader};
use super::{CsvOptions, FileFormat, JsonOptions, ParseMode, ReadFiles, ReadMode, SchemaEvolutionMode};
use crate::data_type::Field;
use crate::ddl::{TypeError, parse_fields, parse_hints};
use crate::diagnostic::{Diagnostic, nearest};
use crate::path::{check_local, map_path};
use crate::query::{FilesCall, OptionValue, ReadOption};
use crate::settings::{ExternalFormat, ExternalTable, Settings};
use crate::text::{Span, Spanned};
use crate::timestamp::time_zone_name;

/// The name of the rescued data column where none is given.
const RESCUED_DATA_COLUMN: &str = "_rescued_data";

/// The formats, by the words that name them.
const FORMATS: [(&str, FileFormat); 5] = [
    ("json", FileFormat::Json),
    ("csv", FileFormat::Csv),
    ("parquet", FileFormat::Parquet),
    ("avro", FileFormat::Avro),
    ("text", FileFormat::Text),
];

const EVOLUTION_MODES: [(&str, SchemaEvolutionMode); 5] = [
    ("addNewColumns", SchemaEvolutionMode::AddNewColumns),
    ("addNewColumnsWithTypeWidening", SchemaEvolutionMode::AddNewColumnsWithTypeWidening),
    ("rescue", SchemaEvolutionMode::Rescue),
    ("failOnNewColumns", SchemaEvolutionMode::FailOnNewColumns),
    ("none", SchemaEvolutionMode::None),
];

const PARSE_MODES: [(&str, ParseMode); 3] = [
    ("PERMISSIVE", ParseMode::Permissive),
    ("DROPMALFORMED", ParseMode::DropMalformed),
    ("FAILFAST", ParseMode::FailFast),
];

impl FileFormat {
    /// The word that names it: `json`.
    pub fn word(self) -> &'static str {
        FORMATS.iter().find(|(_, format)| *format == self).expect("every format has a word").0
    }
}

/// Gives the arguments of `read_files` their types and defaults. None if one is wrong; warnings may come beside
/// a value. The `mode` says whether the options of micro-batches matter.
pub fn read_files(call: &FilesCall, mode: ReadMode, settings: &Settings) -> (Option<ReadFiles>, Vec<Diagnostic>) {
    let mut options = OptionReader::new(&call.options, FILE_OPTIONS, "read_files");
    check_path(call, settings, &mut options);
    // Without a format the other options can't be judged, except for what they say by themselves.
    let format = format(call, &mut options);
    if let Some(format) = format {
        options.check_format(format);
    }
    if mode == ReadMode::Batch {
        options.warn_of_stream_options();
    }
    let read = checked(call, format.unwrap_or(FileFormat::Json), settings, &mut options);
    let is_valid = !options.diagnostics.iter().any(Diagnostic::is_error);
    (is_valid.then_some(read), options.diagnostics)
}

/// As [`read_files`], of an external table; None without an error if its format is Delta.
pub fn external_files(table: &ExternalTable, settings: &Settings) -> (Option<ReadFiles>, Vec<Diagnostic>) {
    let word = match table.format {
        ExternalFormat::Json => "json",
        ExternalFormat::Csv => "csv",
        ExternalFormat::Parquet => "parquet",
        ExternalFormat::Avro => "avro",
        ExternalFormat::Delta => {
            let diagnostics = table.options.iter().map(|(name, _)| {
                let message = format!("a Delta table has no option `{}`", name.value);
                Diagnostic::error("unsupported-option", name.span, message).help("remove it")
            });
            let path = check_local(&map_path(&table.path.value, &settings.paths), table.path.span);
            return (None, diagnostics.chain(path).collect());
        }
    };
    let option = |name: Spanned<String>, value: &str, span: Span| ReadOption {
        name,
        value: Spanned::new(OptionValue::Text(value.to_string()), span),
    };
    let mut options = vec![option(Spanned::new("format".to_string(), table.span), word, table.span)];
    options.extend(table.options.iter().map(|(name, value)| option(name.clone(), value, name.span)));
    let call = FilesCall { path: table.path.clone(), options };
    read_files(&call, ReadMode::Batch, settings)
}

fn check_path(call: &FilesCall, settings: &Settings, options: &mut OptionReader) {
    if call.path.value.trim().is_empty() {
        options.diagnostics.push(Diagnostic::error("empty-value", call.path.span, "the path of read_files is empty"));
    }
    options.diagnostics.extend(check_local(&map_path(&call.path.value, &settings.paths), call.path.span));
    options.diagnostics.extend(check_glob(&call.path));
}

/// An error if a `{` or `[` of a glob is never closed.
fn check_glob(glob: &Spanned<String>) -> Option<Diagnostic> {
    let mut open: Vec<char> = Vec::new();
    let mut chars = glob.value.chars();
    while let Some(c) = chars.next() {
        match (c, open.last()) {
            ('\\', _) => {
                chars.next();
            }
            (']', Some('[')) | ('}', Some('{')) => {
                open.pop();
            }
            (_, Some('[')) => {}
            ('[' | '{', _) => open.push(c),
            _ => {}
        }
    }
    let c = open.pop()?;
    Some(
        Diagnostic::error("invalid-glob", glob.span, format!("`{c}` is never closed in the glob `{}`", glob.value))
            .help(format!("close it, or write `\\{c}` for the character itself")),
    )
}

fn format(call: &FilesCall, options: &mut OptionReader) -> Option<FileFormat> {
    let Some(word) = options.text("format") else {
        let guessed = format_of_path(&call.path.value);
        if guessed.is_none() {
            let names: Vec<_> = FORMATS.iter().map(|(word, _)| *word).collect();
            options.diagnostics.push(
                Diagnostic::error("unknown-format", call.path.span, "the path doesn't tell the format of the files")
                    .help(format!("add `format => \"…\"` with one of: {}", names.join(", "))),
            );
        }
        return guessed;
    };
    let found = FORMATS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.value.trim()));
    if let Some((_, format)) = found {
        return Some(*format);
    }
    let names: Vec<_> = FORMATS.iter().map(|(word, _)| *word).collect();
    let diagnostic = match word.value.trim().to_ascii_lowercase().as_str() {
        "xml" | "orc" | "binaryfile" | "file" => Diagnostic::error(
            "unsupported-format",
            word.span,
            format!("the format {} is not supported", word.value.trim()),
        )
        .help(format!("convert the files to one of: {}", names.join(", "))),
        "delta" => Diagnostic::error("unsupported-format", word.span, "read_files doesn't read Delta tables")
            .help("add a [[source]] with format = \"delta\" to flowbench.toml, and read it by its name"),
        _ => {
            let unknown = Diagnostic::error("unknown-format", word.span, format!("unknown format: `{}`", word.value));
            match nearest(&word.value, names.iter().copied()) {
                Some(near) => unknown.help(format!("did you mean {near}?")),
                None => unknown.help(format!("use one of: {}", names.join(", "))),
            }
        }
    };
    options.diagnostics.push(diagnostic);
    None
}

/// The format that the extension of the path's last segment gives away, that of the compression aside.
fn format_of_path(path: &str) -> Option<FileFormat> {
    let name = path.rsplit('/').next()?.to_ascii_lowercase();
    let name = [".gz", ".zst", ".gzip", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "json" | "jsonl" | "ndjson" => Some(FileFormat::Json),
        "csv" | "tsv" => Some(FileFormat::Csv),
        "parquet" => Some(FileFormat::Parquet),
        "avro" => Some(FileFormat::Avro),
        "txt" | "log" => Some(FileFormat::Text),
        _ => None,
    }
}

fn checked(call: &FilesCall, format: FileFormat, settings: &Settings, options: &mut OptionReader) -> ReadFiles {
    let time_zone = time_zone(settings, options);
    let (modified_after_us, modified_before_us) = modified_between(&time_zone, options);
    let schema = fields("schema", parse_fields, options);
    let schema_hints = fields("schemaHints", parse_hints, options).unwrap_or_default();
    let schema_evolution_mode = schema_evolution_mode(format, options);
    let file_name_glob = options.text("pathGlobFilter");
    options.diagnostics.extend(file_name_glob.as_ref().and_then(check_glob));
    ReadFiles {
        path: map_path(&call.path.value, &settings.paths),
        path_span: call.path.span,
        format,
        schema,
        schema_hints,
        infer_column_types: infer_column_types(options),
        partition_columns: partition_columns(options),
        schema_evolution_mode,
        rescued_data_column: rescued_data_column(format, schema_evolution_mode, options),
        reader_case_sensitive: options.boolean("readerCaseSensitive", true),
        max_files_per_trigger: options.count("maxFilesPerTrigger", 1..=usize::MAX, 1000),
        max_bytes_per_trigger: options.bytes("maxBytesPerTrigger"),
        include_existing_files: options.boolean("includeExistingFiles", true),
        allow_overwrites: options.boolean("allowOverwrites", false),
        modified_after_us,
        modified_before_us,
        file_name_glob: file_name_glob.map(|glob| glob.value),
        recursive_file_lookup: options.boolean("recursiveFileLookup", false),
        ignore_corrupt_files: options.boolean("ignoreCorruptFiles", false),
        ignore_missing_files: options.boolean("ignoreMissingFiles", false),
        use_strict_globber: options.boolean("useStrictGlobber", true),
        parse_mode: options.choice("mode", &PARSE_MODES).unwrap_or(match format {
            FileFormat::Avro => ParseMode::FailFast,
            _ => ParseMode::Permissive,
        }),
        corrupt_record_column: options.text("columnNameOfCorruptRecord").map(|name| name.value),
        multi_line: options.boolean("multiLine", false),
        date_format: options.text("dateFormat").map(|pattern| pattern.value),
        timestamp_format: options.text("timestampFormat").map(|pattern| pattern.value),
        time_zone,
        json: json_options(options),
        csv: csv_options(call, options),
        whole_text: options.boolean("wholeText", false),
    }
}

fn time_zone(settings: &Settings, options: &mut OptionReader) -> String {
    let session = settings.time_zone.value.clone();
    let Some(zone) = options.text("timeZone") else { return session };
    match time_zone_name(zone.value.trim()) {
        Some(name) => name.to_string(),
        None => {
            options.diagnostics.push(
                Diagnostic::error("unknown-time-zone", zone.span, format!("unknown time zone: `{}`", zone.value))
                    .help("use a name such as Asia/Tokyo or UTC"),
            );
            session
        }
    }
}

fn modified_between(time_zone: &str, options: &mut OptionReader) -> (Option<i64>, Option<i64>) {
    let after = options.timestamp_us("modifiedAfter", time_zone);
    let before = options.timestamp_us("modifiedBefore", time_zone);
    if let (Some(after), Some(before)) = (after, before)
        && after >= before
        && let (Some(first), Some(second)) = (options.option("modifiedAfter"), options.option("modifiedBefore"))
    {
        options.diagnostics.push(
            Diagnostic::error(
                "conflicting-options",
                second.value.span,
                "no file is later than `modifiedAfter` and earlier than `modifiedBefore`",
            )
            .label(first.value.span, "not earlier than `modifiedBefore`")
            .help("swap them, or remove one"),
        );
    }
    (after, before)
}

type ParseFields = fn(&str) -> Result<Vec<Field>, TypeError>;

fn fields(name: &'static str, parse: ParseFields, options: &mut OptionReader) -> Option<Vec<Field>> {
    let text = options.text(name)?;
    match parse(&text.value) {
        Ok(fields) => Some(fields),
        Err(error) => {
            options.wrong_types(name, &text, error);
            None
        }
    }
}

fn infer_column_types(options: &mut OptionReader) -> bool {
    if let Some(schema) = options.option("schema") {
        let beside = |option: &ReadOption, new: fn(&'static str, Span, String) -> Diagnostic, code| {
            new(code, option.name.span, format!("`{}` has no meaning beside `schema`", option.name.value))
                .reason("with a schema nothing is inferred")
                .label(schema.name.span, "the schema")
                .help("remove one of them")
        };
        let hints =
            options.option("schemaHints").map(|option| beside(option, Diagnostic::error, "conflicting-options"));
        let infers = options
            .option("inferColumnTypes")
            .map(|option| beside(option, Diagnostic::warning, "option-without-effect"));
        options.diagnostics.extend(hints.into_iter().chain(infers));
    }
    options.boolean("inferColumnTypes", true)
}

fn partition_columns(options: &mut OptionReader) -> Option<Vec<String>> {
    let list = options.text("partitionColumns")?;
    let mut columns: Vec<String> = Vec::new();
    for name in list.value.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if columns.iter().any(|column| column.to_lowercase() == name.to_lowercase()) {
            let message = format!("`partitionColumns` names `{name}` twice");
            options.diagnostics.push(Diagnostic::error("option-value", list.span, message).help("remove one"));
        }
        columns.push(name.to_string());
    }
    Some(columns)
}

/// The mode as given, else `addNewColumns` where the schema is inferred and `none` where it is given or fixed.
fn schema_evolution_mode(format: FileFormat, options: &mut OptionReader) -> SchemaEvolutionMode {
    use SchemaEvolutionMode::{AddNewColumns, AddNewColumnsWithTypeWidening};
    let schema = options.option("schema");
    let Some(mode) = options.choice("schemaEvolutionMode", &EVOLUTION_MODES) else {
        return match schema.is_none() && format != FileFormat::Text {
            true => AddNewColumns,
            false => SchemaEvolutionMode::None,
        };
    };
    let option = options.option("schemaEvolutionMode").expect("a choice was made of it");
    let adds_columns = matches!(mode, AddNewColumns | AddNewColumnsWithTypeWidening);
    if let Some(schema) = schema
        && adds_columns
    {
        options.diagnostics.push(
            Diagnostic::error(
                "conflicting-options",
                option.value.span,
                format!("`schemaEvolutionMode` {} is not allowed beside `schema`", option.value.value.text()),
            )
            .condition("CF_ADD_NEW_NOT_SUPPORTED")
            .reason("a schema that is given never grows")
            .label(schema.name.span, "the schema")
            .help("use `schemaHints` instead of `schema`, or another mode: none, rescue, failOnNewColumns"),
        );
    } else if format == FileFormat::Text && mode != SchemaEvolutionMode::None {
        options.diagnostics.push(
            Diagnostic::error(
                "conflicting-options",
                option.value.span,
                "text files have one column, `value`, and no schema evolution",
            )
            .help("remove `schemaEvolutionMode`"),
        );
    }
    mode
}

/// The name as given (empty: off), else `_rescued_data` where the schema is inferred or the mode is `rescue`.
fn rescued_data_column(format: FileFormat, mode: SchemaEvolutionMode, options: &mut OptionReader) -> Option<String> {
    let rescues = mode == SchemaEvolutionMode::Rescue;
    match options.text("rescuedDataColumn") {
        Some(name) if name.value.trim().is_empty() => {
            if rescues {
                options.diagnostics.push(
                    Diagnostic::error(
                        "conflicting-options",
                        name.span,
                        "`schemaEvolutionMode` rescue needs a rescued data column",
                    )
                    .help("name one, or use schemaEvolutionMode => \"none\""),
                );
            }
            None
        }
        Some(name) => Some(name.value.trim().to_string()),
        None => {
            let infers = options.option("schema").is_none() && mode != SchemaEvolutionMode::None;
            (format != FileFormat::Text && (infers || rescues)).then(|| RESCUED_DATA_COLUMN.to_string())
        }
    }
}

fn json_options(options: &mut OptionReader) -> JsonOptions {
    JsonOptions {
        primitives_as_string: options.boolean("primitivesAsString", false),
        prefers_decimal: options.boolean("prefersDecimal", false),
        infer_timestamp: options.boolean("inferTimestamp", false),
        drop_field_if_all_null: options.boolean("dropFieldIfAllNull", false),
        allow_comments: options.boolean("allowComments", false),
        allow_single_quotes: options.boolean("allowSingleQuotes", true),
        allow_unquoted_field_names: options.boolean("allowUnquotedFieldNames", false),
        allow_non_numeric_numbers: options.boolean("allowNonNumericNumbers", true),
        allow_numeric_leading_zeros: options.boolean("allowNumericLeadingZeros", false),
        allow_backslash_escaping_any_character: options.boolean("allowBackslashEscapingAnyCharacter", false),
        allow_unquoted_control_chars: options.boolean("allowUnquotedControlChars", false),
    }
}

/// Spark's defaults; a path of `.tsv` files is separated by tabs.
fn csv_options(call: &FilesCall, options: &mut OptionReader) -> CsvOptions {
    let path = call.path.value.to_ascii_lowercase();
    let is_tsv = path.trim_end_matches(".gz").trim_end_matches(".zst").ends_with(".tsv");
    let text = |options: &OptionReader, name, default: &str| {
        options.text(name).map_or_else(|| default.to_string(), |text| text.value)
    };
    let separator = options.character("sep", Some(if is_tsv { '\t' } else { ',' }));
    let quote = options.character("quote", Some('"'));
    if let Some(option) = options.option("sep") {
        let problem = match separator {
            None => Some("the separator is empty"),
            Some('\n' | '\r') => Some("a line end can't separate values"),
            Some(c) if Some(c) == quote => Some("the separator and the quote are the same character"),
            Some(_) => None,
        };
        let diagnostic = problem.map(|problem| Diagnostic::error("option-value", option.value.span, problem));
        options.diagnostics.extend(diagnostic);
    }
    CsvOptions {
        header: options.boolean("header", false),
        separator: separator.unwrap_or(','),
        quote,
        escape: options.character("escape", Some('\\')),
        comment: options.character("comment", None),
        null_value: text(options, "nullValue", ""),
        empty_value: text(options, "emptyValue", ""),
        nan_value: text(options, "nanValue", "NaN"),
        positive_infinity: text(options, "positiveInf", "Inf"),
        negative_infinity: text(options, "negativeInf", "-Inf"),
        skip_rows: options.count("skipRows", 0..=usize::MAX, 0),
        enforce_schema: options.boolean("enforceSchema", true),
        ignore_leading_white_space: options.boolean("ignoreLeadingWhiteSpace", false),
        ignore_trailing_white_space: options.boolean("ignoreTrailingWhiteSpace", false),
        max_columns: options.count("maxColumns", 1..=usize::MAX, 20480),
        prefer_date: options.boolean("preferDate", true),
    }
}
