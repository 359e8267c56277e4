//! Reports of an update: to the event log in state.db, which is the record, and to whoever listens.
//!
//! Numbers of running flows (level METRICS) only go to the listener: they may be dropped, results may not.

use std::sync::{Arc, Mutex, PoisonError};

use pipeline::event::{Details, Event, Failure, Level, State as RunState};

use crate::clock::now_us;
use crate::error::{Error, Result, Retry};
use crate::state::{EventLevel, NewEvent, State};

/// Where a front end listens.
pub type EventSink = tokio::sync::mpsc::UnboundedSender<Event>;

/// Reports of one update.
#[derive(Debug, Clone)]
pub struct Recorder {
    state: Arc<State>,
    sink: EventSink,
    update: i64,
    /// Events whose record failed, once: the update must not go on silently without its log.
    failure: Arc<Mutex<Option<String>>>,
}

/// Who an event is about.
#[derive(Debug, Clone, Default)]
pub struct About {
    pub dataset: Option<String>,
    pub flow: Option<String>,
    pub batch: Option<i64>,
}

impl About {
    /// The update as a whole.
    pub fn update() -> About {
        About::default()
    }

    /// A dataset, by its label.
    pub fn dataset(label: &str) -> About {
        About { dataset: Some(label.to_string()), ..About::default() }
    }

    /// A flow and its dataset's label.
    pub fn flow(name: &str, dataset: &str) -> About {
        About { dataset: Some(dataset.to_string()), flow: Some(name.to_string()), batch: None }
    }

    /// One of its micro-batches.
    pub fn batch(mut self, batch: i64) -> About {
        self.batch = Some(batch);
        self
    }
}

impl Recorder {
    /// Reports of the update with this number.
    pub fn new(state: Arc<State>, sink: EventSink, update: i64) -> Recorder {
        Recorder { state, sink, update, failure: Arc::default() }
    }

    /// The update's number.
    pub fn update(&self) -> i64 {
        self.update
    }

    /// Reports something.
    pub fn report(&self, level: Level, about: About, message: impl Into<String>, details: Details) {
        self.send(Event {
            time_us: now_us(),
            level,
            update: Some(self.update),
            dataset: about.dataset,
            flow: about.flow,
            batch: about.batch,
            message: message.into(),
            error: None,
            details,
        });
    }

    /// Reports a failure with its cause.
    pub fn report_failure(&self, about: About, message: impl Into<String>, error: &Error, details: Details) {
        self.send(Event {
            time_us: now_us(),
            level: Level::Error,
            update: Some(self.update),
            dataset: about.dataset,
            flow: about.flow,
            batch: about.batch,
            message: message.into(),
            error: Some(failure(error)),
            details,
        });
    }

    /// Reports something worth knowing.
    pub fn notice(&self, about: About, code: &str, message: impl Into<String>, help: Option<String>) {
        self.report(Level::Warn, about, message, Details::Notice { code: code.to_string(), help });
    }

    /// Reports the state of the update.
    pub fn progress(&self, state: RunState, message: impl Into<String>) {
        self.report(Level::Info, About::update(), message, Details::UpdateProgress { state });
    }

    /// Err if an event could not be recorded.
    pub fn check(&self) -> Result<()> {
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(what) => Err(Error::External {
                code: "event-log",
                what: format!("cannot write the event log: {what}"),
                help: "see whether the disk is full or read-only; the tables are sound, and a run resumes".to_string(),
            }),
            None => Ok(()),
        }
    }

    fn send(&self, event: Event) {
        if event.level != Level::Metrics
            && let Err(error) = self.state.append_events(&[new_event(&event)])
        {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
        // Nobody listening is no failure: the record is the log.
        let _ = self.sink.send(event);
    }
}

/// An error as front ends show it.
pub fn failure(error: &Error) -> Failure {
    Failure {
        code: error.code().to_string(),
        message: error.to_string(),
        help: error.help(),
        is_fatal: error.retry() == Retry::Never,
    }
}

fn new_event(event: &Event) -> NewEvent {
    let details = serde_json::to_value(&event.details).expect("details are plain data");
    NewEvent {
        time_us: event.time_us,
        level: match event.level {
            Level::Metrics => EventLevel::Metrics,
            Level::Info => EventLevel::Info,
            Level::Warn => EventLevel::Warn,
            Level::Error => EventLevel::Error,
        },
        event_type: details["event_type"].as_str().unwrap_or_default().to_string(),
        update_id: event.update,
        dataset: event.dataset.clone(),
        flow: event.flow.clone(),
        batch_id: event.batch,
        message: event.message.clone(),
        error: event.error.as_ref().map(|error| serde_json::to_string(error).expect("a failure is plain data")),
        details: details["details"].to_string(),
    }
}

/// An event of the log as front ends take it.
pub fn event_of_log(logged: crate::state::Event) -> Result<Event> {
    let event = logged.event;
    let details = serde_json::json!({
        "event_type": event.event_type,
        "details": serde_json::from_str::<serde_json::Value>(&event.details).unwrap_or_default(),
    });
    let details = serde_json::from_value(details)
        .map_err(|e| Error::Internal(format!("event {} of the log: {e}", logged.sequence)))?;
    Ok(Event {
        time_us: event.time_us,
        level: match event.level {
            EventLevel::Metrics => Level::Metrics,
            EventLevel::Info => Level::Info,
            EventLevel::Warn => Level::Warn,
            EventLevel::Error => Level::Error,
        },
        update: event.update_id,
        dataset: event.dataset,
        flow: event.flow,
        batch: event.batch_id,
        message: event.message,
        error: event.error.and_then(|text| serde_json::from_str(&text).ok()),
        details,
    })
}
