//! The time that is looked at: a sequence, the stops that it moves by, and the axis that it lies on.

use pipeline::auto_cdc::ScdType;
use pipeline::scd::{KeyHistory, Version};

use super::Detail;
use crate::app::known::change_of;
use crate::app::{App, Pane};
use crate::popup::Popup;
use crate::theme::Role;
use crate::widget::timeline::{Axis, Interval};

/// The sequences where something begins or ends, in order: the stops of the cursor, and what the axis shows.
pub fn stops(history: &KeyHistory) -> Vec<&str> {
    let of_versions = history.versions.iter().flat_map(|version| [Some(&version.start), version.end.as_ref()]);
    let of_events = history.events.iter().map(|event| &event.sequence);
    let mut stops: Vec<&str> = match history.versions.len() {
        0 | 1 => of_events.map(String::as_str).collect(),
        _ => of_versions.flatten().map(String::as_str).collect(),
    };
    stops.dedup();
    stops
}

/// The axis of a history in so many cells.
pub fn axis(history: &KeyHistory, cells: usize) -> Axis {
    Axis::new(stops(history), history.versions.iter().any(|version| version.is_open), cells)
}

/// A version as an interval of the axis.
pub fn interval<'a>(history: &'a KeyHistory, version: &'a Version) -> Interval<'a> {
    let before = version.number.checked_sub(2).and_then(|at| history.versions.get(at));
    let gap_from = before.filter(|_| version.is_after_gap).and_then(|before| before.end.as_deref());
    let end = if version.is_open { None } else { version.end.as_deref() };
    Interval { start: &version.start, end, gap_from }
}

impl App {
    /// Moves the time to a stop: the one before, the one after.
    pub(in crate::app) fn step_time(&mut self, is_forward: bool) {
        let Some(history) = self.scd.history() else { return };
        let stops = stops(history);
        let at = self.scd.time().and_then(|time| stops.iter().position(|stop| *stop == time));
        let next = match (at, is_forward) {
            (Some(at), true) => (at + 1).min(stops.len().saturating_sub(1)),
            (Some(at), false) => at.saturating_sub(1),
            // A time that was typed: the nearest cell says where it lies.
            (None, _) => {
                let axis = axis(history, 10_000);
                let own = self.scd.time().and_then(|time| axis.cell(time)).unwrap_or(0);
                let cells = stops.iter().map(|stop| axis.cell(stop).unwrap_or(0));
                match is_forward {
                    true => cells.clone().position(|cell| cell > own).unwrap_or(stops.len().saturating_sub(1)),
                    false => cells.clone().filter(|cell| *cell < own).count().saturating_sub(1),
                }
            }
        };
        if let Some(time) = stops.get(next).map(|stop| (*stop).to_string()) {
            self.set_time(time);
        }
    }

    /// Moves the time to the first live event, or the first event of all; or to the newest stop.
    pub(in crate::app) fn jump_time(&mut self, is_last: bool) {
        let Some(history) = self.scd.history() else { return };
        let stops = stops(history);
        let time = match is_last {
            true => stops.last().copied(),
            false => history.first_live.as_deref().or(stops.first().copied()),
        };
        if let Some(time) = time.map(str::to_string) {
            self.set_time(time);
        }
    }

    /// Looks at a time, and at the version that holds at it.
    pub(crate) fn set_time(&mut self, time: String) {
        if let Some(history) = self.scd.history() {
            let axis = axis(history, 10_000);
            let at = axis.cell(&time);
            let cell = |label: &String| axis.cell(label);
            let holds = |version: &Version| {
                cell(&version.start) <= at && (version.is_open || version.end.as_ref().and_then(cell) > at)
            };
            if let Some(version) = at.and_then(|_| history.versions.iter().position(holds)) {
                self.scd.versions.cursor = version;
            }
        }
        self.scd.time = Some(time);
    }

    /// True if the table's past can be looked at: it is of SCD type 2.
    pub fn keeps_history(&self) -> bool {
        let table = self.scd.table.as_deref().and_then(|table| self.known.find_dataset(table));
        let change = self.known.graph().zip(table).and_then(|(graph, id)| change_of(graph, id));
        change.is_some_and(|change| change.scd_type() == ScdType::Two)
    }

    /// Says why there is no time to go to.
    fn say_no_history(&mut self) {
        self.say(Role::Muted, "the table is of SCD type 1: it has the latest row of each key and no past");
    }

    /// `@`: a time is typed.
    pub(in crate::app) fn ask_for_time(&mut self) {
        if !self.keeps_history() {
            return self.say_no_history();
        }
        let kind = self.scd.history().map_or(String::new(), |history| history.sequence_type.clone());
        let text = self.scd.time().unwrap_or_default().to_string();
        self.popups.push(Popup::time(&kind, &text));
    }

    /// A time was typed: the table at it.
    pub(crate) fn time_typed(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.set_time(text.trim().to_string());
            self.pane = Pane::AsOf;
        }
    }

    /// `=`: the first time of a comparison, then the second.
    pub(in crate::app) fn compare_times(&mut self) {
        if !self.keeps_history() {
            return self.say_no_history();
        }
        let Some(time) = self.scd.time().map(str::to_string) else { return };
        if let Some(problem) = self.scd.time_problem().cloned() {
            return self.say_problem(&problem);
        }
        match self.scd.pinned.as_ref() {
            Some(pinned) if *pinned != time => self.show_detail(Detail::Times),
            Some(_) => self.say(Role::Muted, "go to another time with , . < > @, then press = again"),
            None => {
                self.say(Role::Muted, format!("from {time}: go to another time with , . < > @, then press = again"));
                self.scd.pinned = Some(time);
            }
        }
    }
}
