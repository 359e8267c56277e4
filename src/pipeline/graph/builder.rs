//! Definitions joined to a graph: names looked up, default flows made, what doesn't resolve reported and passed over.

use std::collections::HashMap;
use std::sync::Arc;

use crate::auto_cdc::{ChangeFlow, ChangeInput, ChangeOptions};
use crate::definition::{DatasetDefinition, DatasetKind, Definition, FlowDefinition, FlowReference, Scope};
use crate::diagnostic::{Diagnostic, nearest};
use crate::name::{DatasetName, Name};
use crate::query::{Input, InputSource, Query};
use crate::read_files::{ReadMode, TableStream, read_files, table_stream};
use crate::settings::Settings;

use super::{
    Dataset, DatasetId, ExternalId, Flow, FlowId, FlowKind, Graph, InputId, Predecessor, Reading, ResolvedInput, Source,
};

impl Graph {
    /// Joins the definitions. Names that don't resolve give diagnostics and [`Source::Unresolved`]; of two
    /// definitions of one name the first stays.
    pub fn build(definitions: Vec<Definition>, settings: &Settings) -> (Graph, Vec<Diagnostic>) {
        let mut builder = Builder {
            settings,
            graph: Graph { externals: settings.external.clone(), ..Graph::default() },
            by_name: HashMap::new(),
            flow_names: HashMap::new(),
            next_input: 0,
            diagnostics: Vec::new(),
        };
        let mut flows = Vec::new();
        for definition in definitions {
            match definition {
                Definition::Dataset(dataset) => builder.add_dataset(dataset),
                Definition::Flow(flow) => flows.push(flow),
                Definition::BrokenFlow(name) => builder.graph.broken_flows.push(name.value),
            }
        }
        builder.add_default_flows();
        let mut orders = Vec::new();
        for mut flow in flows {
            let (depends_on, scope) = (std::mem::take(&mut flow.depends_on), flow.scope.clone());
            orders.extend(builder.add_flow(flow).map(|id| (id, depends_on, scope)));
        }
        for (id, depends_on, scope) in orders {
            builder.add_order(id, depends_on, &scope);
        }
        builder.add_views();
        builder.graph.connect();
        (builder.graph, builder.diagnostics)
    }

    /// Resolves the inputs of a query that belongs to no flow, as if it stood in a file of the workspace.
    pub fn resolve_query(&self, query: Query, settings: &Settings) -> (Reading, Vec<Diagnostic>) {
        let scope = Scope { catalog: settings.catalog.clone(), schema: settings.schema.clone() };
        let by_name = self.dataset_ids().map(|id| (self.dataset(id).name.key(), id)).collect();
        let inputs = self.dataset_ids().flat_map(|id| self.readings(id)).flat_map(|reading| &reading.inputs);
        let next_input = inputs.map(|input| input.id.0 + 1).max().unwrap_or(0);
        let mut builder = Builder {
            settings,
            graph: self.clone(),
            by_name,
            flow_names: HashMap::new(),
            next_input,
            diagnostics: Vec::new(),
        };
        let reading = builder.resolve(Arc::new(query), &scope);
        (reading, builder.diagnostics)
    }
}

fn flow_kind(change: Option<&ChangeFlow>, is_once: bool) -> FlowKind {
    match (change.map(|change| &change.input), is_once) {
        (None, false) => FlowKind::Append,
        (None, true) => FlowKind::Once,
        (Some(ChangeInput::Feed(_)), false) => FlowKind::Cdc,
        (Some(ChangeInput::Feed(_)), true) => FlowKind::CdcOnce,
        (Some(ChangeInput::Snapshot(_)), false) => FlowKind::Snapshot,
        (Some(ChangeInput::Snapshot(_)), true) => FlowKind::SnapshotOnce,
    }
}

struct Builder<'a> {
    settings: &'a Settings,
    graph: Graph,
    by_name: HashMap<String, DatasetId>,
    flow_names: HashMap<String, FlowId>,
    next_input: usize,
    diagnostics: Vec<Diagnostic>,
}

impl Builder<'_> {
    fn add_dataset(&mut self, definition: DatasetDefinition) {
        let name = self.complete(&definition.name.value, &definition.scope);
        let span = definition.name.span;
        if let Some(first) = self.by_name.get(&name.key()) {
            let first = self.graph.dataset(*first);
            self.diagnostics.push(
                Diagnostic::error(
                    "duplicate-dataset",
                    span,
                    format!(
                        "two datasets are named `{}`: a {} and a {}",
                        first.label,
                        first.kind().words(),
                        definition.kind.words()
                    ),
                )
                .condition("PIPELINE_DUPLICATE_IDENTIFIERS.DATASET")
                .label(first.definition.name.span, "the first")
                .help("rename one of them, or let one table have several flows with CREATE FLOW"),
            );
            return;
        }
        let id = DatasetId(self.graph.datasets.len());
        self.by_name.insert(name.key(), id);
        self.graph.datasets.push(Dataset {
            label: name.short(&self.settings.schema),
            name,
            definition,
            flows: Vec::new(),
            view: None,
        });
    }

    fn add_default_flows(&mut self) {
        for id in self.graph.dataset_ids() {
            let dataset = self.graph.dataset(id);
            let Some(query) = dataset.definition.query.clone().filter(|_| dataset.kind().is_stored()) else {
                continue;
            };
            let definition = &dataset.definition;
            let change = definition.change.clone();
            let kind = match dataset.kind() {
                DatasetKind::MaterializedView => FlowKind::Complete,
                _ => flow_kind(change.as_deref(), definition.is_once),
            };
            let (name, scope) = (dataset.label.clone(), definition.scope.clone());
            let (name_span, span) = (definition.name.span, definition.span);
            let (limits, comment) = (definition.limits.clone(), definition.comment.clone());
            let reading = self.resolve(query, &scope);
            let (change, version) = self.change(change, id, &scope);
            self.push_flow(Flow {
                name,
                target: id,
                kind,
                reading,
                change,
                version,
                depends_on: Vec::new(),
                is_default: true,
                comment,
                limits,
                name_span,
                span,
            });
        }
    }

    /// None: a diagnostic says why.
    fn add_flow(&mut self, definition: FlowDefinition) -> Option<FlowId> {
        let target = self.complete(&definition.target.value, &definition.scope);
        let kind = flow_kind(definition.change.as_deref(), definition.is_once);
        let reading = self.resolve(definition.query, &definition.scope);
        let Some(target) = self.by_name.get(&target.key()).copied() else {
            let written = &definition.target.value;
            let labels: Vec<&str> = self.graph.datasets.iter().map(|dataset| dataset.label.as_str()).collect();
            let mut diagnostic = Diagnostic::error(
                "unknown-target",
                definition.target.span,
                format!("flow `{}` writes to `{written}`, which is not declared", definition.name.value),
            );
            diagnostic = match nearest(&written.to_string(), labels) {
                Some(near) => {
                    diagnostic.help(format!("did you mean `{near}`?")).edit(definition.target.span, near.to_string())
                }
                None => diagnostic.help(format!("declare it: CREATE OR REFRESH STREAMING TABLE {written};")),
            };
            self.diagnostics.push(diagnostic);
            self.graph.broken_flows.push(definition.name.value);
            return None;
        };
        let (change, version) = self.change(definition.change, target, &definition.scope);
        let name = match definition.is_default {
            true => self.graph.dataset(target).label.clone(),
            false => definition.name.value,
        };
        self.push_flow(Flow {
            name,
            target,
            kind,
            reading,
            change,
            version,
            depends_on: Vec::new(),
            is_default: definition.is_default,
            comment: definition.comment,
            limits: definition.limits,
            name_span: definition.name.span,
            span: definition.span,
        })
    }

    /// Completes the options of a flow of AUTO CDC by its target's properties, and resolves its query of versions.
    fn change(
        &mut self,
        change: Option<Arc<ChangeFlow>>,
        target: DatasetId,
        scope: &Scope,
    ) -> (Option<Arc<ChangeFlow>>, Option<Reading>) {
        let Some(mut change) = change else { return (None, None) };
        let properties = ChangeOptions::of_properties(&self.graph.dataset(target).definition.properties);
        let options = change.options.or(properties);
        if options != change.options {
            Arc::make_mut(&mut change).options = options;
        }
        let version = change.version_query().cloned().map(|query| self.resolve(query, scope));
        (Some(change), version)
    }

    /// None: the name is taken; the first flow of it stays.
    fn push_flow(&mut self, flow: Flow) -> Option<FlowId> {
        if let Some(first) = self.flow_names.get(&flow.name.to_lowercase()) {
            let first = self.graph.flow(*first);
            let targets = (&self.graph.dataset(first.target).label, &self.graph.dataset(flow.target).label);
            let diagnostic = match first.is_default {
                true if flow.is_default => Diagnostic::error(
                    "duplicate-flow",
                    flow.name_span,
                    format!("table `{}` has two flows without a name", targets.0),
                )
                .condition("PIPELINE_DUPLICATE_IDENTIFIERS.FLOW")
                .reason("a flow without a name is called like its table; a checkpoint belongs to a flow's name"),
                true => Diagnostic::error(
                    "flow-named-like-table",
                    flow.name_span,
                    format!("flow `{}` has the name of the default flow of table `{}`", flow.name, targets.0),
                )
                .condition("FLOW_NAME_CONFLICTS_WITH_TABLE")
                .reason("a checkpoint belongs to a flow's name, so every flow needs its own"),
                false => Diagnostic::error(
                    "duplicate-flow",
                    flow.name_span,
                    format!("two flows are named `{}`: into `{}` and into `{}`", flow.name, targets.0, targets.1),
                )
                .condition("PIPELINE_DUPLICATE_IDENTIFIERS.FLOW")
                .reason("a checkpoint belongs to a flow's name, so every flow needs its own"),
            };
            let help = match first.is_default && flow.is_default {
                true => "give one of them a name: CREATE FLOW name AS …",
                false => "give one of them another name",
            };
            self.diagnostics.push(diagnostic.label(first.name_span, "the first").help(help));
            return None;
        }
        let id = FlowId(self.graph.flows.len());
        self.flow_names.insert(flow.name.to_lowercase(), id);
        self.graph.datasets[flow.target.0].flows.push(id);
        self.graph.flows.push(flow);
        Some(id)
    }

    /// Looks up the flows that a flow waits for: by their names, a default flow by its table's.
    fn add_order(&mut self, id: FlowId, depends_on: Vec<FlowReference>, scope: &Scope) {
        for reference in depends_on {
            let by_name = self.flow_names.get(&reference.name.parts.join(".").to_lowercase()).copied();
            let flow = by_name.or_else(|| {
                let dataset = self.by_name.get(&self.complete(&reference.name, scope).key())?;
                self.graph.dataset(*dataset).flows.iter().copied().find(|flow| self.graph.flow(*flow).is_default)
            });
            self.graph.flows[id.0].depends_on.push(Predecessor { reference, flow });
        }
    }

    fn add_views(&mut self) {
        for id in self.graph.dataset_ids() {
            let dataset = self.graph.dataset(id);
            if dataset.kind().is_stored() {
                continue;
            }
            let Some(query) = dataset.definition.query.clone() else { continue };
            let scope = dataset.definition.scope.clone();
            let view = self.resolve(query, &scope);
            self.graph.datasets[id.0].view = Some(view);
        }
    }

    fn complete(&self, name: &Name, scope: &Scope) -> DatasetName {
        DatasetName::resolve(name, scope.catalog.as_deref(), &scope.schema)
    }

    /// Looks a name up as SQL does: first the datasets of the pipeline, then the external tables.
    fn resolve(&mut self, query: Arc<Query>, scope: &Scope) -> Reading {
        let mut inputs = Vec::new();
        for input in &query.inputs {
            let source = match &input.source {
                InputSource::Files(call) => {
                    let mode = if input.stream { ReadMode::Stream } else { ReadMode::Batch };
                    let (spec, diagnostics) = read_files(call, mode, self.settings);
                    self.diagnostics.extend(diagnostics);
                    spec.map_or(Source::Unresolved, |spec| Source::Files(Box::new(spec)))
                }
                InputSource::Table(name) => {
                    let (stream, diagnostics) = table_stream(input, self.settings);
                    self.diagnostics.extend(diagnostics);
                    self.resolve_table(name, scope, input, stream.unwrap_or_default())
                }
                // The parser has already said that it isn't built.
                InputSource::Unsupported(_) => Source::Unresolved,
            };
            let id = InputId(self.next_input);
            self.next_input += 1;
            inputs.push(ResolvedInput {
                id,
                name: input.name.clone(),
                source,
                is_stream: input.stream,
                uses_metadata: input.uses_metadata,
                span: input.span,
            });
        }
        Reading { query, inputs }
    }

    fn resolve_table(&mut self, name: &Name, scope: &Scope, input: &Input, stream: TableStream) -> Source {
        let full = self.complete(name, scope);
        if let Some(id) = self.by_name.get(&full.key()) {
            return Source::Dataset { id: *id, stream };
        }
        // A temporary view belongs to the pipeline, not to a schema.
        if let [bare] = name.parts.as_slice() {
            let temporary = self.graph.dataset_ids().find(|id| {
                let dataset = self.graph.dataset(*id);
                dataset.kind() == DatasetKind::TemporaryView && dataset.name.table.eq_ignore_ascii_case(bare)
            });
            if let Some(id) = temporary {
                return Source::Dataset { id, stream };
            }
        }
        let external = self.settings.external.iter().position(|table| {
            table.name.value.to_string().eq_ignore_ascii_case(&name.to_string())
                || self.complete(&table.name.value, scope) == full
        });
        if let Some(index) = external {
            return Source::External { id: ExternalId(index), stream };
        }
        let known: Vec<String> = self
            .graph
            .datasets
            .iter()
            .map(|dataset| dataset.label.clone())
            .chain(self.settings.external.iter().map(|table| table.name.value.to_string()))
            .collect();
        let mut diagnostic = Diagnostic::error(
            "unknown-dataset",
            input.name_span.unwrap_or(input.span),
            format!("no dataset or source is named `{name}`"),
        )
        .condition("TABLE_OR_VIEW_NOT_FOUND");
        diagnostic = match nearest(&name.to_string(), known.iter().map(String::as_str)) {
            Some(near) => {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                match input.name_span {
                    Some(span) => diagnostic.edit(span, near),
                    None => diagnostic,
                }
            }
            None => diagnostic
                .reason("neither the files of this workspace nor [[source]] in flowbench.toml define it")
                .help(format!("define it, or add a [[source]] with name = \"{name}\" to flowbench.toml")),
        };
        self.diagnostics.push(diagnostic);
        Source::Unresolved
    }
}
