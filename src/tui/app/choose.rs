//! What is chosen, and how it follows the cursors of lists and graph.

use std::collections::BTreeSet;

use pipeline::diagnostic::{Diagnostic, Severity};
use pipeline::event::{Event, Level, State};
use pipeline::graph::{DatasetId, FlowId};
use pipeline::number::counted;
use pipeline::text::Span;

use super::list::Move;
use super::rows::{RowKind, schema_of};
use super::{App, Node, Pane, Tab};
use crate::action::Screen;
use crate::theme::Role;

impl App {
    /// Chooses something: every pane shows it.
    pub fn choose(&mut self, node: Node) {
        if let (Node::Dataset(label), Some(folded)) = (&node, &mut self.folded)
            && let Some(graph) = self.known.graph()
            && let Some(id) = self.known.find_dataset(label)
            && folded.remove(&schema_of(graph, id))
        {
            self.redraw_picture();
        }
        self.schema.cursor = 0;
        self.chosen = Some(node);
        self.picture.show(self.chosen.as_ref());
    }

    pub(super) fn choose_first(&mut self) {
        let first = self.explorer_rows().into_iter().find_map(|row| match row.kind {
            RowKind::Dataset(_) => row.node,
            _ => None,
        });
        let first = first.or_else(|| self.explorer_rows().into_iter().find_map(|row| row.node));
        if let Some(first) = first {
            self.choose(first);
        }
    }

    /// The dataset that is chosen: itself, or the one that the chosen flow writes.
    pub fn chosen_dataset(&self) -> Option<DatasetId> {
        let graph = self.known.graph()?;
        match self.chosen.as_ref()? {
            Node::Dataset(label) => self.known.find_dataset(label),
            Node::Flow(name) => self.known.find_flow(name).map(|flow| graph.flow(flow).target),
            Node::Source(_) | Node::Schema(_) | Node::File(_) => None,
        }
    }

    /// The flows that are chosen: itself, or those into the chosen dataset.
    pub fn chosen_flows(&self) -> Vec<FlowId> {
        let Some(graph) = self.known.graph() else { return Vec::new() };
        match &self.chosen {
            Some(Node::Flow(name)) => self.known.find_flow(name).into_iter().collect(),
            Some(Node::Dataset(label)) => {
                self.known.find_dataset(label).map(|id| graph.dataset(id).flows.clone()).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Where the chosen thing is defined.
    pub(super) fn chosen_span(&self) -> Option<Span> {
        let graph = self.known.graph()?;
        match self.chosen.as_ref()? {
            Node::Dataset(label) => self.known.find_dataset(label).map(|id| graph.dataset(id).definition.name.span),
            Node::Flow(name) => self.known.find_flow(name).map(|flow| graph.flow(flow).name_span),
            Node::Source(name) => graph.flows.iter().flat_map(|flow| flow.readings()).find_map(|reading| {
                let inputs = reading.inputs.iter();
                inputs
                    .filter(|input| super::known::source_name(graph, &input.source).as_ref() == Some(name))
                    .map(|input| input.span)
                    .next()
            }),
            Node::Schema(_) | Node::File(_) => None,
        }
    }

    /// Errors and warnings first, in the order of the list.
    pub fn issue_list(&self) -> Vec<&Diagnostic> {
        let mut issues: Vec<&Diagnostic> = self.known.diagnostics().iter().collect();
        issues.sort_by_key(|found| found.severity);
        issues
    }

    /// The flows of the Runs screen, each after those that write what it reads: a row stays where it is while its
    /// state changes.
    pub fn flow_names(&self) -> Vec<String> {
        let Some(graph) = self.known.graph() else { return Vec::new() };
        let order = graph.topological_order();
        let on_cycles = graph.dataset_ids().filter(|_| order.len() < graph.datasets.len());
        let mut seen = BTreeSet::new();
        let ids = order.iter().copied().chain(on_cycles).filter(|id| seen.insert(*id)).collect::<Vec<_>>();
        let flows = ids.into_iter().flat_map(|id| &graph.dataset(id).flows);
        flows.map(|flow| graph.flow(*flow).name.clone()).collect()
    }

    /// The events of the log at its level.
    pub fn log_events(&self) -> impl DoubleEndedIterator<Item = &(i64, Event)> {
        let level = if self.screen == Screen::Log { self.level } else { Level::Info };
        self.known.events.iter().filter(move |(_, event)| event.level >= level)
    }

    /// The row of a pane's cursor.
    pub(super) fn cursor_of(&self, pane: Pane) -> usize {
        match pane {
            Pane::Explorer => self.explorer.cursor,
            Pane::Graph => {
                let rows = self.lineage_rows();
                rows.iter().position(|row| row.node == self.chosen).unwrap_or(0)
            }
            Pane::Tabs => match self.tab {
                Tab::Issues => self.issues.cursor,
                Tab::Preview => self.preview.list.cursor,
                Tab::Schema => self.schema.cursor,
                Tab::Flows => self.flows.cursor,
            },
            Pane::Flows => self.flows.cursor,
            Pane::Events => self.events.cursor,
            Pane::Rows => self.preview.list.cursor,
            Pane::Keys => self.scd.keys.list.cursor,
            Pane::Versions => self.scd.versions.cursor,
            Pane::Detail => self.scd.lines.cursor,
            Pane::AsOf => self.scd.rows.cursor,
            Pane::Verdicts => self.cutover.verdicts.cursor,
            Pane::VerdictKeys => self.cutover.keys.list.cursor,
            Pane::KeyEvents => self.cutover.events.cursor,
        }
    }

    /// Puts a pane's cursor on a row.
    pub(super) fn put_cursor(&mut self, pane: Pane, row: usize) {
        match pane {
            Pane::Explorer => {
                self.explorer.cursor = row;
                if let Some(node) = self.explorer_rows().get(row).and_then(|row| row.node.clone()) {
                    self.choose(node);
                }
            }
            Pane::Graph => {
                if let Some(node) = self.lineage_rows().get(row).and_then(|row| row.node.clone()) {
                    self.choose(node);
                }
            }
            Pane::Tabs => match self.tab {
                Tab::Issues => self.issues.cursor = row,
                Tab::Preview => self.preview.list.cursor = row,
                Tab::Schema => self.schema.cursor = row,
                Tab::Flows => self.flows.cursor = row,
            },
            Pane::Flows => self.flows.cursor = row,
            Pane::Events => {
                self.events.cursor = row;
                self.is_following = false;
            }
            Pane::Rows => self.preview.list.cursor = row,
            Pane::Keys | Pane::Versions | Pane::Detail | Pane::AsOf => self.put_cursor_scd(pane, row),
            Pane::Verdicts | Pane::VerdictKeys | Pane::KeyEvents => self.put_cursor_cutover(pane, row),
        }
    }

    /// Moves in the pane that has the keys.
    pub(super) fn go(&mut self, way: Move) {
        let height = self.height_of(self.pane);
        match self.pane {
            Pane::Explorer => {
                let rows = self.explorer_rows();
                self.explorer.go(way, rows.len(), height);
                // Headings are passed over.
                let is_up = matches!(way, Move::Up | Move::PageUp | Move::Bottom);
                while rows.get(self.explorer.cursor).is_some_and(|row| row.node.is_none()) {
                    let before = self.explorer.cursor;
                    self.explorer.go(if is_up { Move::Up } else { Move::Down }, rows.len(), height);
                    if before == self.explorer.cursor {
                        break;
                    }
                }
                if let Some(node) = rows.get(self.explorer.cursor).and_then(|row| row.node.clone()) {
                    self.choose_lightly(node);
                }
            }
            Pane::Graph if self.draws_list() => {
                let rows = self.lineage_rows();
                let mut list = super::list::List { cursor: self.cursor_of(Pane::Graph), offset: 0 };
                list.go(way, rows.len(), height);
                if let Some(node) = rows.get(list.cursor).and_then(|row| row.node.clone()) {
                    self.choose_lightly(node);
                }
            }
            Pane::Graph => {
                if let Some(node) = self.picture.step(self.chosen.as_ref(), way, height) {
                    self.choose_lightly(node);
                }
            }
            Pane::Tabs => match self.tab {
                Tab::Issues => {
                    let len = self.issue_list().len();
                    self.issues.go(way, len, height);
                }
                Tab::Preview => self.preview.go(way, height),
                Tab::Schema => {
                    let len = self.schema_len();
                    self.schema.go(way, len, height);
                }
                Tab::Flows => {
                    let len = self.flow_names().len();
                    self.flows.go(way, len, height);
                }
            },
            Pane::Flows => {
                let len = self.flow_names().len();
                self.flows.go(way, len, height);
            }
            Pane::Events => {
                let len = self.log_events().count();
                self.is_following = false;
                self.events.go(way, len, height);
                self.is_following = way == Move::Bottom;
            }
            Pane::Rows => self.preview.go(way, height),
            Pane::Keys | Pane::Versions | Pane::Detail | Pane::AsOf => self.go_scd(way),
            Pane::Verdicts | Pane::VerdictKeys | Pane::KeyEvents => self.go_cutover(way),
        }
    }

    /// Chooses without unfolding anything.
    fn choose_lightly(&mut self, node: Node) {
        self.schema.cursor = 0;
        self.chosen = Some(node);
        self.picture.show(self.chosen.as_ref());
    }

    /// Moves sideways in the pane that has the keys.
    pub(super) fn go_sideways(&mut self, is_right: bool) {
        match self.pane {
            Pane::Graph if !self.draws_list() => {
                if let Some(node) = self.picture.along(self.chosen.as_ref(), is_right) {
                    self.choose_lightly(node);
                }
            }
            Pane::Graph | Pane::Explorer => self.along_the_graph(is_right),
            Pane::Tabs if self.tab == Tab::Preview => self.preview.go_column(is_right),
            Pane::Rows => self.preview.go_column(is_right),
            Pane::Keys | Pane::Versions | Pane::Detail | Pane::AsOf => self.go_sideways_scd(is_right),
            Pane::Verdicts | Pane::VerdictKeys | Pane::KeyEvents => self.go_sideways_cutover(is_right),
            Pane::Tabs | Pane::Flows | Pane::Events => {}
        }
    }

    /// Chooses the first dataset that the chosen one feeds, or that it reads.
    fn along_the_graph(&mut self, is_right: bool) {
        let Some(graph) = self.known.graph() else { return };
        if let Some(Node::Schema(name)) = &self.chosen {
            let name = name.clone();
            self.fold(&name, !is_right);
            return;
        }
        let Some(id) = self.chosen_dataset() else { return };
        let next = if is_right { graph.readers(id).first() } else { graph.upstream(id).first() };
        if let Some(next) = next {
            let label = graph.dataset(*next).label.clone();
            self.choose(Node::Dataset(label));
        }
    }

    /// Folds a schema, or unfolds it.
    pub(super) fn fold(&mut self, schema: &str, is_folded: bool) {
        let folded = self.folded.get_or_insert_default();
        match is_folded {
            true => folded.insert(schema.to_string()),
            false => folded.remove(schema),
        };
        self.redraw_picture();
    }

    /// Goes to a finding: the next one, or the one before.
    pub(super) fn go_to_issue(&mut self, is_next: bool) {
        if let Some(problem) = self.known.unreadable.clone() {
            self.say_problem(&problem);
            return;
        }
        let len = self.issue_list().len();
        if len == 0 {
            self.say(Role::Good, "nothing is wrong with the files");
            return;
        }
        let is_there = self.screen == Screen::Graph && self.tab == Tab::Issues && self.pane == Pane::Tabs;
        self.show(Screen::Graph);
        self.tab = Tab::Issues;
        self.pane = Pane::Tabs;
        if is_there {
            self.issues.cursor = match is_next {
                true => (self.issues.cursor + 1) % len,
                false => (self.issues.cursor + len - 1) % len,
            };
        }
        let issues = self.issue_list();
        let Some(found) = issues.get(self.issues.cursor) else { return };
        let place = self.place_of(found);
        let (role, text) = (crate::theme::Theme::severity_role(found.severity), found.message.clone());
        self.say(role, place.map_or(text.clone(), |place| format!("{place}  {text}")));
    }

    /// `path:line:column` of a finding.
    pub fn place_of(&self, found: &Diagnostic) -> Option<String> {
        let verdict = self.known.verdict.as_ref()?;
        found.span.map(|span| pipeline::diagnostic::place(&verdict.pipeline.workspace.files, span))
    }

    /// Goes to the next dataset whose flow failed or whose definition has errors.
    pub(super) fn go_to_failed(&mut self) {
        let Some(graph) = self.known.graph() else { return };
        let rows: Vec<DatasetId> = graph.topological_order();
        let is_bad = |id: &DatasetId| {
            self.known.dataset_state(graph, *id) == State::Failed
                || self.known.findings_of(&graph.dataset(*id).label).0 > 0
        };
        let bad: Vec<String> = rows.iter().filter(|id| is_bad(id)).map(|id| graph.dataset(*id).label.clone()).collect();
        let chosen = self.chosen_dataset().map(|id| graph.dataset(id).label.clone());
        let at = bad.iter().position(|label| Some(label) == chosen.as_ref());
        let next = at.map_or(0, |at| (at + 1) % bad.len());
        match bad.into_iter().nth(next) {
            Some(label) => {
                let flow = self.known.graph().and_then(|graph| {
                    let id = self.known.find_dataset(&label)?;
                    let flows = graph.dataset(id).flows.iter().map(|flow| graph.flow(*flow).name.clone());
                    flows.into_iter().find(|name| self.known.flow_state(name) == State::Failed)
                });
                if let Some(at) = flow.as_ref().and_then(|flow| self.flow_names().iter().position(|name| name == flow))
                {
                    self.flows.cursor = at;
                }
                let error = flow.as_ref().and_then(|name| self.flow_error(name));
                self.choose(Node::Dataset(label.clone()));
                self.say(Role::Error, error.map_or(format!("{label} has errors"), |error| format!("{label}: {error}")));
            }
            None => self.say(Role::Good, "nothing failed"),
        }
    }

    /// Why a flow failed, in the update that runs or in its last one.
    pub fn flow_error(&self, name: &str) -> Option<String> {
        let live = self.known.update.as_ref().and_then(|update| update.flows.get(name));
        match live.and_then(|flow| flow.error.as_ref()) {
            Some(failure) => Some(failure.message.clone()),
            None => self.known.flow_status(name).and_then(|flow| flow.error.clone()),
        }
    }

    /// Columns of the chosen dataset.
    pub(super) fn schema_len(&self) -> usize {
        self.chosen_dataset()
            .and_then(|id| self.known.verdict.as_ref()?.columns.get(id.0)?.as_ref().map(Vec::len))
            .unwrap_or(0)
    }

    /// Says what a save changed.
    pub(super) fn say_verdict(&mut self, before: (usize, usize), took_ms: u64) {
        let (errors, warnings) = self.known.counts();
        let place = self.issue_list().first().filter(|found| found.severity == Severity::Error).map(|found| {
            let place = self.place_of(found).map(|place| format!("{place} ")).unwrap_or_default();
            format!("{place}{}", found.message)
        });
        let warnings = counted(warnings as u64, "warning", "warnings");
        let errors = counted(errors as u64, "error", "errors");
        let (role, text) = match place {
            Some(first) => (Role::Error, format!("{first}  (checked in {took_ms} ms; ]d goes there)")),
            None if before.0 > 0 => (Role::Good, format!("fixed: no errors, {warnings}; checked in {took_ms} ms")),
            None => (Role::Good, format!("checked in {took_ms} ms: {errors}, {warnings}")),
        };
        self.say(role, text);
        self.twin("flowbench validate");
    }
}
