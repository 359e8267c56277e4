//! A target of AUTO CDC and its side table, opened for reading.

use std::path::PathBuf;

use arrow::datatypes::{Fields, SchemaRef};
use pipeline::auto_cdc::{END_AT, START_AT, ScdType};
use pipeline::report::Column;
use pipeline::scd::{KeyPart, key_words};
use pipeline::timeline::{Class, Cutover, Floor, Shows, Told};

use super::value;
use crate::auto_cdc::encode::{KeyCodec, RowCodec};
use crate::auto_cdc::rows::Rows;
use crate::auto_cdc::side::{self, MemberRef, View, Wanted};
use crate::auto_cdc::spec::TargetSpec;
use crate::auto_cdc::stored::{Flows, Stored};
use crate::auto_cdc::target::{commits_lost, side_folder};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lock::WriterLock;
use crate::preview::result_columns;
use crate::state::State;
use crate::table::{PreparedCommit, SharedTable, Table};

/// How often target and side table are looked at until they are of the same batch.
const TRIES: u32 = 100;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// A target, and its side table as of one manifest.
pub(super) struct ScdTable {
    pub label: String,
    pub view: View,
    pub spec: TargetSpec,
    pub key_names: Vec<String>,
    pub key_codec: KeyCodec,
    pub sequence_codec: KeyCodec,
    pub rows: Rows,
    /// The target's columns.
    pub schema: SchemaRef,
    /// Without keys and interval.
    pub value_fields: Fields,
    pub table: SharedTable,
    side_folder: PathBuf,
    flows: Flows,
}

/// A table that was asked for.
pub(crate) struct Named {
    pub label: String,
    pub folder: PathBuf,
    /// `DatasetName::key()`.
    key: String,
}

impl Engine {
    /// The table of this name, one of the files or one that was taken out of them.
    ///
    /// # Errors
    /// `unknown-dataset`; `not-auto-cdc` with the tables that are.
    pub(crate) fn scd_named(&self, name: &str, state: Option<&State>) -> Result<Named> {
        let graph = self.graph();
        if let Some(id) = graph.find_dataset(name) {
            let dataset = graph.dataset(id);
            let folder = self.table_folder(&dataset.name);
            let is_target = dataset.flows.iter().any(|flow| graph.flow(*flow).kind.is_change());
            if !is_target {
                return Err(self.not_auto_cdc(&dataset.label));
            }
            return Ok(Named { label: dataset.label.clone(), folder, key: dataset.name.key() });
        }
        let known = state.map(State::datasets).transpose()?.unwrap_or_default();
        let found = known.into_iter().find(|known| known.name.eq_ignore_ascii_case(name) || known.dataset == name);
        let Some(found) = found else { return Err(self.unknown_dataset(name)) };
        let folder = self.storage().join(&found.table_path);
        match folder.join(side::FOLDER).exists() {
            true => Ok(Named { label: found.name, folder, key: found.dataset }),
            false => Err(self.not_auto_cdc(&found.name)),
        }
    }

    fn not_auto_cdc(&self, label: &str) -> Error {
        let graph = self.graph();
        let targets =
            graph.datasets.iter().filter(|dataset| dataset.flows.iter().any(|flow| graph.flow(*flow).kind.is_change()));
        let targets: Vec<String> = targets.map(|dataset| format!("`{}`", dataset.label)).collect();
        Error::user(
            "not-auto-cdc",
            format!("`{label}` is no table of AUTO CDC: no flow applies changes to it by key"),
            match targets.is_empty() {
                true => "no table of this workspace is; see CREATE FLOW … AS AUTO CDC INTO …".to_string(),
                false => format!("tables that are: {}", targets.join(", ")),
            },
        )
    }

    /// Opens the target of this name.
    ///
    /// # Errors
    /// As [`Engine::scd_named`]; `nothing-stored` before the first batch; those of [`View::open`].
    pub(super) async fn scd_table(&self, name: &str) -> Result<ScdTable> {
        let state = self.state_for_reading()?;
        let named = self.scd_named(name, state.as_ref())?;
        self.scd_table_if_stored(&named, state.as_ref()).await?.ok_or_else(|| nothing_stored(&named.label))
    }

    /// The same; None before the first batch.
    pub(super) async fn scd_table_if_stored(&self, named: &Named, state: Option<&State>) -> Result<Option<ScdTable>> {
        let Some(state) = state else { return Ok(None) };
        let Some(recorded) = state.dataset(&named.key)? else { return Ok(None) };
        let Some(table) = self.tables().get(&named.folder)? else { return Ok(None) };
        let side_folder = side_folder(&named.folder, recorded.generation);
        let (view, schema) = {
            let mut table = table.lock().await;
            table.refresh()?;
            let view = match View::open(&side_folder) {
                Ok(view) => view,
                Err(error) if error.code() == "side-table-missing" && table.file_count() == 0 => return Ok(None),
                Err(error) => return Err(error),
            };
            (view, table.schema())
        };
        ScdTable::new(named.label.clone(), view, schema, table, side_folder).map(Some)
    }

    /// The same with side table and target as of the same batch, and the target's version: the side table is committed
    /// first, so the target may be a moment behind it.
    ///
    /// # Errors
    /// `update-interrupted`: the target's commit was not made and nobody is making it; `table-busy`.
    pub(super) async fn settled(&self, named: &Named) -> Result<Option<(ScdTable, i64)>> {
        for _ in 0..TRIES {
            let Some(before) = self.scd_table_if_stored(named, self.state_for_reading()?.as_ref()).await? else {
                return Ok(None);
            };
            let (is_there, version) = {
                let mut table = before.table.lock().await;
                table.refresh()?;
                (before.pending_is_there(&table)?, table.version())
            };
            if before.view.manifest().is_ahead_of(version) {
                return Err(commits_lost(&named.label, version, before.view.manifest()));
            }
            let after = self.scd_table_if_stored(named, self.state_for_reading()?.as_ref()).await?;
            if let Some(after) = after.filter(|after| is_there && after.is_same(&before)) {
                return Ok(Some((after, version)));
            }
            if !is_there && !WriterLock::is_held(self.storage()) {
                return Err(Error::user(
                    "update-interrupted",
                    format!("an update of `{}` was interrupted between its two commits", named.label),
                    "the next update makes the second one: flowbench run",
                ));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Error::External {
            code: "table-busy",
            what: format!("table `{}` changes faster than it can be read", named.label),
            help: "try again when the update is over".to_string(),
        })
    }

    /// As [`Engine::settled`], of the table of this name.
    ///
    /// # Errors
    /// Those of [`Engine::scd_table`] too.
    pub(super) async fn settled_scd_table(&self, name: &str) -> Result<(ScdTable, i64)> {
        let named = self.scd_named(name, self.state_for_reading()?.as_ref())?;
        self.settled(&named).await?.ok_or_else(|| nothing_stored(&named.label))
    }
}

fn nothing_stored(label: &str) -> Error {
    Error::user("nothing-stored", format!("nothing is stored of `{label}` yet"), "start an update: flowbench run")
}

impl ScdTable {
    fn new(label: String, view: View, schema: SchemaRef, table: SharedTable, side_folder: PathBuf) -> Result<ScdTable> {
        let manifest = view.manifest();
        let spec: TargetSpec = serde_json::from_value(manifest.spec.clone()).map_err(|error| {
            Error::user(
                "side-table-corrupted",
                format!("the side table of `{label}` doesn't tell what the target is: {error}"),
                format!("build the table anew: flowbench run --full-refresh {label}"),
            )
        })?;
        let key_names: Vec<String> = spec.keys.iter().map(|key| key.name.clone()).collect();
        let is_history = spec.scd_type == ScdType::Two;
        let is_value = |name: &str| {
            let is_interval = is_history && [START_AT, END_AT].contains(&name);
            !is_interval && !key_names.iter().any(|key| key.eq_ignore_ascii_case(name))
        };
        let tracked = |name: &str| !is_history || spec.tracked.iter().any(|known| known.eq_ignore_ascii_case(name));
        Ok(ScdTable {
            key_codec: KeyCodec::new(spec.keys.iter().map(|key| key.data_type.clone()).collect())?,
            sequence_codec: KeyCodec::new(vec![spec.sequence.clone()])?,
            rows: Rows::new(RowCodec::new(&manifest.layout), tracked),
            value_fields: schema.fields().iter().filter(|field| is_value(field.name())).cloned().collect(),
            flows: Flows::new(&manifest.flows, &manifest.layout),
            label,
            spec,
            key_names,
            schema,
            table,
            side_folder,
            view,
        })
    }

    fn is_same(&self, other: &ScdTable) -> bool {
        self.side_folder == other.side_folder && self.view.manifest().version() == other.view.manifest().version()
    }

    fn pending_is_there(&self, table: &Table) -> Result<bool> {
        let Some(pending) = &self.view.manifest().pending else { return Ok(true) };
        let prepared: PreparedCommit = serde_json::from_value(pending.clone()).map_err(|error| {
            Error::Internal(format!("the pending commit of table `{}` can't be read: {error}", self.label))
        })?;
        Ok(prepared.txns().iter().all(|(app, batch)| table.txn(app).is_some_and(|known| known >= *batch)))
    }

    /// The folder of its side table.
    pub fn side_folder(&self) -> &std::path::Path {
        &self.side_folder
    }

    /// Whether the older events of a key are there too.
    pub fn keeps_all(&self) -> bool {
        self.view.manifest().has_all()
    }

    pub fn shows(&self) -> Shows {
        match self.spec.scd_type {
            ScdType::One => Shows::Latest,
            ScdType::Two => Shows::History,
        }
    }

    pub fn floor(&self) -> Option<Floor<'_>> {
        let floor = self.view.manifest().floors.last()?;
        Some(Floor { sequence: &floor.sequence, is_inclusive: floor.is_inclusive })
    }

    /// The version of the newest snapshot, if the table is seeded with snapshots.
    pub fn seeded_state(&self) -> Option<&[u8]> {
        let is_seeded = self.flows.classes().any(|class| class == Class::OnceSnapshot);
        let snapshot = self.view.manifest().snapshot.as_ref().filter(|_| is_seeded);
        snapshot.map(|snapshot| snapshot.version.as_slice())
    }

    /// A key's cutover, given what its newest member says.
    pub fn cutover<'a>(&'a self, stored: Cutover<'a>) -> Cutover<'a> {
        stored.with_state(self.seeded_state())
    }

    /// The columns beside keys and interval.
    pub fn value_columns(&self) -> Vec<Column> {
        result_columns(&arrow::datatypes::Schema::new(self.value_fields.clone()))
    }

    /// The members of a key, copied; `members` newest first.
    pub fn stored(key: &[u8], members: &[MemberRef]) -> Stored {
        let mut stored = Stored::default();
        stored.push(key, members);
        stored
    }

    /// The timeline of the one key in `stored`.
    pub fn told<'s>(&'s self, stored: &'s Stored) -> Told<'s> {
        Told::of(self.shows(), &self.rows, self.floor(), stored.members(0, &self.flows))
    }

    /// All that is stored of a key.
    ///
    /// # Errors
    /// `unknown-key`.
    pub fn key(&self, key: &[u8]) -> Result<Stored> {
        let stored = Stored::look_up(&self.view, &[Wanted { key, first_sequence: &[] }])?;
        match stored.is_empty() {
            false => Ok(stored),
            true => Err(Error::user(
                "unknown-key",
                format!("`{}` has no event of key {}", self.label, key_words(&self.key_parts(key)?)),
                format!("list its keys: flowbench scd keys {}", self.label),
            )),
        }
    }

    /// A key's values.
    pub fn key_parts(&self, key: &[u8]) -> Result<Vec<KeyPart>> {
        Ok(value::key_parts(&self.key_codec, &self.key_names, [key])?.remove(0))
    }
}
