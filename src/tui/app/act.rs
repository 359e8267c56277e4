//! What each action does.

use pipeline::answer::Problem;
use pipeline::command::Command;
use pipeline::event::{Level, State};
use pipeline::plan::UpdateRequest;
use pipeline::report::UpdateReport;
use pipeline::text::{Span, line_column};

use super::list::Move;
use super::rows::RowKind;
use super::scd::Detail;
use super::{App, Effect, Node, Pane, Tab};
use crate::action::{Action, Screen};
use crate::popup::Popup;
use crate::theme::Role;

impl App {
    /// Does what a key, a click or the palette asks for.
    pub fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::ShowGraph => self.show(Screen::Graph),
            Action::ShowRuns => self.show(Screen::Runs),
            Action::ShowData => self.show(Screen::Data),
            Action::ShowLog => self.show(Screen::Log),
            Action::ShowCutover => self.open_cutover(),
            Action::Inspect => self.inspect(),
            Action::KeyFilter => self.next_filter(),
            Action::EarlierStop => self.step_time(false),
            Action::LaterStop => self.step_time(true),
            Action::FirstStop => self.jump_time(false),
            Action::LastStop => self.jump_time(true),
            Action::TypeTime => self.ask_for_time(),
            Action::Diff => self.show_detail(Detail::Diff),
            Action::PickVersion => self.pick_version(),
            Action::CompareTimes => self.compare_times(),
            Action::Check => self.show_detail(Detail::Check),
            Action::KeyEvents => self.show_detail(Detail::Events),
            Action::OpenSource => return self.open_source(),
            Action::Up => self.go(Move::Up),
            Action::Down => self.go(Move::Down),
            Action::PageUp => self.go(Move::PageUp),
            Action::PageDown => self.go(Move::PageDown),
            Action::Top => self.go(Move::Top),
            Action::Bottom => self.go(Move::Bottom),
            Action::Left => self.go_sideways(false),
            Action::Right => self.go_sideways(true),
            Action::Enter => return self.enter(),
            Action::Back => self.back(),
            Action::NextPane => self.turn_pane(true),
            Action::PreviousPane => self.turn_pane(false),
            Action::NextTab => self.turn_tab(true),
            Action::PreviousTab => self.turn_tab(false),
            Action::Fold => self.fold_chosen(),
            Action::Focus => self.toggle_focus(),
            Action::WidenFocus => self.change_focus(1),
            Action::NarrowFocus => self.change_focus(-1),
            Action::ListOrBoxes => {
                let is_list = self.draws_list();
                self.picture.is_list = Some(!is_list);
                self.redraw_picture();
            }
            Action::Relayout => self.relayout(),
            Action::NextIssue => self.go_to_issue(true),
            Action::PreviousIssue => self.go_to_issue(false),
            Action::NextFailed => self.go_to_failed(),
            Action::Find => self.begin_search(),
            Action::NextFound => self.next_found(true),
            Action::PreviousFound => self.next_found(false),
            Action::Filter => {
                self.level = match self.level {
                    Level::Metrics | Level::Info => Level::Warn,
                    Level::Warn => Level::Error,
                    Level::Error => Level::Info,
                };
            }
            Action::Follow => self.is_following = !self.is_following,
            Action::RunMenu => return self.open_run_menu(),
            Action::ResetMenu => return self.open_reset_menu(),
            Action::Validate => {
                self.say(Role::Muted, "reading the files and their sources again…");
                return vec![self.ask(Command::Validate)];
            }
            Action::Cancel => return self.cancel(),
            Action::Edit => return self.edit(),
            Action::Fix => return self.offer_fix(),
            Action::Maximise => self.is_maximised = !self.is_maximised,
            Action::Help => self.popups.push(Popup::help()),
            Action::Palette => self.popups.push(Popup::palette()),
            Action::Repaint => return vec![Effect::Repaint],
            Action::Quit => match self.known.update.as_ref().is_some_and(|u| u.is_ours && !u.state.is_final()) {
                true => self.popups.push(Popup::Quit),
                false => return vec![Effect::Quit],
            },
        }
        Vec::new()
    }

    /// Shows a screen; what is chosen stays chosen.
    pub(super) fn show(&mut self, screen: Screen) {
        if self.screen == screen {
            return;
        }
        // A search of keys is no search of names.
        if [self.screen, screen].iter().any(|screen| matches!(screen, Screen::Scd | Screen::Cutover)) {
            self.search = super::find::Search::default();
        }
        self.screen = screen;
        self.is_maximised = false;
        self.pane = match screen {
            Screen::Graph => Pane::Graph,
            Screen::Runs => Pane::Flows,
            Screen::Data => Pane::Rows,
            Screen::Log => Pane::Events,
            Screen::Scd => Pane::Keys,
            Screen::Cutover => Pane::Verdicts,
        };
        if screen == Screen::Runs {
            let flow = self
                .chosen_flows()
                .first()
                .and_then(|flow| self.known.graph().map(|graph| graph.flow(*flow).name.clone()));
            if let Some(at) = flow.and_then(|name| self.flow_names().iter().position(|known| *known == name)) {
                self.flows.cursor = at;
            }
        }
    }

    fn enter(&mut self) -> Vec<Effect> {
        match self.pane {
            Pane::Explorer | Pane::Graph => match self.chosen.clone() {
                Some(Node::Schema(name)) => {
                    let is_folded = self.folded.as_ref().is_some_and(|folded| folded.contains(&name));
                    self.fold(&name, !is_folded);
                }
                Some(Node::File(path)) => return vec![Effect::Edit { path, line: 1, column: 1 }],
                Some(Node::Flow(name)) => {
                    self.show(Screen::Runs);
                    if let Some(at) = self.flow_names().iter().position(|known| *known == name) {
                        self.flows.cursor = at;
                    }
                }
                Some(Node::Dataset(_)) if self.screen == Screen::Graph => {
                    self.tab = Tab::Preview;
                    self.pane = Pane::Tabs;
                }
                Some(Node::Dataset(_)) => self.pane = Pane::Rows,
                Some(Node::Source(_)) => return self.edit(),
                None => {}
            },
            Pane::Tabs => match self.tab {
                Tab::Issues => return self.edit(),
                Tab::Preview => self.open_record(),
                Tab::Schema => {}
                Tab::Flows => {
                    if let Some(name) = self.flow_names().get(self.flows.cursor).cloned() {
                        self.show(Screen::Runs);
                        self.choose_flow(&name);
                    }
                }
            },
            Pane::Flows => {
                if let Some(name) = self.flow_names().get(self.flows.cursor).cloned() {
                    self.choose_flow(&name);
                    self.show(Screen::Graph);
                }
            }
            Pane::Events => self.popups.push(Popup::event()),
            Pane::Rows => self.open_record(),
            Pane::Keys | Pane::Versions | Pane::Detail | Pane::AsOf => self.enter_scd(),
            Pane::Verdicts | Pane::VerdictKeys | Pane::KeyEvents => self.enter_cutover(),
        }
        Vec::new()
    }

    fn open_record(&mut self) {
        if !self.preview.rows.is_empty() {
            self.popups.push(Popup::record());
        }
    }

    /// Chooses a flow, or its table if it is that table's default flow.
    fn choose_flow(&mut self, name: &str) {
        let Some(graph) = self.known.graph() else { return };
        let Some(flow) = self.known.find_flow(name).map(|id| graph.flow(id)) else { return };
        let node = match flow.is_default {
            true => Node::Dataset(graph.dataset(flow.target).label.clone()),
            false => Node::Flow(flow.name.clone()),
        };
        self.choose(node);
    }

    fn back(&mut self) {
        if !self.search.field.text().is_empty() {
            self.search = super::find::Search::default();
        } else if self.is_maximised {
            self.is_maximised = false;
        } else if self.screen == Screen::Scd {
            self.back_scd();
        } else if self.screen == Screen::Cutover {
            self.back_cutover();
        } else if self.picture.focus.is_some() {
            self.toggle_focus();
        } else if self.screen != Screen::Graph {
            self.show(Screen::Graph);
        } else if self.pane == Pane::Tabs {
            self.pane = Pane::Graph;
        }
    }

    fn turn_pane(&mut self, is_forward: bool) {
        let panes = self.panes();
        let at = panes.iter().position(|pane| *pane == self.pane).unwrap_or(0);
        let step = if is_forward { 1 } else { panes.len() - 1 };
        self.pane = panes[(at + step) % panes.len()];
    }

    fn turn_tab(&mut self, is_forward: bool) {
        let at = Tab::ALL.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        let step = if is_forward { 1 } else { Tab::ALL.len() - 1 };
        self.tab = Tab::ALL[(at + step) % Tab::ALL.len()];
    }

    fn fold_chosen(&mut self) {
        let name = match &self.chosen {
            Some(Node::Schema(name)) => Some(name.clone()),
            Some(_) => {
                let rows = self.explorer_rows();
                let id = self.chosen_dataset();
                rows.iter().find_map(|row| match &row.kind {
                    RowKind::Schema { name, datasets, .. } => {
                        id.filter(|id| datasets.contains(id)).map(|_| name.clone())
                    }
                    _ => None,
                })
            }
            None => None,
        };
        if let Some(name) = name {
            let is_folded = self.folded.as_ref().is_some_and(|folded| folded.contains(&name));
            self.fold(&name, !is_folded);
            // The row of what was chosen is gone with the fold.
            self.chosen = Some(Node::Schema(name));
            self.picture.show(self.chosen.as_ref());
        }
    }

    fn cancel(&mut self) -> Vec<Effect> {
        let now = self.now_us;
        match &mut self.known.update {
            Some(update) if update.is_ours && !update.state.is_final() => {
                let is_again = std::mem::replace(&mut update.is_stopping, true);
                update.last_us = update.last_us.max(now);
                self.say(
                    Role::Warning,
                    match is_again {
                        true => "still stopping: the running batches come to their end first; q, then Ctrl-C, leaves at once",
                        false => "stopping at the batch boundary…",
                    },
                );
                vec![Effect::Ask(Command::CancelUpdate)]
            }
            Some(update) if !update.state.is_final() => {
                let pid = self.known.status.as_ref().and_then(|status| status.running_pid);
                let pid = pid.map_or_else(|| "another process".to_string(), |pid| format!("process {pid}"));
                self.say(Role::Warning, format!("the update runs in {pid}: stop it there with Ctrl-C"));
                Vec::new()
            }
            _ if self.is_about_to_quit => vec![Effect::Quit],
            _ => {
                self.is_about_to_quit = true;
                self.say(Role::Muted, "nothing runs that could be stopped; Ctrl-C again quits");
                Vec::new()
            }
        }
    }

    /// Opens the editor at the finding under the cursor, else where the chosen thing is defined.
    fn edit(&mut self) -> Vec<Effect> {
        let is_issue = self.screen == Screen::Graph && self.pane == Pane::Tabs && self.tab == Tab::Issues;
        let place = match is_issue {
            true => {
                let span = self.issue_list().get(self.issues.cursor).and_then(|found| found.span);
                let verdict = self.known.verdict.as_ref();
                span.zip(verdict).and_then(|(span, verdict)| place(&verdict.pipeline.workspace.files, span))
            }
            false => match &self.chosen {
                Some(Node::File(path)) => Some((path.clone(), 1, 1)),
                _ => {
                    let files = self.known.shown().map(|(pipeline, _)| &pipeline.workspace.files);
                    self.chosen_span().zip(files).and_then(|(span, files)| place(files, span))
                }
            },
        };
        match place {
            Some((path, line, column)) => vec![Effect::Edit { path, line, column }],
            None => {
                self.say(Role::Muted, "nothing is chosen that stands in a file");
                Vec::new()
            }
        }
    }

    /// Shows the edit of the finding under the cursor, to be applied with a yes.
    fn offer_fix(&mut self) -> Vec<Effect> {
        let Some(verdict) = &self.known.verdict else { return Vec::new() };
        let issues = self.issue_list();
        let edit = issues.get(self.issues.cursor).and_then(|found| found.edit.as_ref());
        let file = edit.and_then(|edit| verdict.pipeline.workspace.files.get(edit.span.file.0));
        let (Some(edit), Some(file)) = (edit, file) else {
            let text = match issues.is_empty() {
                true => "nothing is wrong with the files",
                false => "this finding offers no edit; e opens the file at its place",
            };
            self.say(Role::Muted, text);
            return Vec::new();
        };
        let mut after = file.text.clone();
        if !after.is_char_boundary(edit.span.start) || !after.is_char_boundary(edit.span.end) {
            return Vec::new();
        }
        after.replace_range(edit.span.start..edit.span.end, &edit.replacement);
        let confirm = crate::popup::confirm::Confirm::fix(&file.path, &file.text, after, edit.span.start);
        self.open_confirm(confirm)
    }

    /// Starts an update.
    pub(crate) fn start(&mut self, request: UpdateRequest) -> Vec<Effect> {
        if self.known.is_running() {
            self.say(Role::Warning, "an update is running already; Ctrl-C stops it");
            return Vec::new();
        }
        self.say(Role::Running, format!("update: {}", request.words()));
        vec![self.ask(Command::StartUpdate { request })]
    }

    pub(super) fn say_end(&mut self, request: &UpdateRequest, outcome: &Result<UpdateReport, Problem>) {
        match outcome {
            Ok(report) => {
                let rows: u64 = report.flows.iter().map(|flow| flow.metrics.rows_out).sum();
                let failed: Vec<&str> = report
                    .flows
                    .iter()
                    .filter(|flow| flow.state == State::Failed)
                    .map(|flow| flow.flow.as_str())
                    .collect();
                let text = format!(
                    "update {} {}: {} in {}",
                    report.number,
                    report.state,
                    pipeline::number::counted(rows, "row", "rows"),
                    pipeline::number::duration(report.duration_ms)
                );
                match report.state {
                    State::Completed => self.say(Role::Good, text),
                    _ if !failed.is_empty() => {
                        self.say(Role::Error, format!("{text}; failed: {} (]e goes there)", failed.join(", ")));
                    }
                    _ => self.say(Role::Warning, text),
                }
                self.twin(super::twin::update(request));
            }
            Err(problem) if !problem.unconfirmed.is_empty() => {
                let mut request = request.clone();
                request.is_confirmed = true;
                self.popups.push(Popup::unconfirmed(request, problem));
            }
            Err(problem) => self.say_problem(problem),
        }
    }

    pub(crate) fn say_problem(&mut self, problem: &Problem) {
        let help = problem.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default();
        self.say(Role::Error, format!("{}{help}", problem.message));
    }
}

/// Path, line and column of a place.
fn place(files: &[pipeline::text::SourceFile], span: Span) -> Option<(String, usize, usize)> {
    let file = files.get(span.file.0)?;
    let at = line_column(&file.text, span.start);
    Some((file.path.clone(), at.line, at.column))
}
