//! A dataset's rows, page by page: what was fetched, what is looked at, what to ask for next. Never the whole
//! table, and one question at a time.

use pipeline::answer::Problem;
use pipeline::command::Command;
use pipeline::report::{Column, Rows};

use super::known::Known;
use super::list::{List, Move};

/// Rows asked for at a time.
const PAGE: usize = 200;

/// Rows kept; who wants to see more than that asks with a condition.
pub const ROWS_KEPT: usize = 20_000;

/// The rows of the dataset that is looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    pub dataset: Option<String>,
    pub columns: Vec<Column>,
    /// From the first on.
    pub rows: Vec<Vec<Option<String>>>,
    /// There are no more rows than these.
    pub is_whole: bool,
    pub problem: Option<Problem>,
    pub list: List,
    /// The first column that is drawn.
    pub column: usize,
    /// The question that is out: dataset and first row.
    asked: Option<(String, usize)>,
    /// Version of the table that the rows are of, and the newest one.
    versions: (Option<i64>, Option<i64>),
}

impl Preview {
    /// The next question, if rows are missing that a pane of `height` rows would show.
    pub fn want(&mut self, dataset: &str, height: usize) -> Option<Command> {
        if self.asked.is_some() {
            return None;
        }
        let is_other = self.dataset.as_deref() != Some(dataset);
        let is_stale = self.versions.0 != self.versions.1 && self.list.cursor < PAGE;
        let ends_soon = self.list.offset + height + PAGE / 2 > self.rows.len();
        let from = match () {
            () if is_other || is_stale => 0,
            () if self.problem.is_some() || self.is_whole || self.rows.len() >= ROWS_KEPT || !ends_soon => return None,
            () => self.rows.len(),
        };
        self.asked = Some((dataset.to_string(), from));
        Some(Command::Rows { dataset: dataset.to_string(), from, count: PAGE })
    }

    /// Takes a page in.
    pub fn take(&mut self, dataset: &str, from: usize, answer: &Result<Rows, Problem>) {
        if self.asked.take_if(|asked| asked.0 == dataset && asked.1 == from).is_none() {
            return;
        }
        if self.dataset.as_deref() != Some(dataset) {
            *self = Preview { versions: (None, self.versions.1), ..Preview::default() };
            self.dataset = Some(dataset.to_string());
        }
        if from == 0 {
            self.rows.clear();
            self.versions.0 = self.versions.1;
        }
        self.problem = answer.as_ref().err().cloned();
        match answer {
            Ok(page) if from == self.rows.len() => {
                self.columns.clone_from(&page.columns);
                self.rows.extend(page.rows.iter().cloned());
                self.is_whole = !page.is_truncated;
            }
            Ok(_) => {}
            Err(_) => self.is_whole = true,
        }
    }

    /// Sees from the newest status whether the rows are of an older version.
    pub fn notice_versions(&mut self, known: &Known) {
        let Some(dataset) = &self.dataset else { return };
        let table = known.dataset_status(dataset).and_then(|status| status.table.as_ref());
        self.versions.1 = table.map(|table| table.version);
        if self.versions.0.is_none() && self.problem.is_none() && !self.rows.is_empty() {
            self.versions.0 = self.versions.1;
        }
    }

    /// Moves the cursor.
    pub fn go(&mut self, way: Move, height: usize) {
        self.list.go(way, self.rows.len(), height);
    }

    /// Moves sideways.
    pub fn go_column(&mut self, is_right: bool) {
        self.column = match is_right {
            true => (self.column + 1).min(self.columns.len().saturating_sub(1)),
            false => self.column.saturating_sub(1),
        };
    }

    /// Keeps the cursor inside.
    pub fn settle(&mut self, height: usize) {
        self.list.settle(self.rows.len(), height);
        self.column = self.column.min(self.columns.len().saturating_sub(1));
    }

    /// True until the first answer for this dataset.
    pub fn is_waiting(&self, dataset: &str) -> bool {
        self.dataset.as_deref() != Some(dataset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: usize, is_truncated: bool) -> Result<Rows, Problem> {
        Ok(Rows { columns: Vec::new(), rows: vec![vec![Some("x".to_string())]; rows], is_truncated })
    }

    #[test]
    fn rows_are_asked_for_as_they_are_looked_at_and_never_twice() {
        let mut preview = Preview::default();
        let ask = |from| Some(Command::Rows { dataset: "a".to_string(), from, count: PAGE });
        assert_eq!(preview.want("a", 10), ask(0));
        assert_eq!(preview.want("a", 10), None);
        preview.take("a", 0, &page(200, true));
        assert_eq!(preview.want("a", 10), None);
        preview.go(Move::Bottom, 10);
        preview.settle(10);
        assert_eq!(preview.want("a", 10), ask(200));
        preview.take("b", 200, &page(200, true));
        assert_eq!(preview.rows.len(), 200);
        preview.take("a", 200, &page(50, false));
        assert_eq!((preview.rows.len(), preview.is_whole), (250, true));
        assert_eq!(preview.want("a", 10), None);
        // Another dataset begins at its first row.
        assert_eq!(preview.want("b", 10), Some(Command::Rows { dataset: "b".to_string(), from: 0, count: PAGE }));
        preview.take("b", 0, &page(3, false));
        assert_eq!((preview.rows.len(), preview.list.cursor), (3, 0));
    }
}
