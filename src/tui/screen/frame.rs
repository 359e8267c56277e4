//! What every screen has: the first line says where one is and how it stands, the last two which keys matter now
//! and what just happened.

use pipeline::auto_cdc::{ColumnSelection, ScdType};
use pipeline::event::State;
use pipeline::number::{bytes, counted};
use pipeline::text::Spanned;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::words::{clock, per_second};
use crate::action::{Action, Screen, continuations, row_of};
use crate::app::known::change_of;
use crate::app::{App, Target};
use crate::popup::help::keys;
use crate::theme::{Role, Theme};
use crate::widget::text::{fit, width};

/// From this width on every screen's name fits into the first line.
const NAMES_FROM: u16 = 100;

/// Draws the frame; returns what is left for the screen.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) -> Rect {
    context(app, Rect { height: 1, ..area }, buffer);
    hints(app, Rect { y: area.bottom() - 2, height: 1, ..area }, buffer);
    message(app, Rect { y: area.bottom() - 1, height: 1, ..area }, buffer);
    Rect { y: area.y + 1, height: area.height - 3, ..area }
}

fn context(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let name = match (&app.known.status, &app.known.verdict) {
        (Some(status), _) => status.name.clone(),
        (None, Some(verdict)) => verdict.pipeline.settings.name.clone(),
        (None, None) => "flowbench".to_string(),
    };
    let mut right: Vec<Span> = Vec::new();
    let (errors, warnings) = app.known.counts();
    match () {
        () if app.known.unreadable.is_some() => right.push(Span::styled("unreadable ", theme.style(Role::Error))),
        () if app.known.verdict.is_none() => right.push(Span::styled("reading… ", theme.style(Role::Muted))),
        () => {
            if errors > 0 {
                let glyph = theme.pick("✖", "X");
                right.push(Span::styled(format!("{glyph}{errors} "), theme.style(Role::Error)));
            }
            if warnings > 0 {
                let glyph = theme.pick("⚠", "!");
                right.push(Span::styled(format!("{glyph}{warnings} "), theme.style(Role::Warning)));
            }
            if errors + warnings == 0 {
                right.push(Span::styled("valid ", theme.style(Role::Good)));
            }
            if app.known.is_checking() {
                right.push(Span::styled("checking… ", theme.style(Role::Muted)));
            }
        }
    }
    let has_keys = !app.known.change_targets().is_empty();
    let screens = Screen::ALL.into_iter().filter(|screen| has_keys || !matches!(screen, Screen::Scd | Screen::Cutover));
    // All names don't fit into a narrow terminal.
    let is_narrow = has_keys && area.width < NAMES_FROM;
    let screens: Vec<(Screen, String)> = screens
        .map(|screen| match is_narrow && app.screen != screen {
            true => (screen, format!(" {}", screen.key())),
            false => (screen, format!(" {} {}", screen.key(), screen.title())),
        })
        .collect();
    for (screen, words) in &screens {
        let style = theme.style(if app.screen == *screen { Role::Focus } else { Role::Muted });
        right.push(Span::styled(words.clone(), style));
    }
    let right_width: usize = right.iter().map(|span| width(&span.content)).sum();
    let room = usize::from(area.width);
    let left_room = room.saturating_sub(right_width + 1);
    let mut left = vec![Span::styled(format!(" {}", fit(&name, 24)), theme.style(Role::Title))];
    left.extend(update_spans(app));
    let mut taken = 0;
    let mut x = area.x;
    for span in left {
        let cells = width(&span.content);
        if taken + cells > left_room {
            break;
        }
        buffer.set_string(x, area.y, &span.content, span.style);
        taken += cells;
        x += cells as u16;
    }
    let table = match app.screen {
        Screen::Scd => app.scd.table.as_deref(),
        Screen::Cutover => app.cutover.table.as_deref(),
        Screen::Graph | Screen::Runs | Screen::Data | Screen::Log => None,
    };
    if let Some(about) = table.and_then(|table| about_table(app, table)) {
        let about = format!("{}{about}", theme.pick(" ▏", " | "));
        let about = fit(&about, left_room.saturating_sub(taken + 1)).into_owned();
        buffer.set_string(x, area.y, about, theme.style(Role::Title));
    }
    let start = area.right().saturating_sub(right_width.min(room) as u16 + 1);
    let mut x = start;
    for span in right {
        let cells = width(&span.content) as u16;
        if let Some((screen, _)) = screens.iter().find(|(_, words)| span.content == *words) {
            app.targets.push((Rect { x, width: cells, ..area }, Target::Screen(*screen)));
        }
        if x < area.right() {
            buffer.set_stringn(x, area.y, &span.content, usize::from(area.right() - x), span.style);
        }
        x += cells;
    }
}

/// What the files say of an AUTO CDC table: `SCD2 customers  KEYS (id)  SEQUENCE BY updated_at`.
fn about_table(app: &App, label: &str) -> Option<String> {
    let (graph, id) = app.known.graph().zip(app.known.find_dataset(label))?;
    let change = change_of(graph, id)?;
    let list = |names: &[Spanned<String>]| names.iter().map(|name| name.value.as_str()).collect::<Vec<_>>().join(", ");
    let scd = if change.scd_type() == ScdType::Two { "SCD2" } else { "SCD1" };
    let mut about = format!("{scd} {label}  KEYS ({})", list(&change.keys));
    if let Some(feed) = change.feed().filter(|feed| !feed.sequence_words.is_empty()) {
        about.push_str(&format!("  SEQUENCE BY {}", feed.sequence_words.join(", ")));
    }
    match change.track_history.as_ref().map(|selection| &selection.value) {
        Some(ColumnSelection::On(names)) => about.push_str(&format!("  TRACK {}", list(names))),
        Some(ColumnSelection::Except(names)) => about.push_str(&format!("  TRACK * EXCEPT ({})", list(names))),
        None => {}
    }
    Some(about)
}

/// The update in a few words, the most important first.
fn update_spans(app: &App) -> Vec<Span<'static>> {
    let theme = app.options.theme;
    let bar = theme.pick(" ▏", " | ");
    let Some(update) = &app.known.update else {
        return vec![Span::styled(format!("{bar}never run"), theme.style(Role::Muted))];
    };
    let number = update.number.map_or_else(|| "…".to_string(), |number| format!("#{number}"));
    let mut spans = vec![Span::styled(bar.to_string(), theme.style(Role::Muted))];
    let word = match update.is_stopping && !update.state.is_final() {
        true => "stopping…".to_string(),
        false => update.state.word().to_string(),
    };
    spans.push(Span::styled(format!("update {number} {word}"), theme.style(Theme::state_role(update.state))));
    spans.push(Span::raw(format!(" {}", clock(update.duration_ms(app.now_us)))));
    if !update.is_ours && !update.state.is_final() {
        spans.push(Span::styled(" elsewhere", theme.style(Role::Muted)));
    }
    for (place, (state, n)) in update.counts().into_iter().enumerate() {
        let before = if place == 0 { bar } else { "" };
        spans.push(Span::styled(
            format!("{before}{n}{} ", theme.state_glyph(state)),
            theme.style(Theme::state_role(state)),
        ));
    }
    let totals = update.totals();
    if update.state == State::Running {
        let rate: f64 = update
            .flows
            .values()
            .filter(|flow| flow.state == State::Running)
            .filter_map(|flow| flow.rows_per_second(app.now_us))
            .sum();
        spans.push(Span::raw(format!("{bar}{} rows/s", per_second(rate).trim_end_matches("/s"))));
        if totals.backlog > 0 {
            spans.push(Span::raw(format!(
                "{bar}backlog {}, {}",
                counted(totals.backlog, "file", "files"),
                bytes(totals.backlog_bytes)
            )));
        }
    }
    spans
}

fn hints(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    if let Some(first) = app.before {
        let mut spans = vec![Span::styled(format!(" {first}… "), theme.style(Role::Key))];
        for (key, row) in continuations(first, app.screen) {
            spans.push(Span::styled(format!(" {key} "), theme.style(Role::Key)));
            spans.push(Span::raw(row.hint));
        }
        buffer.set_line(area.x, area.y, &Line::from(spans), area.width);
        return;
    }
    let actions: &[Action] = match app.screen {
        Screen::Graph => &[
            Action::RunMenu,
            Action::ResetMenu,
            Action::Validate,
            Action::Edit,
            Action::Enter,
            Action::NextPane,
            Action::NextTab,
            Action::Find,
            Action::NextIssue,
            Action::Focus,
            Action::ListOrBoxes,
        ],
        Screen::Runs => &[Action::RunMenu, Action::Cancel, Action::Enter, Action::NextPane, Action::NextFailed],
        Screen::Data => &[Action::Enter, Action::NextPane, Action::Left, Action::Right, Action::Find],
        Screen::Log => &[Action::Filter, Action::Follow, Action::Enter, Action::Find],
        Screen::Scd => &[
            Action::Find,
            Action::KeyFilter,
            Action::LaterStop,
            Action::TypeTime,
            Action::Diff,
            Action::PickVersion,
            Action::CompareTimes,
            Action::Check,
            Action::KeyEvents,
            Action::OpenSource,
            Action::NextPane,
        ],
        Screen::Cutover => &[Action::Enter, Action::NextPane, Action::Find, Action::Inspect, Action::RunMenu],
    };
    let mut x = area.x + 1;
    let tail = [Action::Help, Action::Palette, Action::Quit];
    let tail_width: u16 = tail.iter().map(|action| hint_width(*action)).sum();
    let limit = area.right().saturating_sub(tail_width + 1);
    let draw_hint = |app: &mut App, action: Action, x: u16, buffer: &mut Buffer| {
        let row = row_of(action);
        let key = keys(row).split(' ').next().unwrap_or_default().to_string();
        let cells = hint_width(action);
        buffer.set_string(x, area.y, &key, theme.style(Role::Key));
        buffer.set_string(x + width(&key) as u16 + 1, area.y, row.hint, theme.style(Role::Text));
        app.targets.push((Rect { x, width: cells.saturating_sub(2), ..area }, Target::Action(action)));
        x + cells
    };
    for action in actions {
        // What can't be done now is not offered.
        if *action == Action::Cancel && !app.known.is_running() {
            continue;
        }
        if x + hint_width(*action) > limit {
            break;
        }
        x = draw_hint(app, *action, x, buffer);
    }
    let mut x = limit.max(area.x);
    for action in tail {
        if x + hint_width(action) <= area.right() + 2 {
            x = draw_hint(app, action, x, buffer);
        }
    }
}

fn hint_width(action: Action) -> u16 {
    let row = row_of(action);
    let key = keys(row);
    let key = key.split(' ').next().unwrap_or_default();
    (width(key) + 1 + width(row.hint) + 2) as u16
}

fn message(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    if app.search.is_typing {
        let (before, after) = app.search.field.around_cursor();
        let found = match app.screen {
            Screen::Graph | Screen::Data if !app.search.field.text().is_empty() => {
                format!("   {}", counted(app.found().len() as u64, "match", "matches"))
            }
            _ => String::new(),
        };
        let line = Line::from(vec![
            Span::styled(" /", theme.style(Role::Key)),
            Span::raw(before.to_string()),
            Span::styled("▏", theme.style(Role::Key)),
            Span::raw(after.to_string()),
            Span::styled(found, theme.style(Role::Muted)),
        ]);
        buffer.set_line(area.x, area.y, &line, area.width);
        return;
    }
    let Some(message) = &app.message else {
        let tip = " r runs an update, x resets, ]d goes to a finding, ? lists the keys. Opening runs nothing.";
        buffer.set_string(area.x, area.y, fit(tip, usize::from(area.width)), theme.style(Role::Muted));
        return;
    };
    let room = usize::from(area.width).saturating_sub(1);
    let twin = message.twin.as_ref().map(|twin| format!("  = {twin}")).unwrap_or_default();
    let text_room = match width(&message.text) + width(&twin) <= room {
        true => room - width(&twin),
        // The twin is a help, what happened is the news.
        false => room,
    };
    let text = fit(&message.text, text_room).into_owned();
    buffer.set_string(area.x + 1, area.y, &text, theme.style(message.role));
    if width(&text) + width(&twin) <= room {
        buffer.set_string(area.x + 1 + width(&text) as u16, area.y, twin, theme.style(Role::Muted));
    }
}
