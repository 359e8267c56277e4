//! Datasets that have a table: where it is, as what it was last defined, and the full refresh in progress.
//!
//! ```text
//! start_full_refresh ─▶ building ─▶ begin_promotion ─▶ promoting ─▶ promote            (generation n+1 in force)
//!                          │                               │
//!                          └──── abandon_full_refresh ◀────┘ if the commit isn't there  (generation n stays)
//! ```
//! `pipeline::resume::resume_full_refresh` decides what a crash left to do.

use std::collections::BTreeMap;

use pipeline::definition::DatasetKind;
use pipeline::resume::FullRefreshPhase as Phase;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};

use super::flow::{delete_flow, flows_of, forget_inputs, insert_checkpoint, next_generation};
use super::{State, execute, row, rows, stored_as_text};
use crate::error::{Error, Result};

/// How far a full refresh is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FullRefreshPhase {
    Building,
    Promoting,
}

stored_as_text!(FullRefreshPhase { Building = "building", Promoting = "promoting" });

impl From<FullRefreshPhase> for Phase {
    fn from(phase: FullRefreshPhase) -> Phase {
        match phase {
            FullRefreshPhase::Building => Phase::Building,
            FullRefreshPhase::Promoting => Phase::Promoting,
        }
    }
}

/// A dataset as recorded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Dataset {
    /// `DatasetName::key()`.
    pub dataset: String,
    /// As the user spells it.
    pub name: String,
    pub kind: DatasetKind,
    /// Relative to the storage folder.
    pub table_path: String,
    pub generation: i64,
    /// False: taken out of the files; the table is kept until `flowbench drop`.
    pub is_active: bool,
    /// JSON, as last applied to the table.
    pub definition: String,
    pub full_refresh: Option<FullRefresh>,
    /// JSON of what a materialized view was last computed from.
    pub inputs_fingerprint: Option<String>,
    pub refreshed_us: Option<i64>,
    pub created_us: i64,
}

/// A full refresh that was started and neither promoted nor abandoned.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FullRefresh {
    pub generation: i64,
    pub update_id: i64,
    pub phase: FullRefreshPhase,
}

/// A dataset whose table was made or changed.
#[derive(Debug, Clone)]
pub struct NewDataset<'a> {
    pub dataset: &'a str,
    pub name: &'a str,
    pub kind: DatasetKind,
    pub table_path: &'a str,
    /// JSON.
    pub definition: &'a str,
}

const DATASETS: &str = "
SELECT dataset, name, kind, table_path, generation, is_active, definition, shadow_generation, shadow_update_id,
       shadow_phase, inputs_fingerprint, refreshed_us, created_us
FROM datasets";

impl State {
    /// Records the definition that was applied to the dataset's table, and that the dataset is active.
    pub fn put_dataset(&self, dataset: &NewDataset<'_>, now_us: i64) -> Result<Dataset> {
        self.write("record a dataset", |tx| {
            execute(
                tx,
                "INSERT INTO datasets (dataset, name, kind, table_path, generation, last_generation, is_active,
                                       definition, created_us)
                 VALUES (?1, ?2, ?3, ?4, 1, 1, 1, ?5, ?6)
                 ON CONFLICT (dataset) DO UPDATE SET
                    name = ?2, kind = ?3, table_path = ?4, is_active = 1, definition = ?5",
                params![
                    dataset.dataset,
                    dataset.name,
                    kind_text(dataset.kind),
                    dataset.table_path,
                    dataset.definition,
                    now_us
                ],
            )?;
            get(tx, dataset.dataset)
        })
    }

    /// Takes the generation over that `flowbench doctor` found in the dataset's table, so that the number of a
    /// promoting commit in it is not given again.
    pub fn import_generation(&self, dataset: &str, generation: i64) -> Result<()> {
        self.write("import a dataset", |tx| {
            let sql = "UPDATE datasets SET generation = ?2, last_generation = max(last_generation, ?2)
                       WHERE dataset = ?1";
            expect_one(execute(tx, sql, params![dataset, generation])?, dataset)
        })
    }

    /// Makes sure that the generations found in the dataset's table, of promotions and by flow id, are never
    /// given again.
    pub fn raise_generations(&self, dataset: &str, promoted: Option<i64>, flows: &BTreeMap<&str, i64>) -> Result<()> {
        self.write("record generations", |tx| {
            let sql = "UPDATE datasets SET last_generation = max(last_generation, ?2) WHERE dataset = ?1";
            execute(tx, sql, params![dataset, promoted.unwrap_or(0)])?;
            for (flow_id, generation) in flows {
                let sql = "UPDATE flows SET last_generation = max(last_generation, ?2) WHERE flow_id = ?1";
                execute(tx, sql, params![flow_id, generation])?;
            }
            Ok(())
        })
    }

    /// All datasets with a table, inactive ones too.
    pub fn datasets(&self) -> Result<Vec<Dataset>> {
        self.read("read datasets", |c| rows(c, &format!("{DATASETS} ORDER BY dataset"), [], read_dataset))
    }

    /// The dataset with this key.
    pub fn dataset(&self, dataset: &str) -> Result<Option<Dataset>> {
        self.read("read a dataset", |c| find(c, dataset))
    }

    /// Marks as inactive every dataset that isn't in `datasets`, the keys that the files define.
    /// Returns the names of those that were active before.
    pub fn deactivate_datasets_except(&self, datasets: &[&str]) -> Result<Vec<String>> {
        self.write("record datasets", |tx| {
            let mut deactivated = vec![];
            for dataset in rows(tx, DATASETS, [], read_dataset)? {
                if dataset.is_active && !datasets.contains(&dataset.dataset.as_str()) {
                    execute(tx, "UPDATE datasets SET is_active = 0 WHERE dataset = ?", [&dataset.dataset])?;
                    deactivated.push(dataset.name);
                }
            }
            Ok(deactivated)
        })
    }

    /// Records what a materialized view was just computed from: a refresh from the same is skipped.
    pub fn record_refresh(&self, dataset: &str, inputs_fingerprint: &str, now_us: i64) -> Result<()> {
        self.write("record a refresh", |tx| {
            let sql = "UPDATE datasets SET inputs_fingerprint = ?2, refreshed_us = ?3 WHERE dataset = ?1";
            expect_one(execute(tx, sql, params![dataset, inputs_fingerprint, now_us])?, dataset)
        })
    }

    /// Begins generation n+1 of the dataset and of all its flows; generation n stays in force.
    pub fn start_full_refresh(&self, dataset: &str, update_id: i64, now_us: i64) -> Result<FullRefresh> {
        self.write("start a full refresh", |tx| {
            if let Some(running) = get(tx, dataset)?.full_refresh {
                return Err(Error::Internal(format!(
                    "full refresh of `{dataset}`: generation {} is still being built",
                    running.generation
                )));
            }
            execute(
                tx,
                "UPDATE datasets SET last_generation = last_generation + 1, shadow_generation = last_generation + 1,
                        shadow_update_id = ?2, shadow_phase = ?3
                 WHERE dataset = ?1",
                params![dataset, update_id, FullRefreshPhase::Building],
            )?;
            for flow in flows_of(tx, dataset)? {
                let generation = next_generation(tx, &flow.flow_id)?;
                insert_checkpoint(tx, &flow.flow_id, generation, "full refresh", now_us)?;
                let sql = "UPDATE flows SET shadow_generation = ?2 WHERE flow_id = ?1";
                execute(tx, sql, params![flow.flow_id, generation])?;
            }
            full_refresh(tx, dataset)
        })
    }

    /// Says that the promoting Delta commit comes next; from here on the table tells whether it came.
    /// `definition` (JSON) is what the new generation was built with.
    pub fn begin_promotion(&self, dataset: &str, definition: &str) -> Result<FullRefresh> {
        self.write("begin a promotion", |tx| {
            full_refresh(tx, dataset)?;
            let sql = "UPDATE datasets SET shadow_phase = ?2, shadow_definition = ?3 WHERE dataset = ?1";
            execute(tx, sql, params![dataset, FullRefreshPhase::Promoting, definition])?;
            full_refresh(tx, dataset)
        })
    }

    /// Puts the new generation of the dataset and all its flows in force, and the definition it was built with,
    /// after the promoting commit.
    pub fn promote(&self, dataset: &str) -> Result<()> {
        self.write("promote a full refresh", |tx| {
            full_refresh(tx, dataset)?;
            for flow in flows_of(tx, dataset)? {
                if let Some(generation) = flow.shadow_generation {
                    let sql = "UPDATE flows SET generation = ?2, shadow_generation = NULL WHERE flow_id = ?1";
                    execute(tx, sql, params![flow.flow_id, generation])?;
                    forget_inputs(tx, &flow.flow_id, generation)?;
                    // If a power loss takes the promoting commit, the table holds the old generation: running
                    // the batches again there would double its rows, so they count as forgotten.
                    execute(
                        tx,
                        "UPDATE checkpoints SET forgotten_batch_id =
                            (SELECT max(batch_id) FROM micro_batches
                             WHERE flow_id = ?1 AND generation = ?2 AND state = 'committed')
                         WHERE flow_id = ?1 AND generation = ?2",
                        params![flow.flow_id, generation],
                    )?;
                }
            }
            execute(
                tx,
                "UPDATE datasets SET generation = shadow_generation, shadow_generation = NULL,
                        shadow_update_id = NULL, shadow_phase = NULL,
                        definition = coalesce(shadow_definition, definition), shadow_definition = NULL
                 WHERE dataset = ?",
                [dataset],
            )?;
            Ok(())
        })
    }

    /// Gives the generation being built up; the old one stays in force.
    pub fn abandon_full_refresh(&self, dataset: &str) -> Result<()> {
        self.write("abandon a full refresh", |tx| {
            full_refresh(tx, dataset)?;
            for flow in flows_of(tx, dataset)? {
                if flow.shadow_generation.is_some() {
                    execute(tx, "UPDATE flows SET shadow_generation = NULL WHERE flow_id = ?", [&flow.flow_id])?;
                    forget_inputs(tx, &flow.flow_id, flow.generation)?;
                }
            }
            execute(
                tx,
                "UPDATE datasets SET shadow_generation = NULL, shadow_update_id = NULL, shadow_phase = NULL,
                        shadow_definition = NULL
                 WHERE dataset = ?",
                [dataset],
            )?;
            Ok(())
        })
    }

    /// Removes the dataset, its flows and their checkpoints from the record (`flowbench drop`).
    pub fn forget_dataset(&self, dataset: &str) -> Result<()> {
        self.write("forget a dataset", |tx| {
            for flow in flows_of(tx, dataset)? {
                delete_flow(tx, &flow.flow_id)?;
            }
            execute(tx, "DELETE FROM datasets WHERE dataset = ?", [dataset])?;
            Ok(())
        })
    }
}

fn full_refresh(tx: &Connection, dataset: &str) -> Result<FullRefresh> {
    get(tx, dataset)?
        .full_refresh
        .ok_or_else(|| Error::Internal(format!("dataset `{dataset}` has no full refresh in progress")))
}

fn get(connection: &Connection, dataset: &str) -> Result<Dataset> {
    find(connection, dataset)?.ok_or_else(|| missing(dataset))
}

fn find(connection: &Connection, dataset: &str) -> Result<Option<Dataset>> {
    row(connection, &format!("{DATASETS} WHERE dataset = ?"), [dataset], read_dataset)
}

fn expect_one(changed: usize, dataset: &str) -> Result<()> {
    match changed {
        1 => Ok(()),
        _ => Err(missing(dataset)),
    }
}

fn missing(dataset: &str) -> Error {
    Error::user(
        "unknown-dataset",
        format!("no dataset `{dataset}` is recorded in state.db"),
        "`flowbench status` lists the datasets; a dataset is recorded when its table is made",
    )
}

fn read_dataset(row: &Row<'_>) -> rusqlite::Result<Dataset> {
    let kind: String = row.get(2)?;
    let full_refresh = match row.get(7)? {
        Some(generation) => Some(FullRefresh { generation, update_id: row.get(8)?, phase: row.get(9)? }),
        None => None,
    };
    Ok(Dataset {
        dataset: row.get(0)?,
        name: row.get(1)?,
        kind: parse_kind(&kind).ok_or_else(|| {
            rusqlite::Error::FromSqlConversionFailure(2, Type::Text, format!("unknown kind: `{kind}`").into())
        })?,
        table_path: row.get(3)?,
        generation: row.get(4)?,
        is_active: row.get(5)?,
        definition: row.get(6)?,
        full_refresh,
        inputs_fingerprint: row.get(10)?,
        refreshed_us: row.get(11)?,
        created_us: row.get(12)?,
    })
}

fn kind_text(kind: DatasetKind) -> &'static str {
    match kind {
        DatasetKind::StreamingTable => "streaming_table",
        DatasetKind::MaterializedView => "materialized_view",
        DatasetKind::View => "view",
        DatasetKind::TemporaryView => "temporary_view",
    }
}

fn parse_kind(text: &str) -> Option<DatasetKind> {
    use DatasetKind::*;
    [StreamingTable, MaterializedView, View, TemporaryView].into_iter().find(|kind| kind_text(*kind) == text)
}
