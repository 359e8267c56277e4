//! The events of a micro-batch, checked and encoded: from the columns of a flow's query to bytes that sort and compare.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, RecordBatch};
use arrow::compute::{filter_record_batch, not};
use arrow::datatypes::{Field as ArrowField, Schema};
use pipeline::auto_cdc::{DELETE_COLUMN, SEQUENCE_COLUMN, TRUNCATE_COLUMN};
use pipeline::timeline::{Class, Cutover, Kind, Member, Origin, Rank};
use std::sync::Arc;

use super::encode::{ByteRows, KeyCodec};
use super::position::{POSITION, position_at};
use super::rows::Rows;
use super::silence::{self, Silence};
use crate::error::{Error, Result};

/// How events are told from the columns of a query, and what is refused.
pub struct EventReader<'t> {
    /// The key columns, as the query spells them or otherwise.
    pub keys: &'t [String],
    pub key_codec: &'t KeyCodec,
    pub sequence_codec: &'t KeyCodec,
    /// The columns of the rows, without the keys.
    pub values: &'t [String],
    pub rows: &'t Rows,
    pub silence: &'t Silence,
    /// Where every event has the same sequence, which no column has: a snapshot's version.
    pub version: Option<&'t ArrayRef>,
}

/// Events without what they need, over a whole micro-batch.
#[derive(Debug, Clone, Default)]
pub struct Refused {
    pub null_sequences: u64,
    /// By key column.
    pub null_keys: Vec<u64>,
    /// The first few, by position, if that is known, and what is null.
    pub examples: Vec<(Option<[u64; 3]>, String)>,
    /// Of the lists in `COLUMNS TO UPDATE`, the names that are no columns of the flow, and in how many lists each is.
    pub unknown_columns: BTreeMap<String, u64>,
}

/// So many rows are shown of those that are refused.
const EXAMPLES: usize = 5;
/// So many unknown names are counted; a feed that names more gives no names.
const UNKNOWN_COLUMNS_MAX: usize = 100;

/// Encoded events, in the order they came.
#[derive(Debug, Default)]
pub struct Events {
    parts: Vec<Part>,
    /// Highest sequence of the TRUNCATE events.
    pub truncation: Option<Vec<u8>>,
    pub truncations: u64,
    bytes: usize,
    len: usize,
}

#[derive(Debug)]
struct Part {
    keys: ByteRows,
    sequences: ByteRows,
    values: ByteRows,
    /// Empty: the event is the whole row.
    authored: Option<ByteRows>,
    /// None: upserts only.
    deletes: Option<BooleanArray>,
    positions: Option<FixedSizeBinaryArray>,
}

/// An event among [`Events`].
#[derive(Debug, Clone, Copy)]
pub struct EventId {
    part: u32,
    row: u32,
}

impl EventReader<'_> {
    /// Reads the rows of a query. Those without key or sequence are counted, not taken.
    pub fn read(&self, batch: &RecordBatch, events: &mut Events, refused: &mut Refused) -> Result<()> {
        refused.null_keys.resize(self.keys.len(), 0);
        let mut batch = batch.clone();
        if self.version.is_none() {
            batch = self.refuse(&batch, &[SEQUENCE_COLUMN], refused, true)?;
            batch = self.take_truncations(&batch, events)?;
        }
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        let batch = self.refuse(&batch, &keys, refused, false)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let keys: Vec<ArrayRef> = keys.iter().map(|key| column(&batch, key)).collect::<Result<_>>()?;
        let sequences = match self.version {
            None => self.sequence_codec.encode(&[column(&batch, SEQUENCE_COLUMN)?])?,
            Some(version) => {
                let version = self.sequence_codec.encode(std::slice::from_ref(version))?;
                let mut rows = ByteRows::default();
                (0..batch.num_rows()).for_each(|_| rows.push(version.get(0)));
                rows
            }
        };
        let (fields, columns): (Vec<ArrowField>, Vec<ArrayRef>) = self
            .values
            .iter()
            .filter_map(|name| {
                let column = column(&batch, name).ok()?;
                Some((ArrowField::new(name, column.data_type().clone(), true), column))
            })
            .unzip();
        let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let rows = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
            .map_err(|error| Error::Internal(error.to_string()))?;
        let values = self.rows.codec.encode(&rows)?;
        let part = Part {
            keys: self.key_codec.encode(&keys)?,
            sequences,
            authored: self.authored(&batch, &values, refused)?,
            values,
            deletes: is_true(&batch, DELETE_COLUMN),
            positions: positions(&batch),
        };
        events.bytes += [&part.keys, &part.sequences, &part.values].iter().map(|rows| rows.byte_len()).sum::<usize>();
        events.len += batch.num_rows();
        events.parts.push(part);
        Ok(())
    }

    /// The batch without the rows that have NULL in one of the columns.
    fn refuse(
        &self,
        batch: &RecordBatch,
        names: &[&str],
        refused: &mut Refused,
        are_sequences: bool,
    ) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = names.iter().map(|name| column(batch, name)).collect::<Result<_>>()?;
        let mut is_refused: Option<Vec<bool>> = None;
        let positions = positions(batch);
        for (at, array) in columns.iter().enumerate() {
            let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { continue };
            let count = nulls.null_count() as u64;
            match are_sequences {
                true => refused.null_sequences += count,
                false => refused.null_keys[at] += count,
            }
            let rows = is_refused.get_or_insert_with(|| vec![false; batch.num_rows()]);
            for row in (0..batch.num_rows()).filter(|row| nulls.is_null(*row)) {
                rows[row] = true;
                if refused.examples.len() < EXAMPLES {
                    let what = if are_sequences { "SEQUENCE BY".to_string() } else { format!("`{}`", names[at]) };
                    refused.examples.push((position_at(positions.as_ref(), row), what));
                }
            }
        }
        match is_refused {
            None => Ok(batch.clone()),
            Some(rows) => {
                let keep = BooleanArray::from_iter(rows.into_iter().map(|is_refused| Some(!is_refused)));
                filter_record_batch(batch, &keep).map_err(|error| Error::Internal(error.to_string()))
            }
        }
    }

    /// The batch without its TRUNCATE events, which have no key.
    fn take_truncations(&self, batch: &RecordBatch, events: &mut Events) -> Result<RecordBatch> {
        let Some(truncates) = is_true(batch, TRUNCATE_COLUMN).filter(|truncates| truncates.true_count() > 0) else {
            return Ok(batch.clone());
        };
        let internal = |error: arrow::error::ArrowError| Error::Internal(error.to_string());
        let taken = filter_record_batch(batch, &truncates).map_err(internal)?;
        events.truncations += taken.num_rows() as u64;
        let sequences = self.sequence_codec.encode(&[column(&taken, SEQUENCE_COLUMN)?])?;
        let newest = sequences.iter().max().map(<[u8]>::to_vec);
        events.truncation = events.truncation.take().max(newest);
        filter_record_batch(batch, &not(&truncates).map_err(internal)?).map_err(internal)
    }

    fn authored(&self, batch: &RecordBatch, values: &ByteRows, refused: &mut Refused) -> Result<Option<ByteRows>> {
        let mut rows = ByteRows::default();
        match self.silence {
            Silence::None => return Ok(None),
            Silence::NullsOf(_) | Silence::NullsExcept(_) => {
                let is_ignored = self.rows.by_leaf(|column| self.silence.covers(column));
                values.iter().for_each(|values| rows.push(&self.rows.authored_by_value(values, &is_ignored)));
            }
            Silence::Unlisted(list) => {
                let lists = column(batch, list)?;
                let lists = arrow::compute::cast(&lists, &list_of_strings())
                    .map_err(|error| Error::Internal(format!("column `{list}`: {error}")))?;
                let lists = lists.as_list::<i32>();
                for row in 0..lists.len() {
                    if lists.is_null(row) {
                        rows.push(&[]);
                        continue;
                    }
                    let listed = lists.value(row);
                    let is_key = |name: &str| self.keys.iter().any(|key| key.eq_ignore_ascii_case(name));
                    let names = listed.as_string::<i32>().iter().flatten().filter(|name| !is_key(name));
                    let names: Vec<&str> = names.collect();
                    names.iter().for_each(|name| self.count_unknown(name, refused));
                    rows.push(&silence::listed(self.rows.codec.layout().leaves(), &names));
                }
            }
        }
        Ok(Some(rows))
    }
}

impl EventReader<'_> {
    /// Counts a name of a list in `COLUMNS TO UPDATE` that is no column of the flow.
    fn count_unknown(&self, name: &str, refused: &mut Refused) {
        if self.values.iter().any(|column| column.eq_ignore_ascii_case(name)) {
            return;
        }
        let unknown = &mut refused.unknown_columns;
        if let Some(count) = unknown.get_mut(name) {
            *count += 1;
        } else if unknown.len() < UNKNOWN_COLUMNS_MAX {
            unknown.insert(name.to_string(), 1);
        }
    }
}

fn list_of_strings() -> arrow::datatypes::DataType {
    use arrow::datatypes::DataType::{List, Utf8};
    List(Arc::new(ArrowField::new("item", Utf8, true)))
}

fn column(batch: &RecordBatch, name: &str) -> Result<ArrayRef> {
    let at = batch.schema_ref().fields().iter().position(|field| field.name().eq_ignore_ascii_case(name));
    let at = at.ok_or_else(|| Error::Internal(format!("the query of the flow gives no column `{name}`")))?;
    Ok(batch.column(at).clone())
}

fn positions(batch: &RecordBatch) -> Option<FixedSizeBinaryArray> {
    column(batch, POSITION).ok().map(|column| column.as_fixed_size_binary().clone())
}

/// A condition's column, NULL as false; None if the flow has no such clause.
fn is_true(batch: &RecordBatch, name: &str) -> Option<BooleanArray> {
    let column = column(batch, name).ok()?;
    let column = column.as_boolean_opt()?;
    Some(match column.nulls() {
        None => column.clone(),
        Some(nulls) => BooleanArray::new(column.values() & nulls.inner(), None),
    })
}

impl Events {
    /// How many there are, TRUNCATE events apart.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing to apply.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// About how much memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All events, by key, sequence and precedence.
    pub fn sorted(&self, class: Class, flow_order: u32) -> Vec<EventId> {
        /// The first bytes of the key decide most comparisons without a look at the event.
        struct Sorted {
            prefix: u64,
            id: EventId,
        }
        let mut sorted = Vec::with_capacity(self.len);
        for (part, of_part) in self.parts.iter().enumerate() {
            for (row, key) in of_part.keys.iter().enumerate() {
                let mut prefix = [0; 8];
                let length = key.len().min(8);
                prefix[..length].copy_from_slice(&key[..length]);
                let id = EventId { part: part as u32, row: row as u32 };
                sorted.push(Sorted { prefix: u64::from_be_bytes(prefix), id });
            }
        }
        sorted.sort_unstable_by(|a, b| {
            let same_prefix = a.prefix.cmp(&b.prefix);
            same_prefix.then_with(|| self.key(a.id).cmp(self.key(b.id))).then_with(|| {
                let member = |id| self.member(id, class, flow_order, Origin::default());
                self.sequence(a.id).cmp(self.sequence(b.id)).then_with(|| member(a.id).compare(&member(b.id)))
            })
        });
        sorted.into_iter().map(|sorted| sorted.id).collect()
    }

    pub fn key(&self, id: EventId) -> &[u8] {
        self.parts[id.part as usize].keys.get(id.row as usize)
    }

    pub fn sequence(&self, id: EventId) -> &[u8] {
        self.parts[id.part as usize].sequences.get(id.row as usize)
    }

    /// The event as a new member of its timeline.
    pub fn member(&self, id: EventId, class: Class, flow_order: u32, origin: Origin) -> Member<'_> {
        let part = &self.parts[id.part as usize];
        let row = id.row as usize;
        let kind = match part.deletes.as_ref().is_some_and(|deletes| deletes.value(row)) {
            true => Kind::Delete,
            false => Kind::Upsert,
        };
        let is_upsert = kind == Kind::Upsert;
        let authored = part.authored.as_ref().map(|rows| rows.get(row));
        Member {
            sequence: part.sequences.get(row),
            kind,
            rank: Rank {
                class,
                flow: flow_order,
                position: position_at(part.positions.as_ref(), row).unwrap_or_default(),
            },
            origin,
            authored: authored.filter(|flags| is_upsert && !flags.is_empty()).map(Cow::Borrowed),
            below: Vec::new(),
            values: Cow::Borrowed(if is_upsert { part.values.get(row) } else { &[] }),
            run_start: None,
            location: None,
            cutover: Cutover::default(),
        }
    }
}
