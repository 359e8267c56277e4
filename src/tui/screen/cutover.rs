//! The Cutover screen: what the seed and the live feed of a table are, the verdicts over all keys, the keys of one
//! verdict, and what happened to one of them.

use pipeline::number::{count, counted};
use pipeline::scd::{CutoverCheck, CutoverFlow, Evidence, FirstChange, KeyCutover, Verdict, key_words};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::explorer::put;
use super::words::{key_columns, key_values};
use super::{cursor_row, key_events, overflow, pane_frame, versions};
use crate::app::cutover::holds_words;
use crate::app::list::List;
use crate::app::{App, Pane, Target};
use crate::theme::{Role, Theme};
use crate::widget::text::{fit, fit_middle, width};

/// From this width on the keys stand beside what happened to one of them.
const BESIDE_FROM: u16 = 100;
const KEYS_WIDTH: u16 = 46;
/// What the keys leave to the other panes, however long their sequences are.
const BESIDE_KEYS: u16 = 60;

/// Verdicts, the heading, all keys, and the frame.
const VERDICTS_HEIGHT: u16 = Verdict::ALL.len() as u16 + 4;

/// Cells of a verdict's line beside the number of keys, the example and the meaning.
const VERDICT_CELLS: usize = 3 + 10 + 1 + 1 + 7 + 2;

/// Cells of a verdict's example.
const EXAMPLE_MAX: usize = 16;

/// Draws the screen.
pub fn draw(app: &mut App, area: Rect, buffer: &mut Buffer) {
    if app.is_maximised || area.width < BESIDE_FROM {
        return match app.pane {
            Pane::VerdictKeys => keys(app, area, buffer),
            Pane::KeyEvents => key(app, area, buffer),
            _ => {
                let summary = summary_height(app).min(area.height.saturating_sub(VERDICTS_HEIGHT));
                summary_pane(app, Rect { height: summary, ..area }, buffer);
                verdicts(app, Rect { y: area.y + summary, height: area.height - summary, ..area }, buffer);
            }
        };
    }
    let keys_width = app.cutover.keys.rows.iter().map(key_width).max().unwrap_or(0);
    let keys_width = (keys_width.min(usize::from(u16::MAX)) as u16).min(area.width - BESIDE_KEYS).max(KEYS_WIDTH);
    let left = Rect { width: keys_width, ..area };
    let summary = summary_height(app).min(left.height / 2);
    summary_pane(app, Rect { height: summary, ..left }, buffer);
    keys(app, Rect { y: left.y + summary, height: left.height - summary, ..left }, buffer);
    let right = Rect { x: area.x + keys_width, width: area.width - keys_width, ..area };
    let below = VERDICTS_HEIGHT.min(right.height / 2);
    key(app, Rect { height: right.height - below, ..right }, buffer);
    verdicts(app, Rect { y: right.bottom() - below, height: below, ..right }, buffer);
}

/// Lines of the summary: flows by their side, and what their first changes made.
fn summary_lines(app: &App) -> Vec<(Role, String)> {
    let asked = &app.cutover.page;
    let Some(check) = app.cutover.check() else {
        return match asked.problem().filter(|_| !asked.is_waiting()) {
            Some(problem) => {
                let mut lines = vec![(Role::Error, problem.message.clone())];
                lines.extend(problem.help.iter().map(|help| (Role::Muted, help.clone())));
                lines
            }
            None => vec![(Role::Muted, "comparing seed and live feed…".to_string())],
        };
    };
    let mut lines = Vec::new();
    let mut flows = |side: &str, flows: &[CutoverFlow]| {
        if flows.is_empty() {
            lines.push((Role::Muted, format!("{side}  no flow")));
        }
        for flow in flows {
            let (role, evidence) = match flow.evidence {
                Evidence::Applied => (Role::Text, "applied"),
                Evidence::Source => (Role::Muted, "not run yet"),
                Evidence::Nothing => (Role::Muted, "nothing to read"),
            };
            lines.push((role, format!("{side}  {}  {evidence}", flow.name)));
        }
    };
    flows("seed", &check.seed_flows);
    flows("live", &check.live_flows);
    if let Some(changes) = check.first_changes {
        let role = if changes.wrong > 0 { Role::Error } else { Role::Text };
        let words = format!(
            "first live change: {} one version, {} none, {} deleted, {} wrong",
            count(changes.one_version),
            count(changes.repeats),
            count(changes.deletes),
            count(changes.wrong)
        );
        lines.push((role, words));
    }
    let (role, words) = holds_words(check);
    lines.push((role, words));
    lines
}

fn summary_height(app: &App) -> u16 {
    summary_lines(app).len() as u16 + 2
}

fn summary_pane(app: &mut App, area: Rect, buffer: &mut Buffer) {
    if area.height < 3 {
        return;
    }
    let theme = app.options.theme;
    // It never has the keys.
    let block = super::frame_block(app, Role::Border);
    let inner = block.inner(area);
    ratatui::widgets::Widget::render(block, area, buffer);
    let title = format!(" Cutover {} ", app.cutover.table.clone().unwrap_or_default());
    let room = usize::from(area.width.saturating_sub(4));
    buffer.set_string(area.x + 2, area.y, fit_middle(&title, room), theme.style(Role::Title));
    for (n, (role, text)) in summary_lines(app).iter().enumerate().take(usize::from(inner.height)) {
        let text = fit(text, usize::from(inner.width).saturating_sub(2)).into_owned();
        buffer.set_string(inner.x + 1, inner.y + n as u16, text, theme.style(*role));
    }
}

/// The glyph and role of a verdict.
fn verdict_mark(theme: Theme, verdict: Verdict) -> (&'static str, Role) {
    match verdict {
        Verdict::Contiguous => (theme.pick("✔", "+"), Role::Good),
        Verdict::SeedOnly => (theme.pick("◐", "s"), Role::Text),
        Verdict::LiveOnly => (theme.pick("◑", "l"), Role::Text),
        Verdict::Stale => (theme.pick("↺", "!"), Role::Warning),
        Verdict::Tie => ("=", Role::Warning),
    }
}

fn verdicts(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let check = app.cutover.check().cloned();
    let title = match &check {
        Some(check) => format!("Per-key check · {}", counted(check.key_count, "key", "keys")),
        None => "Per-key check".to_string(),
    };
    let title = if app.cutover.page.is_waiting() && check.is_some() { format!("{title} …") } else { title };
    let inner = pane_frame(app, Pane::Verdicts, area, &title, "Enter keys of this row", buffer);
    let Some(check) = check.filter(|_| inner.height > 1) else { return };
    let wide = usize::from(inner.width);
    let examples = check.verdicts.iter().filter_map(|counted| counted.examples.first()).map(|key| key_values(&key.key));
    let examples = examples.map(|words| width(&words)).max().unwrap_or(0).clamp(7, EXAMPLE_MAX);
    let digits = width(&count(check.key_count)).max(4);
    // An example goes before a meaning is cut: Enter lists the keys.
    let meaning = Verdict::ALL.iter().map(|verdict| width(verdict.meaning())).max().unwrap_or(0);
    let has_examples = VERDICT_CELLS + digits + examples + 2 + meaning <= wide;
    let examples = has_examples.then_some(examples);
    let example = examples.map_or(String::new(), |cells| format!("{:<cells$}  ", "example"));
    let head = format!("   {:<10} {:>digits$} {:>7}  {example}meaning", "verdict", "keys", "share");
    buffer.set_string(inner.x, inner.y, fit(&head, wide), theme.style(Role::Title));
    let mut list = app.cutover.verdicts;
    let height = usize::from(inner.height) - 1;
    list.settle(Verdict::ALL.len() + 1, height);
    let has_keys = app.pane == Pane::Verdicts;
    for at in (list.offset..Verdict::ALL.len() + 1).take(height) {
        let row = Rect { y: inner.y + 1 + (at - list.offset) as u16, height: 1, ..inner };
        let line = match at.checked_sub(1).and_then(|at| Verdict::ALL.get(at)) {
            Some(verdict) => verdict_line(theme, &check, *verdict, digits, examples, wide),
            None => Line::from(format!("   {:<10} {:>digits$}", "all", count(check.key_count))),
        };
        buffer.set_line(row.x, row.y, &line, row.width);
        cursor_row(app, buffer, row, at == list.cursor, has_keys);
        app.targets.push((row, Target::Row(Pane::Verdicts, at)));
    }
}

/// A verdict's line of `wide` cells; `digits` and `examples` are the cells of two of its columns.
fn verdict_line(
    theme: Theme,
    check: &CutoverCheck,
    verdict: Verdict,
    digits: usize,
    examples: Option<usize>,
    wide: usize,
) -> Line<'static> {
    let keys = check.count(verdict);
    let (mark, role) = verdict_mark(theme, verdict);
    let role = if keys == 0 { Role::Muted } else { role };
    let share = match check.key_count {
        0 => String::new(),
        all => format!("{:.1} %", keys as f64 * 100.0 / all as f64),
    };
    let counted = check.verdicts.iter().find(|count| count.verdict == verdict);
    let example =
        counted.and_then(|counted| counted.examples.first()).map(|key| key_values(&key.key)).unwrap_or_default();
    let example = examples.map_or(String::new(), |cells| {
        let example = fit_middle(&example, cells);
        format!("{example}{}  ", " ".repeat(cells - width(&example)))
    });
    let room = wide.saturating_sub(VERDICT_CELLS + digits + width(&example));
    Line::from(vec![
        Span::styled(
            format!(" {mark} {:<10} {:>digits$} {share:>7}  ", verdict.words(), count(keys)),
            theme.style(role),
        ),
        Span::raw(example),
        Span::styled(fit(verdict.meaning(), room), theme.style(Role::Muted)),
    ])
}

/// Cells that a key's line takes with both its sequences whole, and the frame.
fn key_width(row: &KeyCutover) -> usize {
    let sequence = |sequence: &Option<String>| sequence.as_deref().map_or(1, width);
    let change = if row.first_change == Some(FirstChange::Wrong) { " wrong ".len() } else { 0 };
    width(&key_values(&row.key)) + KEY_CELLS + sequence(&row.last_seeded) + sequence(&row.first_live) + change + 2
}

/// Cells of a key's line beside its name and its sequences.
const KEY_CELLS: usize = 9;

fn keys(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let theme = app.options.theme;
    let what = app.cutover.verdict().map_or("all", Verdict::words);
    let search = match app.cutover.search.is_empty() {
        true => String::new(),
        false => format!(" · /{}", app.cutover.search),
    };
    let n = app.cutover.keys.rows.len() as u64;
    let foot = match app.cutover.keys.has_more() {
        true => format!("more than {} keys", count(n)),
        false => counted(n, "key", "keys"),
    };
    let columns = app.cutover.key().map(|key| format!(" · {}", key_columns(key))).unwrap_or_default();
    let title = format!("Keys · {what}{columns}{search}");
    let inner = pane_frame(app, Pane::VerdictKeys, area, &title, &foot, buffer);
    let height = usize::from(inner.height);
    if app.cutover.keys.rows.is_empty() && height > 0 {
        let asked = &app.cutover.page;
        let text = match () {
            () if asked.is_waiting() => "fetching keys…",
            () if asked.problem().is_some() => "no keys are known",
            () => "no key is so",
        };
        buffer.set_string(inner.x + 1, inner.y, text, theme.style(Role::Muted));
        return;
    }
    let mut list = app.cutover.keys.list;
    list.settle(app.cutover.keys.rows.len(), height);
    app.cutover.keys.list = list;
    let rows: Vec<KeyCutover> = app.cutover.keys.rows.iter().skip(list.offset).take(height).cloned().collect();
    let names =
        rows.iter().map(|row| width(&key_values(&row.key))).max().unwrap_or(0).min(usize::from(inner.width) / 3);
    let has_keys = app.pane == Pane::VerdictKeys;
    for (n, row) in rows.iter().enumerate() {
        let area = Rect { y: inner.y + n as u16, height: 1, ..inner };
        let (mark, role) = verdict_mark(theme, row.verdict);
        let name = fit_middle(&key_values(&row.key), names).into_owned();
        let pad = " ".repeat(names - width(&name));
        let change = match row.first_change {
            Some(FirstChange::Wrong) => vec![Span::styled(" wrong ".to_string(), theme.style(Role::Error))],
            Some(change) if inner.width > 60 => {
                vec![Span::styled(format!(" {} ", change.words()), theme.style(Role::Muted))]
            }
            _ => Vec::new(),
        };
        let dash = theme.pick("–", "-");
        let seeded = row.last_seeded.as_deref().unwrap_or(dash);
        let live = row.first_live.as_deref().unwrap_or(dash);
        let arrow = theme.pick("→", ">");
        // Both sequences stay in sight.
        let taken = names + KEY_CELLS + change.iter().map(|span| width(&span.content)).sum::<usize>();
        let room = usize::from(inner.width).saturating_sub(taken);
        let (seeded_room, live_room) = match (width(seeded), width(live)) {
            (seeded, live) if seeded + live <= room => (seeded, live),
            (seeded, live) => (seeded.min(room.div_ceil(2).max(room.saturating_sub(live))), room / 2),
        };
        let (seeded, live) = (fit(seeded, seeded_room), fit(live, live_room.max(room.saturating_sub(seeded_room))));
        let left = vec![
            Span::styled(format!(" {mark} "), theme.style(role)),
            Span::raw(format!("{name}{pad}  ")),
            Span::styled(format!("{seeded} {arrow} {live}"), theme.style(Role::Muted)),
        ];
        put(buffer, area, left, change);
        cursor_row(app, buffer, area, list.offset + n == list.cursor, has_keys);
        app.targets.push((area, Target::Row(Pane::VerdictKeys, list.offset + n)));
    }
    overflow(app, buffer, inner, list.offset, app.cutover.keys.rows.len());
}

/// The events and the versions of the key under the cursor.
fn key(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let history = app.cutover.history().cloned();
    let name = app.cutover.key().map(key_words).unwrap_or_default();
    let title = if name.is_empty() { "Key".to_string() } else { format!("{name} · event order") };
    let versions = history.as_ref().map_or(0, |history| history.versions.len()) as u16;
    let below = match versions {
        0 => 0,
        n => (n + versions::ROWS_BESIDE + 2).min(area.height / 2),
    };
    let above = Rect { height: area.height - below, ..area };
    let foot = history.as_ref().map_or("", key_events::foot);
    let foot = if foot.is_empty() { "i inspect" } else { foot };
    let inner = pane_frame(app, Pane::KeyEvents, above, &title, foot, buffer);
    let Some(history) = history else {
        let asked = app.cutover.history_asked();
        return versions::draw_nothing(app, asked, inner, buffer);
    };
    key_events::draw(app, Pane::KeyEvents, &history, app.cutover.events, inner, buffer);
    if below < 4 {
        return;
    }
    let block = super::frame_block(app, Role::Border);
    let lower = Rect { y: above.bottom(), height: below, ..area };
    let inner = block.inner(lower);
    ratatui::widgets::Widget::render(block, lower, buffer);
    let title = format!(" {} ", versions::title(&history));
    let title = fit(&title, usize::from(lower.width.saturating_sub(4))).into_owned();
    buffer.set_string(lower.x + 2, lower.y, title, app.options.theme.style(Role::Title));
    let view = versions::View {
        history: &history,
        list: List { cursor: usize::from(versions).saturating_sub(1), offset: 0 },
        time: history.first_live.as_deref(),
        pinned: None,
        picked: None,
        pane: None,
    };
    versions::draw(app, &view, inner, buffer);
}
