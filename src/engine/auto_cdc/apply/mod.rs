//! Events into a target and its side table. Everything is written beside what is in force, portion by portion, and put
//! in force by two commits: the side table's, which holds the target's as it is to be made, and that.
//!
//! - `mod.rs`: a batch from its beginning to its commit, events of feeds, floors
//! - `snapshot.rs`: the rows of a snapshot, and the keys that it lacks
//! - `write.rs`: what keys change, as rows of the target and a run of the side table

mod snapshot;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Fields, SchemaRef};
use pipeline::auto_cdc::{END_AT, START_AT, ScdType};
use pipeline::timeline::{Counts, Floor, Folded, Folder, Kind, Member, Origin, Shows};

pub(crate) use snapshot::SnapshotKeys;
use write::Written;

use super::columns::FlowColumns;
use super::encode::{KeyCodec, Layout, RowCodec};
use super::events::{EventReader, Events};
use super::portion::{Portion, on_threads};
use super::rows::Rows;
use super::side::{self, KeyRange, Retention, SideTable, Staged, View};
use super::spec::TargetSpec;
use super::stored::{Flows, Stored};
use super::target::ChangeTarget;
use crate::error::{Error, Result};
use crate::table::{Commit, DataFile, PreparedCommit, RowSet};

/// So many ties are shown of those that are counted.
const TIES_SHOWN: usize = 5;
/// As much of the side table is gone through at once.
const SCAN_BYTES: usize = 32 << 20;

/// What is applied, and as whose.
pub(crate) struct Batch {
    pub columns: FlowColumns,
    pub flow: side::Flow,
    /// Of its `txn` in the target.
    pub app_id: String,
    pub batch: i64,
    /// What is kept of each key.
    pub retention: Retention,
    /// So many threads may apply events at the same time.
    pub threads: usize,
}

/// What a batch did.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub counts: Counts,
    pub truncations: u64,
    /// Events that had the same key and sequence, in words.
    pub ties: Vec<Tie>,
    pub rows_added: u64,
    pub rows_removed: u64,
}

/// Two different events of one key and sequence.
#[derive(Debug)]
pub(crate) struct Tie {
    pub key: String,
    pub sequence: String,
    pub winner: Place,
    pub loser: Place,
}

/// Where an event came from.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub kind: Kind,
    /// The flow and batch that brought it; None: this one.
    pub earlier: Option<(String, u64)>,
    pub position: [u64; 3],
}

/// A batch that is being applied. Dropped before [`Application::commit`], it leaves nothing.
pub(crate) struct Application<'t> {
    target: &'t ChangeTarget,
    side: &'t SideTable,
    batch: &'t Batch,
    spec: TargetSpec,
    layout: Layout,
    key_codec: KeyCodec,
    sequence_codec: KeyCodec,
    rows: Rows,
    key_names: Vec<String>,
    value_names: Vec<String>,
    value_fields: Fields,
    schema: SchemaRef,
    shows: Shows,
    retention: Retention,
    flows: Flows,
    /// This flow's number.
    flow: u32,
    floor: Option<side::Floor>,
    /// What is in force, and the runs of earlier portions.
    view: Arc<View>,
    staged: Vec<Staged>,
    files: Vec<(u32, DataFile)>,
    deletes: BTreeMap<u32, RowSet>,
    truncation: Option<Vec<u8>>,
    applied: Applied,
}

fn internal(error: arrow::error::ArrowError) -> Error {
    Error::Internal(error.to_string())
}

impl<'t> Application<'t> {
    /// Begins a batch; `spec` is what the target was built with.
    ///
    /// # Errors
    /// `column-type-changed`.
    pub fn begin(target: &'t ChangeTarget, spec: Option<TargetSpec>, batch: &'t Batch) -> Result<Application<'t>> {
        let side = target.side()?;
        let columns = &batch.columns;
        let view = side.view();
        let manifest = view.manifest();
        let mut layout = manifest.layout.clone();
        layout.extend(&columns.values)?;
        let mut flows = manifest.flows.clone();
        let flow = flows.iter().position(|known| known.is_same(&batch.flow)).unwrap_or_else(|| {
            flows.push(batch.flow.clone());
            flows.len() - 1
        });
        let spec = match spec {
            Some(spec) => spec.grown(&columns.spec),
            None => columns.spec.clone(),
        };
        let is_history = spec.scd_type == ScdType::Two;
        let has = |names: &[String], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let rows = Rows::new(RowCodec::new(&layout), |name| !is_history || has(&spec.tracked, name));
        let schema = columns.table.schema();
        let is_value = |name: &str| {
            let is_interval = is_history && [START_AT, END_AT].contains(&name);
            !is_interval && !columns.keys.iter().any(|key| key.name == *name)
        };
        Ok(Application {
            key_codec: KeyCodec::new(columns.keys.iter().map(|key| key.data_type.clone()).collect())?,
            sequence_codec: KeyCodec::new(vec![spec.sequence.clone()])?,
            key_names: columns.keys.iter().map(|key| key.name.clone()).collect(),
            value_names: columns.values.iter().map(|value| value.name.clone()).collect(),
            value_fields: schema.fields().iter().filter(|field| is_value(field.name())).cloned().collect(),
            shows: if is_history { Shows::History } else { Shows::Latest },
            retention: manifest.retention(),
            flows: Flows::new(&flows, &layout),
            flow: flow as u32,
            floor: manifest.floors.last().cloned(),
            target,
            side,
            batch,
            spec,
            layout,
            rows,
            schema,
            view,
            staged: Vec::new(),
            files: Vec::new(),
            deletes: BTreeMap::new(),
            truncation: None,
            applied: Applied::default(),
        })
    }

    /// Reads events from the rows of the flow's query; `version` is that of all of them, if they are a snapshot's.
    pub fn reader<'r>(&'r self, version: Option<&'r ArrayRef>) -> EventReader<'r> {
        EventReader {
            keys: &self.key_names,
            key_codec: &self.key_codec,
            sequence_codec: &self.sequence_codec,
            values: &self.value_names,
            rows: &self.rows,
            silence: &self.batch.flow.silence,
            version,
        }
    }

    /// Applies a portion of the batch's events.
    pub fn apply(&mut self, events: &Events) -> Result<()> {
        self.truncation = self.truncation.take().max(events.truncation.clone());
        self.applied.truncations += events.truncations;
        if events.is_empty() {
            return Ok(());
        }
        let (class, order) = self.flows.rank(self.flow);
        let origin = self.origin();
        let portion = self.portion(events)?;
        let folder = self.folder();
        let (folded, ties) = portion.fold(&self.flows, |key, group, stored, folded, ties: &mut Vec<_>| {
            let members = group.iter().map(|event| events.member(*event, class, order, origin)).collect();
            folder.fold(key, stored, members, folded, &mut |loser, winner| {
                if ties.len() < TIES_SHOWN {
                    let place = |member: &Member| (member.kind, member.origin, member.rank.position);
                    ties.push((key, winner.sequence.to_vec(), place(winner), place(loser)));
                }
            });
        })?;
        let keys = portion.keys();
        for (key, sequence, winner, loser) in ties.into_iter().flatten().take(TIES_SHOWN - self.applied.ties.len()) {
            let tie = Tie {
                key: self.key_words(keys[key])?,
                sequence: words(&self.sequence_codec.decode([sequence.as_slice()])?)?,
                winner: self.place(winner, origin),
                loser: self.place(loser, origin),
            };
            self.applied.ties.push(tie);
        }
        let written = on_threads(folded, |part| self.write(&keys, part))?;
        self.take(written)
    }

    fn portion<'e>(&self, events: &'e Events) -> Result<Portion<'e>> {
        Portion::look_up(events, self.flows.rank(self.flow), &self.view, self.batch.threads)
    }

    fn origin(&self) -> Origin {
        Origin { flow: self.flow, batch: self.batch.batch as u64 }
    }

    fn folder(&self) -> Folder<'_> {
        Folder {
            shows: self.shows,
            keeps_newest_only: self.retention == Retention::Newest,
            rows: &self.rows,
            floor: self
                .floor
                .as_ref()
                .map(|floor| Floor { sequence: &floor.sequence, is_inclusive: floor.is_inclusive }),
        }
    }

    /// Raises the floor, if this one is higher, and takes away what it covers.
    fn raise_floor(&mut self, sequence: Vec<u8>, is_inclusive: bool) -> Result<()> {
        let is_as_high = |floor: &side::Floor| (&floor.sequence, floor.is_inclusive) >= (&sequence, is_inclusive);
        if self.floor.as_ref().is_some_and(is_as_high) {
            return Ok(());
        }
        let Origin { flow, batch } = self.origin();
        self.floor = Some(side::Floor { sequence, is_inclusive, raised_by: side::FloorBatch { flow, batch } });
        let view = self.view.clone();
        let mut scan = view.scan(&KeyRange::all())?;
        let mut stored = Stored::default();
        while let Some(members) = scan.next()? {
            stored.push(members[0].key, &members);
            if stored.byte_len() >= SCAN_BYTES {
                self.refold(&stored)?;
                stored = Stored::default();
            }
        }
        self.refold(&stored)
    }

    fn refold(&mut self, stored: &Stored) -> Result<()> {
        let mut folded = Folded::default();
        let folder = self.folder();
        let keys = stored.keys();
        for key in 0..keys.len() {
            folder.refold(key, stored.members(key, &self.flows), &mut folded);
        }
        let written = self.write(&keys, folded)?;
        self.take(vec![written])
    }

    /// Makes what was written a part of the batch; later portions see it.
    fn take(&mut self, written: Vec<Written>) -> Result<()> {
        for part in written {
            self.applied.counts += part.counts;
            self.applied.rows_added += part.rows_added;
            self.applied.rows_removed += part.removed.len() as u64;
            for gone in part.removed {
                self.deletes.entry(gone.file).or_default().insert(u64::from(gone.row));
            }
            self.files.extend(part.files);
            self.staged.extend(part.run);
        }
        self.view = Arc::new(self.side.view_with(&self.staged)?);
        Ok(())
    }

    fn place(&self, (kind, of, position): (Kind, Origin, [u64; 3]), this: Origin) -> Place {
        let name = || match of.flow == self.flow {
            true => self.batch.flow.name.clone(),
            false => self.view.manifest().flows[of.flow as usize].name.clone(),
        };
        Place { kind, earlier: (of != this).then(|| (name(), of.batch)), position }
    }

    /// A version's bytes.
    pub fn version_bytes(&self, version: &ArrayRef) -> Result<Vec<u8>> {
        Ok(self.sequence_codec.encode(std::slice::from_ref(version))?.get(0).to_vec())
    }

    /// A key for people: `id=7, region=eu`.
    fn key_words(&self, key: &[u8]) -> Result<String> {
        let values = self.key_codec.decode([key])?;
        let named = self
            .key_names
            .iter()
            .zip(&values)
            .map(|(name, value)| Ok(format!("{name}={}", words(std::slice::from_ref(value))?)));
        Ok(named.collect::<Result<Vec<_>>>()?.join(", "))
    }

    /// Puts the batch in force in the side table, with the target's commit pending; None: the target stays as it is.
    /// `version`: of the snapshot that the batch was.
    pub fn commit(mut self, version: Option<&[u8]>) -> Result<(Applied, Option<PreparedCommit>)> {
        if let Some(sequence) = self.truncation.take() {
            self.raise_floor(sequence, true)?;
        }
        let Application { target, side, batch, spec, layout, floor, view, staged, files, deletes, .. } = self;
        let number_of_files: BTreeMap<u32, String> =
            files.iter().map(|(number, file)| (*number, target.side_path(&file.log_path()))).collect();
        let deletes = target.row_deletes(deletes, |file| {
            number_of_files.get(&file).cloned().or_else(|| view.file_path(file).map(str::to_string))
        })?;
        let mut table = target.target.table.blocking_lock();
        table.refresh()?;
        let new_schema = (table.schema() != batch.columns.table.schema()).then(|| batch.columns.table.schema());
        let prepared = match files.is_empty() && deletes.is_empty() && new_schema.is_none() {
            true => None,
            false => Some(
                table.prepare(Commit {
                    adds: files.into_iter().map(|(_, file)| file).collect(),
                    deletes,
                    new_schema,
                    txns: vec![(batch.app_id.clone(), batch.batch)],
                    operation: "MERGE".to_string(),
                    parameters: [("flow", batch.flow.name.clone()), ("epochId", batch.batch.to_string())]
                        .into_iter()
                        .map(|(key, value)| (key.to_string(), value))
                        .collect(),
                    ..Commit::default()
                })?,
            ),
        };
        let made_over = target.numbered(table.version());
        drop(table);
        let pending = prepared.as_ref().map(serde_json::to_value).transpose();
        let pending = pending.map_err(|error| Error::Internal(format!("a commit that can't be kept: {error}")))?;
        side.commit(staged, |manifest| {
            manifest.spec = serde_json::to_value(&spec).expect("a spec is plain data");
            manifest.layout = layout;
            manifest.flow_number(&batch.flow);
            manifest.txns.insert(batch.app_id.clone(), batch.batch as u64);
            manifest.raise_floor(floor);
            // What was pending before is in the table by now, and so in the version.
            manifest.made_over = made_over;
            manifest.pending = pending;
            if let Some(version) = version {
                manifest.snapshot = Some(side::Snapshot { version: version.to_vec() });
            }
            Ok(())
        })?;
        Ok((self.applied, prepared))
    }
}

/// The first row's values, as queries show them.
fn words(columns: &[ArrayRef]) -> Result<String> {
    let named = columns.iter().enumerate().map(|(at, column)| (at.to_string(), column.slice(0, 1)));
    let row = RecordBatch::try_from_iter(named).map_err(internal)?;
    let cells = crate::preview::text_rows(&row)?.remove(0);
    Ok(cells.into_iter().map(|cell| cell.unwrap_or_else(|| "NULL".to_string())).collect::<Vec<_>>().join(", "))
}
