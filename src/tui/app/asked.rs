//! What the screen wants to know of the engine, and the newest answer: one question at a time, the newest wish next,
//! and again when what was asked about has changed.

use pipeline::answer::Problem;
use pipeline::command::Command;
use pipeline::scd::{ScdQuestion, ScdReport};

use super::Effect;

/// After an answer, the same question rests this many times as long as the answer took, so that a view that is open
/// while an update runs takes a small part of the machine.
const REST: i64 = 4;

/// What tells that an answer may no longer hold: the revision of the files, the version of the table.
pub type Stamp = (u64, Option<i64>);

/// A question, and the newest answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// The question that is out, since when, and the stamp of that moment.
    out: Option<(ScdQuestion, i64, Stamp)>,
    /// The question that was answered last, and the stamp of its answer.
    of: Option<(ScdQuestion, Stamp)>,
    pub report: Option<Result<Box<ScdReport>, Problem>>,
    /// The same question is not asked again before.
    rests_until_us: i64,
    /// The answer doesn't hold any more, and is asked for as soon as it has rested.
    is_due: bool,
}

impl Asked {
    /// Wants the answer of a question as of `stamp`; the effect asks for it, if that is to be done now.
    pub fn want(&mut self, question: ScdQuestion, stamp: Stamp, now_us: i64) -> Option<Effect> {
        let is_same = self.of.as_ref().is_some_and(|(of, _)| *of == question);
        let holds = is_same && self.of.as_ref().is_some_and(|(_, of)| *of == stamp);
        self.is_due = !holds;
        if holds || self.out.is_some() || (is_same && now_us < self.rests_until_us) {
            return None;
        }
        self.out = Some((question.clone(), now_us, stamp));
        Some(Effect::Ask(Command::Inspect { question }))
    }

    /// Takes an answer in, if it is that of the question that is out; true if it was.
    pub fn take(&mut self, question: &ScdQuestion, report: &Result<Box<ScdReport>, Problem>, now_us: i64) -> bool {
        let Some((of, since_us, stamp)) = self.out.take_if(|out| out.0 == *question) else { return false };
        self.rests_until_us = now_us + (now_us - since_us).max(0) * REST;
        self.of = Some((of, stamp));
        self.is_due = false;
        self.report = Some(report.clone());
        true
    }

    /// The question that was answered last.
    pub fn question(&self) -> Option<&ScdQuestion> {
        self.of.as_ref().map(|(question, _)| question)
    }

    /// There is nothing to want.
    pub fn rest(&mut self) {
        self.is_due = false;
    }

    /// The question that is out gets no answer.
    pub fn forget(&mut self) {
        self.out = None;
    }

    /// True while an answer is on its way or due.
    pub fn is_waiting(&self) -> bool {
        self.out.is_some() || self.is_due
    }

    /// True if time alone makes it ask.
    pub fn is_resting(&self) -> bool {
        self.out.is_none() && self.is_due
    }

    /// What the newest answer is of.
    pub fn stamp(&self) -> Option<Stamp> {
        self.of.as_ref().map(|(_, stamp)| *stamp)
    }

    /// Why there is no answer.
    pub fn problem(&self) -> Option<&Problem> {
        self.report.as_ref()?.as_ref().err()
    }

    /// The answer.
    pub fn answer(&self) -> Option<&ScdReport> {
        self.report.as_ref()?.as_ref().ok().map(|report| &**report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_at_a_time_and_again_when_the_table_has_changed() {
        let question = |table: &str| ScdQuestion::Check { table: table.to_string() };
        let no = Problem { code: String::new(), message: String::new(), help: None, unconfirmed: Vec::new() };
        let mut asked = Asked::default();
        assert!(asked.want(question("a"), (1, Some(1)), 0).is_some());
        // Another wish meanwhile waits for the answer.
        assert!(asked.want(question("b"), (1, Some(1)), 1).is_none());
        assert!(!asked.take(&question("b"), &Err(no.clone()), 5));
        assert!(asked.take(&question("a"), &Err(no.clone()), 10));
        assert!(asked.want(question("b"), (1, Some(1)), 11).is_some());
        assert!(asked.take(&question("b"), &Err(no.clone()), 21));
        assert!(!asked.is_waiting());
        assert!(asked.want(question("b"), (1, Some(1)), 22).is_none() && !asked.is_waiting());
        // The table has a new version: asked again, when it has rested four times the ten that it took.
        assert!(asked.want(question("b"), (1, Some(2)), 23).is_none() && asked.is_waiting());
        assert!(asked.want(question("b"), (1, Some(2)), 61).is_some());
    }
}
