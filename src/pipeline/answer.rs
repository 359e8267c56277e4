//! What the engine tells a front end that stays open. Plain data: no Arrow, no table, values as text.
//!
//! Answers come in the order in which things happened; a front end that keeps the newest of each kind knows
//! how the workspace stands.

use std::sync::Arc;

use crate::data_type::Field;
use crate::diagnostic::Diagnostic;
use crate::event::Event;
use crate::load::Pipeline;
use crate::plan::{Notice, UpdateRequest};
use crate::report::{PlanReport, ResetReport, Rows, Status, UpdateReport};
use crate::scd::{ScdQuestion, ScdReport};

/// One thing that the engine tells.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The definition files that were found, before any was read.
    Files {
        /// Relative to the workspace folder, sorted.
        paths: Vec<String>,
    },
    /// What the files say, and what is wrong with them.
    Verdict(Verdict),
    /// The workspace can't be read at all.
    Unreadable(Problem),
    /// What is stored, and how the flows stand.
    Status(Box<Status>),
    /// Something happened in an update, this one's or another process'.
    Happened {
        /// Its number in the event log; None for numbers of running flows, which are not logged.
        sequence: Option<i64>,
        event: Event,
    },
    /// The update that was asked for has begun.
    Started {
        request: UpdateRequest,
    },
    /// The update that was asked for has ended, or was refused.
    Ended {
        request: UpdateRequest,
        outcome: Result<UpdateReport, Problem>,
    },
    UpdatePlan {
        request: UpdateRequest,
        plan: Result<PlanReport, Problem>,
    },
    /// What a reset would do (`is_done` false), or has done.
    Reset {
        flows: Vec<String>,
        report: Result<ResetReport, Problem>,
    },
    Rows {
        dataset: String,
        from: usize,
        rows: Result<Rows, Problem>,
    },
    /// What was asked about an AUTO CDC table.
    Inspected {
        question: ScdQuestion,
        report: Result<Box<ScdReport>, Problem>,
    },
    /// A command that changes the workspace's state is done; its words as on the command line.
    Done {
        command: String,
        outcome: Result<(), Problem>,
    },
}

/// What the files of a workspace say at one moment.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Counted from 1 in a session: how often the files were read.
    pub revision: u64,
    pub stage: Stage,
    /// Texts, settings and graph; shared, because a large workspace is large.
    pub pipeline: Arc<Pipeline>,
    /// Of the stages so far, sorted; places point into [`Pipeline::workspace`].
    pub diagnostics: Arc<Vec<Diagnostic>>,
    /// By [`crate::graph::DatasetId`]: the columns that a dataset has or will have, where they are known.
    pub columns: Arc<Vec<Option<Vec<Field>>>>,
    /// From the moment the change was noticed.
    pub took_ms: u64,
}

/// How far a [`Verdict`] has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Names, kinds, cycles: what the texts alone say.
    Structure,
    /// Columns and types too, over the schemas of the sources.
    Analysis,
}

/// Why something asked for was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A stable word, as in diagnostics.
    pub code: String,
    pub message: String,
    pub help: Option<String>,
    /// What has to be confirmed first; empty if a yes would not help.
    pub unconfirmed: Vec<Notice>,
}
