//! What to do with a flow's checkpoint, decided from what was found on disk: state.db on one side, the table
//! and its `txn` (Delta protocol: application id = flow and generation, version = batch id) on the other.
//!
//! Why the two may differ: a process may die between the steps plan → write → commit → mark, a power loss may
//! take the newest files of either side, and people may delete or restore either side.
//!
//! Not here: reading the facts and carrying the decision out, which the engine does.

/// What state.db says about one generation of a flow's checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBatches {
    /// The smallest batch id that was never used.
    pub next_batch: i64,
    /// The batch that is planned and not marked; there is at most one, and it is above `committed`.
    pub planned: Option<i64>,
    /// The newest batch marked as committed.
    pub committed: Option<i64>,
    /// The table's version that the commit of `committed` made, where it is known.
    pub committed_version: Option<i64>,
    /// The newest batch whose input is no longer recorded; it and all before it can't be replayed.
    pub forgotten: Option<i64>,
    /// A once flow that is done.
    pub is_done: bool,
}

/// What the storage folder says about the flow's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundTable {
    Missing,
    /// `txn`: the newest batch of the flow and generation in the table.
    Exists {
        version: i64,
        txn: Option<i64>,
    },
}

/// All that the decision depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub known: KnownBatches,
    pub table: FoundTable,
}

/// What to do before, or instead of, planning a new batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// Nothing was read yet: options of the first start apply.
    StartFresh { next_batch: i64 },
    /// State and table agree.
    Continue { next_batch: i64 },
    /// The planned batch is in the table: mark it, then decide again.
    MarkCommitted { batch: i64 },
    /// The planned batch is not in the table: run it again with the recorded input.
    ReplayBatch { batch: i64 },
    /// The table lost commits that state.db has marked: run all recorded batches after `after` again, in order.
    ReplayAfter { after: Option<i64> },
    /// A once flow that is done: nothing is read, nothing is listed.
    Done,
    /// Going on could lose or double rows.
    Refuse(Refusal),
}

/// Why a flow can't go on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Batches were committed and the table is gone.
    TableGone,
    /// The table has a batch that state.db never planned.
    StateBehind { txn: i64, known: Option<i64> },
    /// The table was written in a generation that state.db doesn't know; `known` is its newest, None if it
    /// doesn't know the flow at all.
    GenerationUnknown { found: i64, known: Option<i64> },
    /// The table exists in the expected version or a later one, and knows nothing of the flow.
    TableReplaced { committed: i64 },
    /// The table lost commits whose input isn't recorded any more.
    InputForgotten { txn: Option<i64>, forgotten: i64 },
}

impl Refusal {
    /// The stable word for it.
    pub fn code(self) -> &'static str {
        match self {
            Refusal::TableGone => "table-gone",
            Refusal::StateBehind { .. } | Refusal::GenerationUnknown { .. } => "state-behind-table",
            Refusal::TableReplaced { .. } => "table-replaced",
            Refusal::InputForgotten { .. } => "input-forgotten",
        }
    }

    /// What was found; the caller adds flow and table.
    pub fn reason(self) -> String {
        let batch = |batch: Option<i64>| batch.map_or("no batch".to_string(), |batch| format!("batch {batch}"));
        match self {
            Refusal::TableGone => "batches were committed to the table, but the table is gone".to_string(),
            Refusal::StateBehind { txn, known } => {
                format!(
                    "the table holds batch {txn}, state.db knows {}: state.db is older than the table",
                    batch(known)
                )
            }
            Refusal::GenerationUnknown { found, known } => {
                let known = known.map_or("nothing of it".to_string(), |known| format!("generation {known}"));
                format!("the table holds generation {found}, state.db knows {known}: state.db is older than the table")
            }
            Refusal::TableReplaced { committed } => format!(
                "state.db has marked batch {committed} as committed, but the table holds no batch of this flow: \
                 it was replaced by another program, or its transaction ids expired"
            ),
            Refusal::InputForgotten { txn, forgotten } => format!(
                "the table goes up to {}, and what the batches up to {forgotten} read is no longer recorded",
                batch(txn)
            ),
        }
    }

    /// What to do about it.
    pub fn help(self) -> &'static str {
        match self {
            Refusal::TableGone => "put the table's folder back, or build it anew with `flowbench run --full-refresh`",
            Refusal::StateBehind { .. } | Refusal::GenerationUnknown { .. } => {
                "put the newer state.db back; or build the table anew with `flowbench run --full-refresh`; or move \
                 state.db away and take over what the tables tell with `flowbench doctor --repair`"
            }
            Refusal::TableReplaced { .. } => {
                "build the table anew with `flowbench run --full-refresh`, or, if its rows are right, \
                 start a new checkpoint with `flowbench reset`"
            }
            Refusal::InputForgotten { .. } => "build the table anew with `flowbench run --full-refresh`",
        }
    }
}

/// Finds out whether a table was written in a generation (of a flow, or of the table itself) that state.db
/// doesn't know. Going on from an older one would read again what the newer one has read.
pub fn newer_generation(found: Option<i64>, known: Option<i64>) -> Option<Refusal> {
    found
        .filter(|found| known.is_none_or(|known| *found > known))
        .map(|found| Refusal::GenerationUnknown { found, known })
}

/// Decides how a flow goes on.
pub fn resume(facts: &Facts) -> Resume {
    let known = &facts.known;
    let (version, txn) = match facts.table {
        FoundTable::Exists { version, txn } => (version, txn),
        FoundTable::Missing => {
            return match (known.committed, known.planned) {
                (Some(_), _) => Resume::Refuse(Refusal::TableGone),
                // The first commit makes the table.
                (None, Some(batch)) => Resume::ReplayBatch { batch },
                (None, None) => without_batches(known),
            };
        }
    };
    let newest = known.planned.or(known.committed);
    match (txn, known.committed, known.planned) {
        (None, None, None) => without_batches(known),
        (None, None, Some(batch)) => Resume::ReplayBatch { batch },
        // With fewer versions than state.db saw, the table lost commits. Otherwise it is not the table we wrote.
        (None, Some(committed), _) => match known.committed_version.is_some_and(|seen| version < seen) {
            true => replay_after(None, known),
            false => Resume::Refuse(Refusal::TableReplaced { committed }),
        },
        (Some(txn), _, Some(batch)) if txn == batch => Resume::MarkCommitted { batch },
        (Some(txn), Some(committed), Some(batch)) if txn == committed => Resume::ReplayBatch { batch },
        (Some(txn), Some(committed), None) if txn == committed => match known.is_done {
            true => Resume::Done,
            false => Resume::Continue { next_batch: known.next_batch },
        },
        // A `txn` only grows, so a lower one means that the later commits are not in the log.
        (Some(txn), Some(committed), _) if txn < committed => replay_after(Some(txn), known),
        // Above all that is known, or the id of a plan that was taken back.
        (Some(txn), _, _) => Resume::Refuse(Refusal::StateBehind { txn, known: newest }),
    }
}

fn without_batches(known: &KnownBatches) -> Resume {
    match known.is_done {
        // It had nothing to read.
        true => Resume::Done,
        false => Resume::StartFresh { next_batch: known.next_batch },
    }
}

fn replay_after(txn: Option<i64>, known: &KnownBatches) -> Resume {
    match known.forgotten {
        Some(forgotten) if txn.is_none_or(|txn| txn < forgotten) => {
            Resume::Refuse(Refusal::InputForgotten { txn, forgotten })
        }
        _ => Resume::ReplayAfter { after: txn },
    }
}

/// How far a full refresh was when it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullRefreshPhase {
    /// The flows write the shadow folder.
    Building,
    /// The one promoting commit was about to be made, or was made.
    Promoting,
}

/// What to do with a full refresh that a dead process left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeFullRefresh {
    /// The old generation stays; the shadow folder is removed.
    Abandon,
    /// The commit is in the table: put the new generation in force.
    FinishPromotion,
}

/// Decides how an interrupted full refresh ends. `promoted`: the newest generation that a promoting commit has
/// put into the table (its `txn`).
pub fn resume_full_refresh(phase: FullRefreshPhase, generation: i64, promoted: Option<i64>) -> ResumeFullRefresh {
    match phase {
        FullRefreshPhase::Promoting if promoted == Some(generation) => ResumeFullRefresh::FinishPromotion,
        FullRefreshPhase::Building | FullRefreshPhase::Promoting => ResumeFullRefresh::Abandon,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination that matters. Rows: what state.db knows (newest committed, planned, forgotten batch, done).
    /// Columns: what the table says; state.db saw version 10, so `v9` has lost commits and `v10` hasn't.
    ///
    /// fresh, continue, done; mark 3, replay 3; after 1 = replay all after 1; gone, behind, replaced, forgotten = refused.
    const DECISIONS: &str = "
        committed planned forgotten done | missing  | v9 no txn | v10 no txn | txn 0     | txn 1     | txn 2    | txn 3  | txn 4
        -         -       -         no   | fresh    | fresh     | fresh      | behind    | behind    | behind   | behind | behind
        -         -       -         yes  | done     | done      | done       | behind    | behind    | behind   | behind | behind
        -         3       -         no   | replay 3 | replay 3  | replay 3   | behind    | behind    | behind   | mark 3 | behind
        2         -       -         no   | gone     | after -   | replaced   | after 0   | after 1   | continue | behind | behind
        2         -       -         yes  | gone     | after -   | replaced   | after 0   | after 1   | done     | behind | behind
        2         -       1         no   | gone     | forgotten | replaced   | forgotten | after 1   | continue | behind | behind
        2         -       2         no   | gone     | forgotten | replaced   | forgotten | forgotten | continue | behind | behind
        2         -       2         yes  | gone     | forgotten | replaced   | forgotten | forgotten | done     | behind | behind
        2         3       -         no   | gone     | after -   | replaced   | after 0   | after 1   | replay 3 | mark 3 | behind
        2         3       1         no   | gone     | forgotten | replaced   | forgotten | after 1   | replay 3 | mark 3 | behind
        2         3       2         no   | gone     | forgotten | replaced   | forgotten | forgotten | replay 3 | mark 3 | behind
    ";

    #[test]
    fn every_combination_of_facts_has_its_decision() {
        let mut lines = DECISIONS.lines().map(str::trim).filter(|line| !line.is_empty());
        let tables: Vec<(&str, FoundTable)> = lines.next().unwrap().split('|').skip(1).map(table).collect();
        let mut checked = 0;
        for line in lines {
            let mut cells = line.split('|').map(str::trim);
            let known = known(cells.next().unwrap());
            for ((name, table), expected) in tables.iter().zip(cells) {
                let facts = Facts { known: known.clone(), table: *table };
                let decision = resume(&facts);
                assert_eq!(words(&decision, &known), expected, "{name}: {facts:?}");
                checked += 1;
            }
        }
        assert_eq!(checked, 11 * 8);
    }

    fn number(text: &str) -> Option<i64> {
        (text != "-").then(|| text.parse().unwrap())
    }

    fn known(cell: &str) -> KnownBatches {
        let [committed, planned, forgotten, done] = cell.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
        let (committed, planned) = (number(committed), number(planned));
        KnownBatches {
            next_batch: planned.or(committed).map_or(0, |batch| batch + 1),
            planned,
            committed,
            committed_version: committed.map(|_| 10),
            forgotten: number(forgotten),
            is_done: done == "yes",
        }
    }

    fn table(cell: &str) -> (&str, FoundTable) {
        let cell = cell.trim();
        let table = match cell.split_whitespace().collect::<Vec<_>>()[..] {
            ["missing"] => FoundTable::Missing,
            [version, "no", "txn"] => FoundTable::Exists { version: version[1..].parse().unwrap(), txn: None },
            ["txn", txn] => FoundTable::Exists { version: 10, txn: number(txn) },
            _ => unreachable!("{cell}"),
        };
        (cell, table)
    }

    fn words(decision: &Resume, known: &KnownBatches) -> String {
        match decision {
            Resume::StartFresh { next_batch } => {
                assert_eq!(*next_batch, known.next_batch);
                "fresh".to_string()
            }
            Resume::Continue { next_batch } => {
                assert_eq!(*next_batch, known.next_batch);
                "continue".to_string()
            }
            Resume::MarkCommitted { batch } => format!("mark {batch}"),
            Resume::ReplayBatch { batch } => format!("replay {batch}"),
            Resume::ReplayAfter { after } => format!("after {}", after.map_or("-".to_string(), |a| a.to_string())),
            Resume::Done => "done".to_string(),
            Resume::Refuse(refusal) => {
                assert!(!refusal.reason().is_empty() && !refusal.help().is_empty() && !refusal.code().is_empty());
                match refusal {
                    Refusal::TableGone => "gone",
                    Refusal::StateBehind { .. } | Refusal::GenerationUnknown { .. } => "behind",
                    Refusal::TableReplaced { .. } => "replaced",
                    Refusal::InputForgotten { .. } => "forgotten",
                }
                .to_string()
            }
        }
    }

    /// Runs plan → commit → mark with a crash after every choice of steps, and power losses that take the newest
    /// commits of the table, and follows the decisions: each batch ends up in the table one time.
    #[test]
    fn following_the_decisions_puts_every_batch_into_the_table_once() {
        for batches in 0..4_i64 {
            for crash_after in ["", "plan", "commit", "mark"] {
                for lost in 0..=batches + 1 {
                    simulate(batches, crash_after, lost);
                }
            }
        }
    }

    fn simulate(batches: i64, crash_after: &str, lost: i64) {
        let mut known = KnownBatches {
            next_batch: 0,
            planned: None,
            committed: None,
            committed_version: None,
            forgotten: None,
            is_done: false,
        };
        // The batches in the table, one a version; version 0 makes it.
        let mut table: Vec<i64> = vec![];
        for _ in 0..batches {
            step(&mut known, &mut table, "mark");
        }
        if !crash_after.is_empty() {
            step(&mut known, &mut table, crash_after);
        }
        table.truncate(table.len().saturating_sub(lost as usize));
        for _ in 0..10 {
            let found = FoundTable::Exists { version: table.len() as i64, txn: table.last().copied() };
            match resume(&Facts { known: known.clone(), table: found }) {
                Resume::StartFresh { next_batch } | Resume::Continue { next_batch } => {
                    assert_eq!(table, (0..next_batch).collect::<Vec<_>>(), "{batches} {crash_after} {lost}");
                    return;
                }
                Resume::MarkCommitted { batch } => mark(&mut known, batch, table.len()),
                Resume::ReplayBatch { batch } => {
                    table.push(batch);
                    mark(&mut known, batch, table.len());
                }
                Resume::ReplayAfter { after } => {
                    for batch in after.map_or(0, |after| after + 1)..known.next_batch {
                        table.push(batch);
                        mark(&mut known, batch, table.len());
                    }
                }
                other => panic!("{batches} {crash_after} {lost}: {other:?}"),
            }
        }
        panic!("the decisions do not come to an end");
    }

    fn step(known: &mut KnownBatches, table: &mut Vec<i64>, until: &str) {
        let batch = known.next_batch;
        (known.planned, known.next_batch) = (Some(batch), batch + 1);
        if until == "plan" {
            return;
        }
        table.push(batch);
        if until == "mark" {
            mark(known, batch, table.len());
        }
    }

    fn mark(known: &mut KnownBatches, batch: i64, version: usize) {
        known.planned = known.planned.filter(|planned| *planned != batch);
        (known.committed, known.committed_version) = (Some(batch), Some(version as i64));
    }

    #[test]
    fn a_table_of_a_newer_generation_is_not_gone_on_with() {
        for (found, known, is_refused) in [
            (None, None, false),
            (None, Some(1), false),
            (Some(1), Some(1), false),
            (Some(1), Some(2), false),
            (Some(2), Some(1), true),
            (Some(1), None, true),
        ] {
            assert_eq!(newer_generation(found, known).is_some(), is_refused, "{found:?} {known:?}");
        }
    }

    #[test]
    fn full_refresh_is_finished_only_if_its_commit_is_there() {
        use FullRefreshPhase::*;
        use ResumeFullRefresh::*;
        for (phase, promoted, expected) in [
            (Building, None, Abandon),
            (Building, Some(2), Abandon),
            (Promoting, None, Abandon),
            (Promoting, Some(2), Abandon),
            (Promoting, Some(3), FinishPromotion),
        ] {
            assert_eq!(resume_full_refresh(phase, 3, promoted), expected, "{phase:?} {promoted:?}");
        }
    }
}
