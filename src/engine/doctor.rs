//! Looks for what is not as it should be in the storage folder, and mends what can be mended without guessing.

use std::path::PathBuf;

use pipeline::definition::DatasetKind;
use pipeline::graph::FlowId;
use pipeline::number::counted;
use pipeline::report::{DoctorReport, Finding};
use pipeline::resume::{Facts, FoundTable, Refusal, Resume, resume};

use crate::auto_cdc::side::View;
use crate::auto_cdc::target::{commits_lost, side_folder};
use crate::clock::{iso, now_us};
use crate::engine::{Engine, table_path};
use crate::error::{Error, Result};
use crate::full_refresh;
use crate::generation::{flow_app_id, flows_in, promoted_in};
use crate::lock::WriterLock;
use crate::state::{Access, Completion, ImportCheckpoint, NewDataset, NewFlow, State};
use crate::table::Table;
use crate::update::FLOW_PROPERTY;

impl Engine {
    /// Checks state.db, the tables and how they fit; with `repair` mends what is safe to mend.
    pub async fn doctor(&self, repair: bool) -> Result<DoctorReport> {
        let mut findings = Vec::new();
        let tables = self.stored_tables(repair, &mut findings)?;
        if repair {
            self.set_damaged_state_aside(&mut findings)?;
        }
        if !State::exists(self.storage()) {
            if tables.is_empty() {
                return Ok(DoctorReport { findings });
            }
            self.lost_state(&tables, repair, &mut findings).await?;
            return Ok(DoctorReport { findings });
        }
        let access = if repair { Access::Rebuild } else { Access::ReadOnly };
        let _lock = match repair {
            true => Some(WriterLock::acquire(self.storage(), "doctor", &iso(now_us()))?),
            false => None,
        };
        let state = match State::open(self.storage(), access) {
            Ok(state) => std::sync::Arc::new(state),
            Err(error) => {
                findings.push(Finding {
                    code: error.code().to_string(),
                    message: error.to_string(),
                    help: error.help().or_else(|| {
                        Some(
                            "put a copy of state.db back, or let `flowbench doctor --repair` rebuild it from the tables"
                                .into(),
                        )
                    }),
                    is_mended: false,
                });
                return Ok(DoctorReport { findings });
            }
        };
        for problem in state.check()? {
            findings.push(finding("state-damaged", problem, "put a copy of state.db back"));
        }
        self.leftovers(&state, repair, &mut findings).await?;
        self.older_state(&state, &tables, repair, &mut findings)?;
        self.lost_checkpoints(&state, &mut findings)?;
        self.unknown_tables(&state, &tables, &mut findings)?;
        self.gone_tables(&state, &tables, &mut findings)?;
        self.side_tables(&state, &tables, &mut findings)?;
        if repair {
            self.remove_orphans(&tables, &mut findings).await?;
        }
        Ok(DoctorReport { findings })
    }

    /// Moves a state.db that SQLite can't read, or that is empty, out of the way, so that a new one is made from
    /// what the tables tell.
    fn set_damaged_state_aside(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let path = self.storage().join(crate::state::FILE_NAME);
        let Ok(found) = std::fs::metadata(&path) else { return Ok(()) };
        // Its schema is read with the first question.
        let is_damaged = match State::open(self.storage(), Access::ReadOnly).and_then(|state| state.check()) {
            Err(error) => error.code() == "state-damaged" || found.len() == 0,
            Ok(_) => false,
        };
        if !is_damaged || WriterLock::is_held(self.storage()) {
            return Ok(());
        }
        let aside = path.with_extension(format!("db.damaged-{}", now_us()));
        std::fs::rename(&path, &aside).map_err(|e| Error::io("move aside", &path, e))?;
        for suffix in ["-wal", "-shm"] {
            // They belong to the damaged file and mean nothing without it.
            let _ = std::fs::remove_file(self.storage().join(format!("{}{suffix}", crate::state::FILE_NAME)));
        }
        findings.push(Finding {
            code: "state-damaged".to_string(),
            message: format!("state.db was damaged; it is kept as {}", aside.display()),
            help: None,
            is_mended: true,
        });
        Ok(())
    }

    /// Every table below the storage folder; those that can't be read are findings.
    fn stored_tables(&self, repair: bool, findings: &mut Vec<Finding>) -> Result<Vec<(PathBuf, Table)>> {
        let mut tables = Vec::new();
        let mut open = vec![self.storage().join("tables")];
        while let Some(folder) = open.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("read folder", &folder, error)),
            };
            let entries: std::io::Result<Vec<_>> = entries.collect();
            for entry in entries.map_err(|e| Error::io("read folder", &folder, e))? {
                let path = entry.path();
                if !path.is_dir() {
                    continue;
                }
                if !path.join("_delta_log").is_dir() {
                    open.push(path);
                    continue;
                }
                if repair
                    && !WriterLock::is_held(self.storage())
                    && let Some(version) = Table::remove_empty_tail(&path)?
                {
                    findings.push(Finding {
                        code: "table-log-corrupted".to_string(),
                        message: format!("`{}`: the empty log entry of version {version} was removed", path.display()),
                        help: Some("the next run makes that commit again: flowbench run".to_string()),
                        is_mended: true,
                    });
                }
                match Table::open(&path) {
                    Ok(Some(table)) => {
                        self.check_files_of(&table, findings)?;
                        tables.push((path, table));
                    }
                    Ok(None) => {}
                    Err(error) => findings.push(finding(
                        error.code(),
                        error.to_string(),
                        "restore the folder from a copy, or remove it and run --full-refresh",
                    )),
                }
            }
        }
        tables.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(tables)
    }

    fn check_files_of(&self, table: &Table, findings: &mut Vec<Finding>) -> Result<()> {
        let missing = table.missing_files();
        if !missing.is_empty() {
            findings.push(finding(
                "data-file-missing",
                format!(
                    "table `{}`: {} data files are gone or damaged, such as {}",
                    table.name(),
                    missing.len(),
                    missing[0]
                ),
                "restore them from a copy, or build the table anew: flowbench run --full-refresh",
            ));
        }
        for (file, why) in table.unreadable_files().into_iter().filter(|(file, _)| !missing.contains(file)) {
            findings.push(finding(
                "data-file-damaged",
                format!("table `{}`: data file {file} can't be read: {why}", table.name()),
                "restore it from a copy, or build the table anew: flowbench run --full-refresh",
            ));
        }
        Ok(())
    }

    /// Updates and full refreshes that a dead process left.
    async fn leftovers(&self, state: &std::sync::Arc<State>, repair: bool, findings: &mut Vec<Finding>) -> Result<()> {
        if !repair && WriterLock::is_held(self.storage()) {
            return Ok(());
        }
        for dataset in state.datasets()? {
            if dataset.full_refresh.is_some() {
                findings.push(Finding {
                    code: "full-refresh-interrupted".to_string(),
                    message: format!(
                        "a full refresh of `{}` was interrupted; the rows in force are whole",
                        dataset.name
                    ),
                    help: Some("the next run, or doctor --repair, ends it".to_string()),
                    is_mended: repair,
                });
            }
        }
        if repair {
            full_refresh::finish_interrupted(self, state).await?;
            for number in state.fail_interrupted_updates(now_us())? {
                findings.push(Finding {
                    code: "update-interrupted".to_string(),
                    message: format!("update {number} ended with its process; it is recorded as FAILED"),
                    help: None,
                    is_mended: true,
                });
            }
        }
        Ok(())
    }

    fn unknown_tables(&self, state: &State, tables: &[(PathBuf, Table)], findings: &mut Vec<Finding>) -> Result<()> {
        let known: Vec<PathBuf> =
            state.datasets()?.iter().map(|dataset| self.storage().join(&dataset.table_path)).collect();
        for (path, table) in tables.iter().filter(|(path, _)| !known.contains(path)) {
            findings.push(finding(
                "unknown-table",
                format!("state.db knows nothing of table `{}` in {}", table.name(), path.display()),
                "if its dataset is in the files, `flowbench run --full-refresh` of it builds it anew; else remove the folder",
            ));
        }
        Ok(())
    }

    fn gone_tables(&self, state: &State, tables: &[(PathBuf, Table)], findings: &mut Vec<Finding>) -> Result<()> {
        for dataset in state.datasets()? {
            let folder = self.storage().join(&dataset.table_path);
            // One that can't be read is a finding already.
            if !tables.iter().any(|(path, _)| *path == folder) && matches!(Table::open(&folder), Ok(None)) {
                findings.push(finding(
                    "table-gone",
                    format!("the table of `{}` is gone: {}", dataset.name, folder.display()),
                    &format!("put the folder back, or build it anew: flowbench run --full-refresh {}", dataset.name),
                ));
            }
        }
        Ok(())
    }

    /// Reads every side table of AUTO CDC through; those that flows have written to and that are gone are findings too.
    fn side_tables(&self, state: &State, tables: &[(PathBuf, Table)], findings: &mut Vec<Finding>) -> Result<()> {
        let flows = state.flows()?;
        for dataset in state.datasets()? {
            let is_changed = |flow: &&crate::state::Flow| flow.dataset == dataset.dataset && flow.kind.is_change();
            let has_applied = |flow: &crate::state::Flow| {
                state.known_batches(&flow.flow_id, flow.generation).is_ok_and(|known| known.committed.is_some())
            };
            let is_needed = flows.iter().filter(is_changed).any(has_applied);
            let table_folder = self.storage().join(&dataset.table_path);
            let folder = side_folder(&table_folder, dataset.generation);
            match View::open(&folder).and_then(|view| view.check().map(|()| view)) {
                Ok(view) => {
                    let table = tables.iter().find(|(path, _)| *path == table_folder);
                    let version = table.map(|(_, table)| table.version());
                    if let Some(version) = version.filter(|version| view.manifest().is_ahead_of(*version)) {
                        let error = commits_lost(&dataset.name, version, view.manifest());
                        findings.push(finding(error.code(), error.to_string(), &error.help().unwrap_or_default()));
                    }
                }
                Err(error) if error.code() == "side-table-missing" && !is_needed => {}
                Err(error) => findings.push(finding(
                    error.code(),
                    format!("table `{}`: {error}", dataset.name),
                    &format!(
                        "restore its folder from a copy, or build the table anew: flowbench run --full-refresh {}",
                        dataset.name
                    ),
                )),
            }
        }
        Ok(())
    }

    async fn remove_orphans(&self, tables: &[(PathBuf, Table)], findings: &mut Vec<Finding>) -> Result<()> {
        for (path, table) in tables {
            let Some(shared) = self.tables().get(path)? else { continue };
            let removed = crate::maintenance::vacuum(&shared).await?;
            if removed > 0 {
                findings.push(Finding {
                    code: "unreferenced-files".to_string(),
                    message: format!(
                        "table `{}`: removed {} no version needs",
                        table.name(),
                        counted(removed as u64, "file that", "files that")
                    ),
                    help: None,
                    is_mended: true,
                });
            }
        }
        Ok(())
    }

    /// state.db is gone and tables exist: takes the checkpoints over that the tables' `txn` prove complete.
    ///
    /// A once flow that is in the table is done. A stream's place in its source is not in the table: its rows
    /// are, so it would read everything twice; it is left for the person to decide.
    async fn lost_state(&self, tables: &[(PathBuf, Table)], repair: bool, findings: &mut Vec<Finding>) -> Result<()> {
        if !repair {
            findings.push(finding(
                "state-lost",
                format!("state.db is gone and {}", counted(tables.len() as u64, "table exists", "tables exist")),
                "put state.db back from a copy, or take over what the tables tell: flowbench doctor --repair",
            ));
            return Ok(());
        }
        let _lock = WriterLock::acquire(self.storage(), "doctor", &iso(now_us()))?;
        let state = State::open(self.storage(), Access::Rebuild)?;
        let graph = self.graph();
        for id in graph.dataset_ids() {
            let dataset = graph.dataset(id);
            let folder = self.table_folder(&dataset.name);
            let Some((_, table)) = tables.iter().find(|(path, _)| *path == folder) else { continue };
            let columns = crate::columns::Columns::grown(
                crate::data_type::schema_from_arrow(&table.schema()).map_err(Error::Internal)?,
            );
            let definition = crate::analysis::applied(dataset, &columns);
            state.put_dataset(
                &NewDataset {
                    dataset: &dataset.name.key(),
                    name: &dataset.label,
                    kind: dataset.kind(),
                    table_path: &table_path(&dataset.name),
                    definition: &serde_json::to_string(&definition).expect("a definition is plain data"),
                },
                now_us(),
            )?;
            if let Some(generation) = promoted_in(table, &dataset.name.key()) {
                state.import_generation(&dataset.name.key(), generation)?;
            }
            if dataset.kind() == DatasetKind::StreamingTable {
                for flow in &dataset.flows {
                    self.take_over(&state, table, *flow, findings)?;
                }
            }
        }
        self.lost_checkpoints(&state, findings)
    }

    /// Streams whose table tells how many batches they wrote, while nothing tells what those read: a state.db that was
    /// rebuilt. An update refuses them.
    fn lost_checkpoints(&self, state: &State, findings: &mut Vec<Finding>) -> Result<()> {
        let graph = self.graph();
        for id in graph.flow_ids() {
            let flow = graph.flow(id);
            let dataset = graph.dataset(flow.target);
            if !flow.kind.is_incremental() {
                continue;
            }
            let Some(record) = state.flow(&dataset.name.key(), &flow.name)? else { continue };
            let known = state.known_batches(&record.flow_id, record.generation)?;
            let Some(batch) = known.committed else { continue };
            if !state.sources(&record.flow_id, record.generation)?.is_empty() {
                continue;
            }
            findings.push(finding(
                "checkpoint-lost",
                format!(
                    "flow `{}` has written {} to `{}`; which of its input that was is lost with state.db",
                    flow.name,
                    counted(batch as u64 + 1, "batch", "batches"),
                    dataset.label
                ),
                &format!(
                    "build the table anew: flowbench run --full-refresh {}; or bound the flow's start to what is new \
                     (modifiedAfter, STARTINGVERSION) and start a new checkpoint: flowbench reset {}",
                    dataset.label, flow.name
                ),
            ));
        }
        Ok(())
    }

    /// Tables that hold batches which state.db never planned: it is an older copy.
    fn older_state(
        &self,
        state: &State,
        tables: &[(PathBuf, Table)],
        repair: bool,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        // Between commit and mark a running update looks the same.
        if !repair && WriterLock::is_held(self.storage()) {
            return Ok(());
        }
        let graph = self.graph();
        for id in graph.flow_ids() {
            let flow = graph.flow(id);
            let dataset = graph.dataset(flow.target);
            let folder = self.table_folder(&dataset.name);
            let Some((_, table)) = tables.iter().find(|(path, _)| *path == folder) else { continue };
            let Some(record) = state.flow(&dataset.name.key(), &flow.name)? else { continue };
            let known = state.known_batches(&record.flow_id, record.generation)?;
            let txn = table.txn(&format!("{}:{}", record.flow_id, record.generation));
            let found = FoundTable::Exists { version: table.version(), txn };
            let Resume::Refuse(refusal @ Refusal::StateBehind { .. }) = resume(&Facts { known, table: found }) else {
                continue;
            };
            match repair {
                true => self.take_over(state, table, id, findings)?,
                false => findings.push(finding(
                    refusal.code(),
                    format!("flow `{}` into `{}`: {}", flow.name, dataset.label, refusal.reason()),
                    refusal.help(),
                )),
            }
        }
        Ok(())
    }

    /// Records what a table proves of a flow: a once flow that is in it is done. Of a stream only the number of
    /// its last batch is known; it will not run before someone has decided how it starts again (`lost_checkpoints`).
    fn take_over(&self, state: &State, table: &Table, id: FlowId, findings: &mut Vec<Finding>) -> Result<()> {
        let graph = self.graph();
        let flow = graph.flow(id);
        let dataset = graph.dataset(flow.target);
        let Some((flow_id, generation, batch)) = checkpoint_in_table(table, &flow.name) else { return Ok(()) };
        let new = NewFlow { flow_id: &flow_id, name: &flow.name, dataset: &dataset.name.key(), kind: flow.kind.into() };
        let completion = flow.kind.is_once().then(|| Completion {
            done_us: now_us(),
            update_id: None,
            rows: 0,
            definition_hash: crate::history::definition_hash(&flow.reading.query.fingerprint_text),
        });
        let is_once = completion.is_some();
        // A stream's checkpoint without its sources doesn't run by itself: that would read everything again.
        let import = ImportCheckpoint { flow_id: &flow_id, generation, batch_id: batch, completion };
        state.import_checkpoint(&import, &new, now_us())?;
        if is_once {
            findings.push(Finding {
                code: "checkpoint-taken-over".to_string(),
                message: format!("once flow `{}` is in table `{}`: it is done", flow.name, dataset.label),
                help: None,
                is_mended: true,
            });
        }
        Ok(())
    }
}

/// A flow's id, generation and last batch as its table has them: the table's properties tie a flow's name to
/// its id, and the id with the generation is the application id of its `txn`.
fn checkpoint_in_table(table: &Table, flow: &str) -> Option<(String, i64, i64)> {
    let properties = table.properties();
    let flow_id = properties
        .iter()
        .filter(|(_, name)| name.eq_ignore_ascii_case(flow))
        .find_map(|(key, _)| key.strip_prefix(FLOW_PROPERTY))?;
    let generation = *flows_in(table).get(flow_id)?;
    let batch = table.txn(&flow_app_id(flow_id, generation))?;
    Some((flow_id.to_string(), generation, batch))
}

fn finding(code: &str, message: impl Into<String>, help: &str) -> Finding {
    Finding { code: code.to_string(), message: message.into(), help: Some(help.to_string()), is_mended: false }
}
