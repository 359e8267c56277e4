//! What a query reads: the columns behind each of its inputs, inferred, remembered or on record.

use arrow::datatypes::SchemaRef;
use pipeline::change_feed::is_change_feed_column;
use pipeline::diagnostic::Diagnostic;
use pipeline::graph::{DatasetId, Flow, ResolvedInput, Source};
use pipeline::read_files::TableStream;
use pipeline::text::Span;

use crate::error::Result;
use crate::listings::source_key;
use crate::plans::{InputSchemas, ReadingId};
use crate::recorded::StoredSchema;
use crate::source::change_feed::feed_schema;
use crate::source::files::{as_declared, table_schema};
use crate::source::flow_sources::flow_sources;
use crate::source::remembered::external_schema;

use super::{REFUSED, SOURCE_UNREADABLE, Work};

impl Work<'_> {
    /// The columns behind the inputs of a query and of the views it reads; None if some are unknown.
    pub(super) async fn schemas(&mut self, target: DatasetId, id: ReadingId) -> Result<Option<InputSchemas>> {
        let graph = self.engine.graph();
        let reading = id.reading(graph);
        // What was refused by name would only be refused again, in the planner's words.
        let span = reading.query.span;
        let is_within = |place: Span| place.file == span.file && (span.start..span.end).contains(&place.start);
        let mut refused = self.engine.diagnostics().iter().filter(|found| REFUSED.contains(&found.code));
        if refused.any(|found| found.is_error() && found.span.is_some_and(is_within)) {
            return Ok(None);
        }
        let flow = match id {
            ReadingId::Flow(id) => Some(graph.flow(id)),
            ReadingId::Version(_) | ReadingId::View(_) => None,
        };
        let mut schemas = InputSchemas::new();
        let mut is_known = true;
        for source in flow_sources(graph, reading) {
            match self.schema(source.input, &source.key, flow).await? {
                Some(schema) => drop(schemas.insert(source.input.id, schema)),
                None => {
                    is_known = false;
                    if !matches!(source.input.source, Source::Files(_)) {
                        self.unresolved.insert(target);
                    }
                }
            }
        }
        for input in graph.all_inputs(reading) {
            match input.source {
                Source::Dataset { id, .. } if graph.dataset(id).view.is_some() => {}
                Source::Unresolved => {
                    is_known = false;
                    // Of a view that it reads; its own is an error of its own.
                    if !reading.inputs.iter().any(|own| std::ptr::eq(own, input)) {
                        self.unresolved.insert(target);
                    }
                }
                _ => is_known &= schemas.contains_key(&input.id),
            }
        }
        Ok(is_known.then_some(schemas))
    }

    /// The columns of a source; None if those are unknown.
    pub(super) async fn schema(
        &mut self,
        input: &ResolvedInput,
        key: &str,
        flow: Option<&Flow>,
    ) -> Result<Option<SchemaRef>> {
        Ok(match &input.source {
            Source::Dataset { id, stream } => {
                let schema = self.dataset_schema(*id);
                schema.and_then(|schema| self.stream_schema(input, stream, schema))
            }
            Source::External { id, stream } => {
                let schema = self.external(id.0).await;
                schema.and_then(|schema| self.stream_schema(input, stream, schema))
            }
            Source::Files(spec) => match self.stored_schema(flow, key)? {
                StoredSchema::Schema(schema) => Some(table_schema(&as_declared(spec, schema)?, input.uses_metadata)),
                StoredSchema::DoneWithout => None,
                StoredSchema::Unknown => match self.sources.files(spec).await {
                    Ok(schema) => schema.map(|schema| {
                        let key = (source_key(spec), input.uses_metadata);
                        let made = || table_schema(&schema, input.uses_metadata);
                        self.file_schemas.entry(key).or_insert_with(made).clone()
                    }),
                    Err(failure) => {
                        self.report(Diagnostic {
                            help: failure.help,
                            ..Diagnostic::error(SOURCE_UNREADABLE, input.span, failure.message)
                        });
                        None
                    }
                },
            },
            Source::Unresolved => None,
        })
    }

    /// The columns that a read of a table with these columns has: a change feed has more. None if they clash.
    fn stream_schema(&mut self, input: &ResolvedInput, stream: &TableStream, table: SchemaRef) -> Option<SchemaRef> {
        if !stream.reads_change_feed {
            return Some(table);
        }
        let Some(own) = table.fields().iter().find(|field| is_change_feed_column(field.name())) else {
            return Some(feed_schema(&table));
        };
        let message = format!("the table has a column `{}`, as its change feed has", own.name());
        self.report(
            Diagnostic::error("change-feed-column", input.span, message)
                .reason("columns of that name tell of the change in a change feed")
                .help("name the column differently in the table, or read the table without READCHANGEFEED"),
        );
        None
    }

    /// The columns of a dataset that was analysed; made once, however many read it.
    pub(super) fn dataset_schema(&mut self, id: DatasetId) -> Option<SchemaRef> {
        let columns = self.analysis.columns[id.0].as_ref()?;
        Some(self.dataset_schemas.entry(id).or_insert_with(|| columns.schema()).clone())
    }

    pub(super) fn stored_schema(&self, flow: Option<&Flow>, key: &str) -> Result<StoredSchema> {
        let Some(flow) = flow.filter(|flow| !self.anew.contains(&flow.target)) else {
            return Ok(StoredSchema::Unknown);
        };
        self.recorded.schema(self.engine.graph().dataset(flow.target), flow, key)
    }

    pub(super) async fn external(&mut self, index: usize) -> Option<SchemaRef> {
        if let Some(known) = self.externals.get(&index) {
            return known.clone();
        }
        let table = &self.engine.graph().externals[index];
        let found = external_schema(self.sources, table, self.engine.settings(), self.engine.root()).await;
        let missing = |message: String| Diagnostic::error("source-missing", table.path.span, message);
        let found = match found {
            Ok(Some(found)) => Some(found),
            Ok(None) => {
                let message = format!("source `{}` has no files", table.name.value);
                self.report(missing(message).help("correct its path in flowbench.toml"));
                None
            }
            Err(failure) => {
                self.report(Diagnostic { help: failure.help, ..missing(failure.message) });
                None
            }
        };
        self.externals.insert(index, found.clone());
        found
    }
}
