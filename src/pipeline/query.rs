//! A flow's query: SQL text over named inputs, and what each input reads.
//!
//! The engine never sees `STREAM`, `read_files` or the name of a dataset: `parse/query.rs` replaces each
//! of them by an input's name, so that the engine decides what a micro-batch sees.

use crate::name::Name;
use crate::text::{FileId, MappedText, Span, Spanned};

/// A query whose sources were taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// What DataFusion plans: every relation is the name of one of `inputs` (or a CTE).
    pub sql: MappedText,
    pub inputs: Vec<Input>,
    /// The whole query as the user wrote it.
    pub span: Span,
    /// The query as written after `${name}` was replaced, white space and comments folded: what is hashed
    /// to find out whether the definition changed.
    pub fingerprint_text: String,
}

impl Query {
    /// True if at least one input is read as a stream.
    pub fn is_streaming(&self) -> bool {
        self.inputs.iter().any(|input| input.stream)
    }

    /// Follows its files to other places in the list of files.
    pub fn move_to(&mut self, moved: &dyn Fn(FileId) -> FileId) {
        let Query { sql, inputs, span, fingerprint_text: _ } = self;
        sql.move_to(moved);
        span.move_to(moved);
        for Input { source, options, span, name_span, name: _, stream: _, uses_metadata: _ } in inputs {
            span.move_to(moved);
            name_span.iter_mut().for_each(|span| span.move_to(moved));
            if let InputSource::Files(FilesCall { path, options }) = source {
                path.span.move_to(moved);
                options.iter_mut().for_each(|option| option.move_to(moved));
            }
            options.iter_mut().for_each(|option| option.move_to(moved));
        }
    }
}

/// Something a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The name in [`Query::sql`], unique in the query: `__input_0`, `__input_1`, …
    pub name: String,
    pub source: InputSource,
    /// `STREAM …`: read incrementally. Without it: the whole of it, each time.
    pub stream: bool,
    /// `STREAM t WITH (…)` or `read_stream("t", k => v)`: options of reading a table as a stream.
    pub options: Vec<ReadOption>,
    /// The name, or the call with its arguments; with STREAM if there is one.
    pub span: Span,
    /// Only the name of the table, where it stands in the file letter for letter: what an edit would replace.
    pub name_span: Option<Span>,
    /// True if the query uses the hidden column `_metadata`.
    pub uses_metadata: bool,
}

/// What an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSource {
    /// A dataset of the pipeline or an external table.
    Table(Name),
    /// `read_files(path, option => value …)`.
    Files(FilesCall),
    /// A source that parses and isn't built yet: `read_kafka`, …
    Unsupported(String),
}

/// The arguments of `read_files` as written; `crate::read_files` gives them types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesCall {
    pub path: Spanned<String>,
    pub options: Vec<ReadOption>,
}

/// `name => value`; the name is spelled as written and compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOption {
    pub name: Spanned<String>,
    pub value: Spanned<OptionValue>,
}

impl ReadOption {
    fn move_to(&mut self, moved: &dyn Fn(FileId) -> FileId) {
        self.name.span.move_to(moved);
        self.value.span.move_to(moved);
    }
}

/// A constant in an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    Text(String),
    /// As written: `100`, `0.5`.
    Number(String),
    Bool(bool),
    /// A constant expression, as SQL, that the engine has to compute: `date_sub(current_date(), 1)`.
    Expression(String),
}

impl OptionValue {
    /// The value as text, the way Spark passes options on.
    pub fn text(&self) -> String {
        match self {
            OptionValue::Text(text) | OptionValue::Number(text) | OptionValue::Expression(text) => text.clone(),
            OptionValue::Bool(value) => value.to_string(),
        }
    }
}
