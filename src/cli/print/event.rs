//! Events as lines: `12:03:04  flow_progress  registration_events_raw  RUNNING  …`.

use pipeline::event::{Details, Event, FlowMetrics};

use super::number;
use super::style::Style;

/// The width of the longest type of an event.
const TYPE_WIDTH: usize = 20;

/// The type's word, as in the event log.
pub fn type_word(details: &Details) -> &'static str {
    match details {
        Details::CreateUpdate { .. } => "create_update",
        Details::UpdateProgress { .. } => "update_progress",
        Details::FlowDefinition { .. } => "flow_definition",
        Details::DatasetDefinition { .. } => "dataset_definition",
        Details::FlowProgress { .. } => "flow_progress",
        Details::BatchProgress { .. } => "batch_progress",
        Details::SchemaEvolved { .. } => "schema_evolved",
        Details::PlanningInformation { .. } => "planning_information",
        Details::OperationProgress { .. } => "operation_progress",
        Details::Notice { .. } => "notice",
        Details::Maintenance { .. } => "maintenance",
        Details::UserAction { .. } => "user_action",
    }
}

/// One event on one line, its error and help on lines of their own below.
pub fn line(event: &Event, style: Style) -> String {
    let (time, kind) = (number::time(event.time_us), type_word(&event.details));
    let mut parts = vec![style.dim(time), style.dim(format!("{kind:<TYPE_WIDTH$}"))];
    parts.extend(event.flow.as_ref().or(event.dataset.as_ref()).map(|name| style.bold(one_line(name))));
    match &event.details {
        Details::UpdateProgress { state } | Details::FlowProgress { status: state, .. } => {
            parts.push(style.state(*state, 0));
        }
        _ => {}
    }
    // The state says it all, unless something went wrong.
    let is_said = matches!(event.details, Details::FlowProgress { .. } | Details::UpdateProgress { .. });
    if !is_said || event.error.is_some() {
        parts.push(style.level(event.level, one_line(&event.message)));
    }
    let mut out = parts.join("  ");
    if let Some(error) = &event.error {
        out.push_str(&format!("\n  {}: {}", style.error(format!("error[{}]", error.code)), one_line(&error.message)));
        out.extend(error.help.as_ref().map(|help| help_line(help, style)));
    }
    if let Details::Notice { help: Some(help), .. } = &event.details {
        out.push_str(&help_line(help, style));
    }
    out
}

/// A line below that says how to fix it.
pub fn help_line(help: &str, style: Style) -> String {
    // Ways out stand one below the other.
    let ways: Vec<String> = help.split("; or ").map(one_line).collect();
    format!("\n  {} {}", style.help("= help:"), ways.join("\n      or: "))
}

/// `1 204 rows  3 files  12 files left  2 rescued values`: what is not zero.
pub fn metrics_words(metrics: &FlowMetrics) -> String {
    let FlowMetrics { rows_out, files_in, backlog, rescued_values, corrupt_records, .. } = *metrics;
    let mut words = vec![number::counted(rows_out, "row", "rows")];
    let mut add = |n: u64, one: &str, many: &str| {
        if n > 0 {
            words.push(number::counted(n, one, many));
        }
    };
    add(files_in, "file", "files");
    add(rescued_values, "rescued value", "rescued values");
    add(corrupt_records, "corrupt record", "corrupt records");
    if backlog > 0 {
        words.push(format!("{} to read", number::count(backlog)));
    }
    words.join("  ")
}

/// Text of the user's data on one line, without anything that a terminal would obey.
pub fn one_line(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\n' | '\t' => ' ',
            character if character.is_control() => '\u{fffd}',
            character => character,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use pipeline::event::{Failure, Level, State};

    use super::*;

    #[test]
    fn an_event_is_a_line_and_its_error_the_next() {
        let mut event = Event {
            time_us: 0,
            level: Level::Info,
            update: Some(3),
            dataset: Some("orders".to_string()),
            flow: Some("orders_live".to_string()),
            batch: None,
            message: "flow is RUNNING".to_string(),
            error: None,
            details: Details::FlowProgress { status: State::Running, metrics: FlowMetrics::default() },
        };
        let text = line(&event, Style::plain());
        assert!(text.ends_with("  flow_progress         orders_live  RUNNING"), "{text}");
        event.error = Some(Failure {
            code: "io".to_string(),
            message: "disk\nfull\x1b[1m".to_string(),
            help: Some("free some".to_string()),
            is_fatal: true,
        });
        let text = line(&event, Style::plain());
        assert!(text.ends_with("\n  error[io]: disk full\u{fffd}[1m\n  = help: free some"), "{text}");
    }
}
