//! Events into a target and its side table. Everything is written beside what is in force, portion by portion, and put
//! in force by two commits: the side table's, which holds the target's as it is to be made, and that.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{Fields, Schema, SchemaRef};
use pipeline::auto_cdc::{END_AT, START_AT, ScdType};
use pipeline::timeline::{
    AddedRow, Class, Counts, Cutover, Floor, Folded, Folder, Kind, Location, Member, Origin, Rank, Shows,
};

use super::columns::FlowColumns;
use super::encode::{KeyCodec, Layout, RowCodec};
use super::events::{EventReader, Events, Silence};
use super::portion::{Portion, on_threads};
use super::rows::Rows;
use super::side::{self, KeyRange, MemberRef, Retention, SideTable, Staged, View};
use super::spec::TargetSpec;
use super::stored::Stored;
use super::target::ChangeTarget;
use crate::error::{Error, Result};
use crate::table::{Commit, DataFile, DataWriter, Located, PreparedCommit, RowSet, SyncAt, WriterOptions};

/// So many ties are shown of those that are counted.
const TIES_SHOWN: usize = 5;
/// Rows that are decoded at once.
const ROWS_AT_ONCE: usize = 16 * 1024;
/// As much of the side table is gone through at once.
const SCAN_BYTES: usize = 32 << 20;

/// What is applied, and as whose.
pub(crate) struct Batch {
    pub columns: FlowColumns,
    pub flow: side::Flow,
    /// Of its `txn` in the target.
    pub app_id: String,
    pub batch: i64,
    pub silence: SilenceRule,
    /// So many threads may apply events at the same time.
    pub threads: usize,
}

impl Batch {
    /// What has to be kept of each key to apply it: where events may be silent about columns, or history shows, all.
    pub fn retention(&self) -> Retention {
        match (self.columns.spec.scd_type, &self.silence) {
            (ScdType::One, SilenceRule::None) => Retention::Newest,
            _ => Retention::All,
        }
    }
}

/// What events of a flow say nothing about; see [`Silence`].
pub(crate) enum SilenceRule {
    None,
    Nulls,
    Unlisted(String),
}

/// The rows of a snapshot that have been applied, by their keys.
#[derive(Debug, Default)]
pub(crate) struct SnapshotKeys {
    pub rows: u64,
    /// Rows whose key another row has.
    pub duplicates: u64,
    /// A few of their keys, for people.
    pub duplicate_keys: Vec<String>,
    /// Keys of each portion, in order, that the side table can't tell the snapshot has: of a history all, else those
    /// that have a newer event.
    portions: Vec<Vec<Box<[u8]>>>,
}

impl SnapshotKeys {
    /// Whether an earlier portion had the key, as far as `portions` tell.
    fn has(&self, key: &[u8]) -> bool {
        self.portions.iter().any(|portion| portion.binary_search_by(|known| (**known).cmp(key)).is_ok())
    }

    /// Asks for keys in ascending order.
    fn cursor(&self) -> impl FnMut(&[u8]) -> bool {
        let mut rest: Vec<&[Box<[u8]>]> = self.portions.iter().map(Vec::as_slice).collect();
        move |key: &[u8]| {
            rest.iter_mut().any(|portion| {
                let passed = portion.partition_point(|known| **known < *key);
                *portion = &portion[passed..];
                portion.first().is_some_and(|known| **known == *key)
            })
        }
    }
}

/// What there is to say of some keys of a snapshot, by their numbers.
#[derive(Default)]
struct SnapshotNotes {
    /// With how many rows too many.
    duplicates: Vec<(usize, usize)>,
    /// See [`SnapshotKeys::portions`].
    untold: Vec<usize>,
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

/// What some keys of a portion came to, written beside what is in force.
struct Written {
    counts: Counts,
    rows_added: u64,
    removed: Vec<Location>,
    files: Vec<(u32, DataFile)>,
    run: Option<Staged>,
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
    /// By number of the flow: its class, and its place among the names.
    flows: Vec<(Class, u32)>,
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

/// The class of a flow's events, as ranks have it.
pub(crate) fn class_number(class: Class) -> u8 {
    match class {
        Class::Snapshot => 0,
        Class::Once => 1,
        Class::Live => 2,
        Class::OnceSnapshot => 3,
    }
}

/// The class of a number.
pub(crate) fn class(number: u8) -> Class {
    match number {
        0 => Class::Snapshot,
        1 => Class::Once,
        3 => Class::OnceSnapshot,
        _ => Class::Live,
    }
}

/// By number of a flow: its class, and its place among the names of all flows of the target.
pub(crate) fn flow_orders(flows: &[side::Flow]) -> Vec<(Class, u32)> {
    let mut names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let order = |name: &str| names.partition_point(|known| *known < name) as u32;
    flows.iter().map(|flow| (class(flow.class), order(&flow.name))).collect()
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
        let is_this = |known: &side::Flow| known.id == batch.flow.id && known.generation == batch.flow.generation;
        let flow = flows.iter().position(is_this).unwrap_or_else(|| {
            flows.push(batch.flow.clone());
            flows.len() - 1
        });
        let spec = match spec {
            Some(spec) => spec.grown(&columns.spec),
            None => columns.spec.clone(),
        };
        let is_history = spec.scd_type == ScdType::Two;
        let has = |names: &[String], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let rows = Rows::new(
            RowCodec::new(&layout),
            |name| !is_history || has(&spec.tracked, name),
            |name| has(&columns.ignored, name),
        );
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
            flows: flow_orders(&flows),
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
            silence: match &self.batch.silence {
                SilenceRule::None => Silence::None,
                SilenceRule::Nulls => Silence::Nulls(&self.batch.columns.ignored),
                SilenceRule::Unlisted(column) => Silence::Unlisted(column),
            },
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
        let (class, order) = self.flows[self.flow as usize];
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
        Portion::look_up(events, self.flows[self.flow as usize], &self.view, self.batch.threads)
    }

    fn origin(&self) -> Origin {
        Origin { flow: self.flow, batch: self.batch.batch as u64 }
    }

    /// Applies a portion of a snapshot's rows. Of a history only what changed is an event. `seen` notes its keys.
    pub fn apply_snapshot(&mut self, events: &Events, seen: &mut SnapshotKeys) -> Result<()> {
        let (class, order) = self.flows[self.flow as usize];
        let origin = self.origin();
        let portion = self.portion(events)?;
        let folder = self.folder();
        let keys = portion.keys();
        let before = &*seen;
        let (folded, notes) = portion.fold(&self.flows, |key, group, stored, folded, notes: &mut SnapshotNotes| {
            let event = events.member(group[0], class, order, origin);
            let newest = stored.last();
            if self.shows == Shows::History || newest.is_some_and(|newest| newest.sequence >= event.sequence) {
                notes.untold.push(key);
            }
            let is_again = newest.is_some_and(|newest| newest.origin == origin) || before.has(keys[key]);
            if is_again || group.len() > 1 {
                notes.duplicates.push((key, group.len() + usize::from(is_again) - 1));
                return;
            }
            let is_unchanged = |newest: &Member<'_>| {
                newest.kind == Kind::Upsert && self.rows.codec.equal(&newest.values, &event.values)
            };
            if self.shows == Shows::History && newest.is_some_and(is_unchanged) {
                return;
            }
            folder.fold(key, stored, vec![event], folded, &mut |_, _| {});
        })?;
        for (key, count) in notes.iter().flat_map(|notes| &notes.duplicates) {
            seen.duplicates += *count as u64;
            if seen.duplicate_keys.len() < TIES_SHOWN {
                seen.duplicate_keys.push(self.key_words(keys[*key])?);
            }
        }
        let untold = notes.iter().flat_map(|notes| &notes.untold);
        seen.portions.push(untold.map(|key| keys[*key].to_vec().into_boxed_slice()).collect());
        seen.rows += events.len() as u64;
        let written = on_threads(folded, |part| self.write(&keys, part))?;
        self.take(written)
    }

    /// Deletes, at the snapshot's version, every key that shows and that the snapshot doesn't have. Returns how many,
    /// and of how many; `rows`: those of the target before the snapshot.
    pub fn delete_absent(&mut self, version: &[u8], seen: &SnapshotKeys, rows: u64) -> Result<(u64, u64)> {
        let before = self.applied.rows_removed;
        if self.shows == Shows::Latest {
            self.raise_floor(version.to_vec(), false)?;
            return Ok((self.applied.rows_removed - before, rows));
        }
        let (mut absent, mut keys) = (0, 0);
        let view = self.view.clone();
        let mut scan = view.scan(&KeyRange::all())?;
        let mut has = seen.cursor();
        let mut stored = Stored::default();
        while let Some(members) = scan.next()? {
            let is_own =
                |member: &&MemberRef<'_>| member.rank.flow == self.flow && member.batch_id == self.batch.batch as u64;
            let newest_before = members.iter().find(|member| !is_own(member));
            keys += u64::from(newest_before.is_some_and(|member| member.kind == side::Kind::Upsert));
            let newest = &members[..1];
            if newest[0].kind == side::Kind::Upsert && !has(newest[0].key) {
                stored.push(newest[0].key, newest);
                absent += 1;
            }
            if stored.byte_len() >= SCAN_BYTES {
                self.delete(&stored, version)?;
                stored = Stored::default();
            }
        }
        self.delete(&stored, version)?;
        Ok((absent, keys))
    }

    fn delete(&mut self, stored: &Stored, version: &[u8]) -> Result<()> {
        let (class, order) = self.flows[self.flow as usize];
        let delete = Member {
            sequence: version,
            kind: Kind::Delete,
            rank: Rank { class, flow: order, position: [0; 3] },
            origin: self.origin(),
            authored: None,
            values: Cow::Borrowed(&[]),
            run_start: None,
            location: None,
            cutover: Cutover::default(),
        };
        let keys = stored.keys();
        let mut folded = Folded::default();
        let folder = self.folder();
        for key in 0..keys.len() {
            folder.fold(key, stored.members(key, &self.flows), vec![delete.clone()], &mut folded, &mut |_, _| {});
        }
        let written = self.write(&keys, folded)?;
        self.take(vec![written])
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
        self.floor = Some(side::Floor { sequence, is_inclusive, raised_by: Some(side::FloorBatch { flow, batch }) });
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

    /// Writes what some keys change, beside what is in force: rows of the target, and a run.
    fn write(&self, keys: &[&[u8]], mut folded: Folded<'_>) -> Result<Written> {
        let is_one_file =
            self.target.target.partition_by.is_empty() && (1..=ROWS_AT_ONCE).contains(&folded.added.len());
        let (run, files) = if is_one_file {
            // Where its rows will be is known before it is written, so the run needn't wait for it.
            let file = self.side.allocate_files(1);
            locate(&mut folded, (0..).map(|row| (file, row)))?;
            std::thread::scope(|scope| {
                let rows = scope.spawn(|| self.write_rows(keys, &folded));
                let mut files = Vec::new();
                let run = self.write_run(keys, &folded, || {
                    let panicked = |_| Err(Error::Internal("a thread that writes rows panicked".to_string()));
                    let located = rows.join().unwrap_or_else(panicked)?;
                    if !located.locations().eq((0..folded.added.len() as u64).map(|row| (0, row))) {
                        return Err(Error::Internal("rows are not where they were to be".to_string()));
                    }
                    files = (file..).zip(located.files).collect();
                    Ok(self.side_paths(&files))
                })?;
                Ok::<_, Error>((run, files))
            })?
        } else {
            let located = self.write_rows(keys, &folded)?;
            let first = self.side.allocate_files(located.files.len() as u32);
            locate(&mut folded, located.locations().map(|(file, row)| (first + file as u32, row)))?;
            let files: Vec<_> = (first..).zip(located.files).collect();
            (self.write_run(keys, &folded, || Ok(self.side_paths(&files)))?, files)
        };
        Ok(Written {
            run,
            files,
            rows_added: folded.added.len() as u64,
            removed: folded.removed,
            counts: folded.counts,
        })
    }

    fn write_run(
        &self,
        keys: &[&[u8]],
        folded: &Folded<'_>,
        new_files: impl FnOnce() -> Result<Vec<(u32, String)>>,
    ) -> Result<Option<Staged>> {
        let newest_first = folded.members.chunk_by(|a, b| a.0 == b.0).flat_map(|of_key| of_key.iter().rev());
        let members = newest_first.map(|(key, member)| stored_form(keys[*key], member));
        self.side.write_run(members, folded.members.len(), new_files)
    }

    /// The batch's files and these, as the side table has them.
    fn side_paths(&self, files: &[(u32, DataFile)]) -> Vec<(u32, String)> {
        let all = self.files.iter().chain(files);
        all.map(|(number, file)| (*number, self.target.side_path(&file.log_path()))).collect()
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

    /// Writes the added rows.
    fn write_rows(&self, keys: &[&[u8]], folded: &Folded<'_>) -> Result<Located> {
        let options = WriterOptions { locate_rows: true, sync: SyncAt::Prepare, ..WriterOptions::default() };
        let target = &self.target.target;
        let mut writer = DataWriter::new(&target.folder, None, self.schema.clone(), &target.partition_by, options)?;
        for rows in folded.added.chunks(ROWS_AT_ONCE) {
            writer.write(&self.rows_of(keys, folded, rows)?)?;
        }
        writer.finish_located()
    }

    /// Rows of the target as columns.
    fn rows_of(&self, keys: &[&[u8]], folded: &Folded<'_>, rows: &[AddedRow<'_>]) -> Result<RecordBatch> {
        let members: Vec<&(usize, Member<'_>)> = rows.iter().map(|row| &folded.members[row.member]).collect();
        let key_columns = self.key_codec.decode(members.iter().map(|(key, _)| keys[*key]))?;
        let values: Vec<&[u8]> = members.iter().map(|(_, member)| &member.values[..]).collect();
        let values = self.rows.codec.decode(&values, &self.value_fields)?;
        let interval = match self.shows {
            Shows::Latest => None,
            Shows::History => {
                let starts = self.sequence_codec.decode(rows.iter().map(|row| row.start))?.remove(0);
                Some((starts, self.ends(rows)?))
            }
        };
        let column = |name: &str| {
            let key = self.key_names.iter().position(|key| key == name).map(|at| key_columns[at].clone());
            let value = || Some(values[self.value_fields.iter().position(|field| field.name() == name)?].clone());
            let interval = interval.as_ref().and_then(|(starts, ends)| match name {
                START_AT => Some(starts.clone()),
                END_AT => Some(ends.clone()),
                _ => None,
            });
            key.or(interval).or_else(value)
        };
        let columns = self.schema.fields().iter().map(|field| {
            column(field.name()).ok_or_else(|| Error::Internal(format!("nothing gives column `{}`", field.name())))
        });
        // The writer says which column has a NULL and may not.
        RecordBatch::try_new(nullable(&self.schema), columns.collect::<Result<_>>()?).map_err(internal)
    }

    /// `__END_AT`: NULL where the row is open.
    fn ends(&self, rows: &[AddedRow<'_>]) -> Result<ArrayRef> {
        let ends = self.sequence_codec.decode(rows.iter().filter_map(|row| row.end))?.remove(0);
        let mut next = 0..ends.len() as u32;
        let places: UInt32Array = rows.iter().map(|row| row.end.and_then(|_| next.next())).collect();
        take(&ends, &places, None).map_err(internal)
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
        drop(table);
        let pending = prepared.as_ref().map(serde_json::to_value).transpose();
        let pending = pending.map_err(|error| Error::Internal(format!("a commit that can't be kept: {error}")))?;
        side.commit(staged, |manifest| {
            manifest.spec = serde_json::to_value(&spec).expect("a spec is plain data");
            manifest.layout = layout;
            manifest.flow_number(&batch.flow);
            manifest.txns.insert(batch.app_id.clone(), batch.batch as u64);
            manifest.floors = floor.into_iter().collect();
            manifest.pending = pending;
            if let Some(version) = version {
                manifest.snapshot = Some(side::Snapshot { version: version.to_vec() });
            }
            Ok(())
        })?;
        Ok((self.applied, prepared))
    }
}

/// Gives the members that have a row to add its location: file number and row of each, in order.
fn locate(folded: &mut Folded<'_>, locations: impl Iterator<Item = (u32, u64)>) -> Result<()> {
    for (row, (file, at)) in folded.added.iter().zip(locations) {
        let at = u32::try_from(at).map_err(|_| Error::Internal("a data file has too many rows".to_string()))?;
        folded.members[row.member].1.location = Some(Location { file, row: at });
    }
    Ok(())
}

fn nullable(schema: &SchemaRef) -> SchemaRef {
    if schema.fields().iter().all(|field| field.is_nullable()) {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// The first row's values, as queries show them.
fn words(columns: &[ArrayRef]) -> Result<String> {
    let named = columns.iter().enumerate().map(|(at, column)| (at.to_string(), column.slice(0, 1)));
    let row = RecordBatch::try_from_iter(named).map_err(internal)?;
    let cells = crate::preview::text_rows(&row)?.remove(0);
    Ok(cells.into_iter().map(|cell| cell.unwrap_or_else(|| "NULL".to_string())).collect::<Vec<_>>().join(", "))
}

fn stored_form<'m>(key: &'m [u8], member: &'m Member<'m>) -> MemberRef<'m> {
    MemberRef {
        key,
        sequence: member.sequence,
        kind: match member.kind {
            Kind::Upsert => side::Kind::Upsert,
            Kind::Delete => side::Kind::Delete,
        },
        rank: side::Rank {
            class: class_number(member.rank.class),
            flow: member.origin.flow,
            position: member.rank.position,
        },
        batch_id: member.origin.batch,
        authored: member.authored.as_deref(),
        run_start: member.run_start,
        location: member.location.map(|location| side::Location { file: location.file, row: location.row }),
        last_seeded: member.cutover.last_seeded,
        first_live: member.cutover.first_live,
        values: &member.values,
    }
}
