//! What a dataset's table holds: the columns that are declared, those that are stored and those that its flows
//! give, joined; and what doesn't go together.

use std::collections::{BTreeSet, HashMap};

use datafusion::common::ScalarValue;
use pipeline::auto_cdc::{END_AT, START_AT, ScdType};
use pipeline::change::AppliedDataset;
use pipeline::data_type::{DataType, Field};
use pipeline::ddl::parse_type;
use pipeline::definition::{ColumnDefinition, DatasetKind};
use pipeline::diagnostic::{Diagnostic, nearest};
use pipeline::graph::{Dataset, DatasetId, FlowId, Source};
use pipeline::text::Span;

use crate::columns::{Columns, Misfit, grow};
use crate::data_type::{position, schema_from_arrow, to_arrow};
use crate::error::{Error, Result};

use super::Work;

impl<'a> Work<'a> {
    /// Joins what is declared, what is stored and what the flows give.
    pub(super) async fn columns(
        &mut self,
        id: DatasetId,
        dataset: &'a Dataset,
        given: &[(FlowId, Option<Vec<Field>>)],
    ) -> Result<Option<Columns>> {
        let is_anew = self.anew.contains(&id);
        self.check_kind(dataset);
        let declared = self.declared(dataset).await?;
        let stored = match dataset.kind() == DatasetKind::StreamingTable && !is_anew {
            true => self.stored(dataset, declared.as_ref()).await?,
            false => None,
        };
        let mut columns = match (&declared, &stored) {
            (Some(declared), _) => Some(declared.clone()),
            (None, Some(stored)) => Some(stored.clone()),
            (None, None) => None,
        };
        // Who gave a column first, to name both flows of a conflict.
        let mut first: HashMap<String, FlowId> = HashMap::new();
        let mut told: BTreeSet<(Span, String)> = BTreeSet::new();
        for (flow, fields) in given {
            let Some(fields) = fields else { continue };
            let target = columns.clone().unwrap_or_else(|| Columns::grown(Vec::new()));
            let outcome = match stored.is_some() || declared.is_some() {
                true => grow(&target, fields),
                false => merge(&target, fields),
            };
            let mut outcome = outcome;
            if let Some(declared) = &declared {
                self.check_not_null(dataset, *flow, declared, fields);
                let change = self.engine.graph().flow(*flow).change.as_ref();
                if change.is_some_and(|change| change.scd_type() == ScdType::Two) {
                    outcome = outcome.and_then(|grown| exact_bounds(declared, fields).map(|()| grown));
                }
            }
            match outcome {
                Ok(grown) => columns = Some(grown),
                Err(misfits) => {
                    for misfit in misfits {
                        let is_fixed = stored.is_some();
                        // Flows of one `for_each` stand in one place, and are wrong in one place.
                        let span = self.engine.graph().flow(*flow).reading.query.span;
                        if told.insert((span, misfit.to_string())) {
                            let diagnostic = self.misfit(dataset, *flow, &misfit, &first, declared.is_some(), is_fixed);
                            self.analysis.diagnostics.push(diagnostic);
                        }
                    }
                }
            }
            for field in fields {
                first.entry(field.name.to_lowercase()).or_insert(*flow);
            }
        }
        Ok(columns)
    }

    /// What is NOT NULL and has no default must come from every flow.
    pub(super) fn check_not_null(&mut self, dataset: &Dataset, flow: FlowId, declared: &Columns, given: &[Field]) {
        let flow = self.engine.graph().flow(flow);
        for (field, default) in declared.fields.iter().zip(&declared.defaults) {
            if field.is_nullable || default.is_some() || position(given, &field.name).is_some() {
                continue;
            }
            let message = format!("flow `{}` lacks column `{}`, which is NOT NULL", flow.name, field.name);
            let mut diagnostic = Diagnostic::error("not-null-column-missing", flow.reading.query.span, message)
                .condition("NOT_NULL_CONSTRAINT_VIOLATION")
                .reason("a column that a flow lacks is NULL")
                .help("add the column to the query, or give it a DEFAULT");
            let mut declarations = dataset.definition.columns.iter();
            if let Some(column) = declarations.find(|column| column.name.value.eq_ignore_ascii_case(&field.name)) {
                diagnostic = diagnostic.label(column.name.span, "declared here");
            }
            self.analysis.diagnostics.push(diagnostic);
        }
    }

    /// A streaming table can't become a materialized view in place, nor the other way round.
    pub(super) fn check_kind(&mut self, dataset: &Dataset) {
        let recorded = self.recorded.kind(dataset);
        if let Some(was) = recorded.filter(|was| *was != dataset.kind()) {
            self.analysis.diagnostics.push(
                Diagnostic::error(
                    "dataset-kind-changed",
                    dataset.definition.name.span,
                    format!("`{}` was a {} and is now a {}", dataset.label, was.words(), dataset.kind().words()),
                )
                .condition("CANNOT_CHANGE_DATASET_TYPE")
                .reason("its table and checkpoints don't fit the new kind, and a full refresh doesn't change that")
                .help(format!(
                    "give the new one another name; or take it out of the files, run `flowbench drop {} --yes`, and put it back",
                    dataset.label
                )),
            );
        }
    }

    pub(super) fn misfit(
        &self,
        dataset: &Dataset,
        flow_id: FlowId,
        misfit: &Misfit,
        first: &HashMap<String, FlowId>,
        is_declared: bool,
        is_stored: bool,
    ) -> Diagnostic {
        let graph = self.engine.graph();
        let flow = graph.flow(flow_id);
        let span = flow.reading.query.span;
        let label = &dataset.label;
        match misfit {
            Misfit::Type { column, from, to } => {
                let other = first.get(&column.to_lowercase()).map(|id| graph.flow(*id));
                let declared = dataset.definition.columns.iter().find(|c| c.name.value.eq_ignore_ascii_case(column));
                let diagnostic = match (declared, other) {
                    (Some(declared), _) => Diagnostic::error(
                        "schema-mismatch",
                        span,
                        format!("column `{column}` of `{label}` is declared {to}; flow `{}` gives {from}", flow.name),
                    )
                    .label(declared.name.span, "declared here"),
                    (None, Some(other)) => Diagnostic::error(
                        "flow-types-differ",
                        span,
                        format!(
                            "column `{column}` of `{label}` is {from} from flow `{}` and {to} from flow `{}`",
                            flow.name, other.name
                        ),
                    )
                    .label(other.name_span, "the other flow"),
                    (None, None) => Diagnostic::error(
                        "schema-mismatch",
                        span,
                        format!("column `{column}` of `{label}` is {to}; flow `{}` gives {from}", flow.name),
                    ),
                };
                let diagnostic = match is_declared {
                    true => diagnostic.condition("USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE"),
                    false => diagnostic.condition("CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE"),
                };
                let reads_files = graph.all_inputs(&flow.reading).iter().any(|i| matches!(i.source, Source::Files(_)));
                let mut cast = match flow.kind.is_change() {
                    true if is_bound(column) => format!(
                        "declare it as the sequence is, {column} {from}; or make the sequence {to}: SEQUENCE BY CAST(… AS {to})"
                    ),
                    true => format!("make it {to} in a temporary view, CAST(… AS {to}) AS {column}, and read that"),
                    false => format!("make it {to} in the query: CAST(… AS {to}) AS {column}"),
                };
                if reads_files && !is_bound(column) {
                    cast.push_str(&format!(", or give read_files schemaHints => \"{column} {to}\""));
                }
                let reason = match flow.kind.is_change() && is_bound(column) {
                    true => format!("{START_AT} and {END_AT} are sequences: their type is exactly the sequence's"),
                    false => format!("{from} can't be widened to {to}"),
                };
                diagnostic.reason(reason).help(match is_stored {
                    true => format!("{cast}; or build the table anew: flowbench run --full-refresh {label}"),
                    false => cast,
                })
            }
            Misfit::Undeclared { column } if is_bound(column) => {
                let message = format!("`{label}` is declared without `{column}`, which SCD type 2 fills");
                Diagnostic::error("undeclared-column", dataset.definition.name.span, message)
                    .condition("USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE")
                    .reason("a row of SCD type 2 says from when to when it holds")
                    .label(flow.name_span, format!("`{}` stores it as SCD type 2", flow.name))
                    .help(match &self.analysis.sequences[flow_id.0] {
                        Some(sequence) => format!(
                            "declare both of the sequence's type: {START_AT} {sequence}, {END_AT} {sequence}; or declare no \
                             columns"
                        ),
                        None => format!("declare both of the sequence's type: {START_AT}, {END_AT}; or declare no columns"),
                    })
            }
            misfit => Diagnostic::error("undeclared-column", span, format!("flow `{}`: {misfit}", flow.name))
                .condition("USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE")
                .label(dataset.definition.name.span, "its columns are declared here")
                .help("declare the column, or leave it out of the query"),
        }
    }

    /// The columns of the definition, with their types and defaults.
    pub(super) async fn declared(&mut self, dataset: &'a Dataset) -> Result<Option<Columns>> {
        let definition = &dataset.definition;
        if definition.columns.is_empty() {
            return Ok(None);
        }
        let mut columns = Columns { fields: Vec::new(), is_declared: true, defaults: Vec::new() };
        for column in &definition.columns {
            let Some(data_type) = &column.data_type else { continue };
            // A type that can't be read is reported by `pipeline::validate`.
            let Ok(data_type) = parse_type(&data_type.value) else { continue };
            columns.fields.push(Field {
                name: column.name.value.clone(),
                data_type,
                is_nullable: column.is_nullable,
                comment: column.comment.clone(),
            });
            columns.defaults.push(self.default(column).await?);
        }
        Ok((!columns.fields.is_empty()).then_some(columns))
    }

    /// The value of `DEFAULT expr`, which must be a constant.
    pub(super) async fn default(&mut self, column: &ColumnDefinition) -> Result<Option<ScalarValue>> {
        let Some(default) = &column.default else { return Ok(None) };
        match self.engine.plans().default_value(self.engine, &default.value).await? {
            Ok(value) => Ok(Some(value)),
            Err(message) => {
                self.analysis.diagnostics.push(
                    Diagnostic::error(
                        "column-default",
                        default.span,
                        format!("DEFAULT of `{}`: {message}", column.name.value),
                    )
                    .help("a default is a constant, such as 0 or 'unknown'"),
                );
                Ok(None)
            }
        }
    }

    /// The columns of the table on disk; what can't be changed in place is reported.
    pub(super) async fn stored(&mut self, dataset: &'a Dataset, declared: Option<&Columns>) -> Result<Option<Columns>> {
        if !self.has_storage {
            return Ok(None);
        }
        let Some(table) = self.engine.table(dataset)? else { return Ok(None) };
        let table = table.lock().await;
        let fields = schema_from_arrow(&table.schema()).map_err(Error::Internal)?;
        let label = &dataset.label;
        let refresh = format!("build it anew: flowbench run --full-refresh {label}");
        let wanted: Vec<&str> = dataset.definition.partition_by.iter().map(|column| column.value.as_str()).collect();
        let is_same = wanted.len() == table.partition_by().len()
            && wanted.iter().zip(table.partition_by()).all(|(a, b)| a.eq_ignore_ascii_case(b));
        if !is_same {
            let was =
                if table.partition_by().is_empty() { "nothing".to_string() } else { table.partition_by().join(", ") };
            let now = if wanted.is_empty() { "nothing".to_string() } else { wanted.join(", ") };
            self.analysis.diagnostics.push(
                Diagnostic::error(
                    "needs-full-refresh",
                    dataset.definition.name.span,
                    format!("`{label}` is partitioned by {was} on disk and by {now} in its definition"),
                )
                .reason("rows that are stored can't be laid out anew in place")
                .help(&refresh),
            );
        }
        for column in declared.iter().flat_map(|declared| &declared.fields) {
            let Some(stored) = position(&fields, &column.name).map(|at| &fields[at]) else { continue };
            if stored.data_type != column.data_type {
                self.analysis.diagnostics.push(
                    Diagnostic::error(
                        "needs-full-refresh",
                        dataset.definition.name.span,
                        format!(
                            "column `{}` of `{label}` is {} on disk and {} in its definition",
                            column.name, stored.data_type, column.data_type
                        ),
                    )
                    .condition("USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE")
                    .help(&refresh),
                );
            }
        }
        Ok(Some(Columns::grown(fields)))
    }

    /// PARTITIONED BY and CLUSTER BY name columns that there are.
    pub(super) fn check_layout(&mut self, dataset: &Dataset, columns: &Columns) {
        let definition = &dataset.definition;
        let clauses = [
            (&definition.partition_by, "partition-type", "PARTITIONED BY", "a folder's name can't hold such a value"),
            (&definition.cluster_by, "cluster-type", "CLUSTER BY", "files keep no least and greatest value of it"),
        ];
        for (used, code, clause, reason) in clauses {
            for used in used {
                let Some(at) = position(&columns.fields, &used.value) else { continue };
                let data_type = &columns.fields[at].data_type;
                let is_plain = !matches!(
                    data_type,
                    DataType::Array(_) | DataType::Map(..) | DataType::Struct(_) | DataType::Binary
                );
                if is_plain && (code == "partition-type" || *data_type != DataType::Boolean) {
                    continue;
                }
                self.analysis.diagnostics.push(
                    Diagnostic::error(
                        code,
                        used.span,
                        format!("{clause} can't take `{}`, which is {data_type}", used.value),
                    )
                    .reason(reason)
                    .help("take a column of numbers, dates, timestamps or text"),
                );
            }
        }
        for used in definition.partition_by.iter().chain(&definition.cluster_by) {
            if position(&columns.fields, &used.value).is_some() || !definition.columns.is_empty() {
                continue;
            }
            let names = columns.fields.iter().map(|field| field.name.as_str());
            let mut problem = Diagnostic::error(
                "unknown-column",
                used.span,
                format!("`{}` has no column `{}`", dataset.label, used.value),
            );
            problem = match nearest(&used.value, names.clone()) {
                Some(near) => problem.help(format!("did you mean `{near}`?")).edit(used.span, near.to_string()),
                None => problem.help(format!("its columns are: {}", names.collect::<Vec<_>>().join(", "))),
            };
            self.analysis.diagnostics.push(problem);
        }
    }
}

/// True for the columns that SCD type 2 adds.
fn is_bound(column: &str) -> bool {
    [START_AT, END_AT].iter().any(|bound| bound.eq_ignore_ascii_case(column))
}

/// Bounds are compared with sequences as they are, so a wider type doesn't do.
fn exact_bounds(declared: &Columns, given: &[Field]) -> Result<(), Vec<Misfit>> {
    let mut misfits = Vec::new();
    for field in given.iter().filter(|field| is_bound(&field.name)) {
        let column = position(&declared.fields, &field.name).map(|at| &declared.fields[at]);
        if let Some(column) = column.filter(|column| to_arrow(&column.data_type) != to_arrow(&field.data_type)) {
            misfits.push(Misfit::Type {
                column: column.name.clone(),
                from: field.data_type.to_string(),
                to: column.data_type.to_string(),
            });
        }
    }
    match misfits.is_empty() {
        true => Ok(()),
        false => Err(misfits),
    }
}

/// Columns of flows among themselves, before anything is stored: the wider type wins, whichever comes first.
fn merge(target: &Columns, given: &[Field]) -> Result<Columns, Vec<Misfit>> {
    let mut merged = target.clone();
    let mut misfits = Vec::new();
    for field in given {
        match position(&merged.fields, &field.name) {
            Some(at) => match crate::data_type::merge_types(&merged.fields[at].data_type, &field.data_type) {
                Some(wider) => merged.fields[at].data_type = wider,
                None => misfits.push(Misfit::Type {
                    column: merged.fields[at].name.clone(),
                    from: field.data_type.to_string(),
                    to: merged.fields[at].data_type.to_string(),
                }),
            },
            None => {
                merged.fields.push(field.clone());
                merged.defaults.push(None);
            }
        }
    }
    match misfits.is_empty() {
        true => Ok(merged),
        false => Err(misfits),
    }
}

/// A dataset's definition with these columns, as state.db remembers what was applied.
pub(crate) fn applied(dataset: &Dataset, columns: &Columns) -> AppliedDataset {
    let names =
        |columns: &[pipeline::text::Spanned<String>]| columns.iter().map(|column| column.value.clone()).collect();
    AppliedDataset {
        kind: dataset.kind(),
        columns: columns.fields.iter().map(|field| (field.name.clone(), field.data_type.to_string())).collect(),
        partition_by: names(&dataset.definition.partition_by),
        cluster_by: names(&dataset.definition.cluster_by),
        comment: dataset.definition.comment.clone(),
        properties: dataset.definition.properties.clone(),
    }
}
