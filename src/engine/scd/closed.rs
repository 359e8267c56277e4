//! Keys whose last seeded row was closed in the table it came from, and which the target shows all the same: a replay
//! of rows has no event that ends the last one (behaviours D-6).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, AsArray, BinaryArray};
use arrow::datatypes::{DataType as ArrowType, Schema};
use datafusion::functions_aggregate::expr_fn::max;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast, lit};
use futures::StreamExt;
use pipeline::auto_cdc::is_internal;
use pipeline::data_type::DataType;
use pipeline::graph::{Flow, FlowKind};
use pipeline::scd::key_words;

use super::as_of::{column, failed};
use super::feed::{Codecs, KEY, events};
use super::ordered::key_bytes;
use super::scd_table::ScdTable;
use super::value;
use crate::auto_cdc::encode::KeyCodec;
use crate::auto_cdc::known_specs::{Stamp, manifest_stamp};
use crate::auto_cdc::side::{Kind, Wanted};
use crate::columns::Columns;
use crate::data_type::schema_from_arrow;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::state::State;

/// Columns that say until when a row was valid.
const ENDS: [&str; 16] = [
    "valid_to",
    "validto",
    "valid_until",
    "valid_end",
    "end_date",
    "enddate",
    "end_at",
    "ended_at",
    "end_time",
    "effective_to",
    "effective_end",
    "effective_end_date",
    "expiry_date",
    "expired_at",
    "dbt_valid_to",
    "row_end",
];

/// Columns that say whether a row is the last one.
const CURRENT: [&str; 4] = ["is_current", "iscurrent", "current_flag", "is_latest"];

/// What was found of a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClosedKeys {
    /// The column that closes its rows.
    pub column: String,
    /// It holds a time, not a flag.
    pub is_end: bool,
    /// SQL that is true for closed rows.
    pub condition: String,
    pub keys: u64,
    /// The first few.
    pub examples: Vec<String>,
}

/// So many keys are named.
const EXAMPLES: usize = 3;

/// The year of the times that stand for none.
const LATEST_YEAR: u32 = 9999;

/// Findings by flow, and when its flow was done and the side table changed. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownClosedKeys {
    known: Arc<Mutex<HashMap<String, Known>>>,
}

#[derive(Debug, Clone)]
struct Known {
    done_us: i64,
    stamp: Stamp,
    found: Option<ClosedKeys>,
}

impl KnownClosedKeys {
    /// What was found last of a flow.
    pub fn get(&self, flow: &str) -> Option<ClosedKeys> {
        self.lock().get(flow).and_then(|known| known.found.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Looks for such keys of all seeds that are done, as far as that may have changed; true if there is anything new to
    /// tell. Reads the sources of seeds whose rows have a validity column.
    pub(crate) async fn look_for_closed_keys(&self, state: &State) -> Result<bool> {
        let mut is_new = false;
        for flow in &self.graph().flows {
            let feed = flow.change.as_ref().and_then(|change| change.feed());
            if flow.kind != FlowKind::CdcOnce || feed.is_none_or(|feed| feed.delete_span.is_some()) {
                continue;
            }
            let dataset = self.graph().dataset(flow.target);
            let Some(record) = state.flow(&dataset.name.key(), &flow.name)? else { continue };
            let Some(done_us) = record.completion.map(|completion| completion.done_us) else { continue };
            let named = self.scd_named(&dataset.label, Some(state))?;
            let Some(table) = self.scd_table_if_stored(&named, Some(state)).await? else { continue };
            let Some(stamp) = manifest_stamp(table.side_folder()) else { continue };
            let before = self.closed_keys().lock().get(&flow.name).cloned();
            // Later events may end such rows, and make none.
            let is_known = before
                .as_ref()
                .is_some_and(|before| before.done_us == done_us && (before.stamp == stamp || before.found.is_none()));
            if is_known {
                continue;
            }
            let found = self.find_closed_keys(flow, &table).await?;
            is_new |= found != before.and_then(|before| before.found);
            self.closed_keys().lock().insert(flow.name.clone(), Known { done_us, stamp, found });
        }
        Ok(is_new)
    }

    async fn find_closed_keys(&self, flow: &Flow, table: &ScdTable) -> Result<Option<ClosedKeys>> {
        let Some(query) = self.whole_query(flow).await? else { return Ok(None) };
        let Some((name, is_end)) = validity_column(query.schema().as_arrow()) else { return Ok(None) };
        let columns = Columns::grown(schema_from_arrow(&table.schema).map_err(Error::Internal)?);
        let Some(feed) = self.feed(flow, &columns, &table.spec.sequence, Some(&name)).await? else { return Ok(None) };
        let codecs = Codecs { keys: table.key_codec.clone(), sequence: table.sequence_codec.clone() };
        let closed_type = feed.data_type(&name)?;
        // A boolean behind the sequence: the greatest of a key is its last row, and says whether that is closed.
        let last = KeyCodec::new(vec![table.spec.sequence.clone(), DataType::Boolean])?;
        let (is_closed, condition) = is_closed(&name, is_end, &closed_type);
        let rows = events(feed, &codecs, |key, sequence| {
            let closed = (is_closed.is_true(), ArrowType::Boolean);
            vec![key.alias(KEY), key_bytes(&last, vec![sequence, closed]).alias(LAST)]
        })?;
        let plan = LogicalPlanBuilder::from(rows)
            .aggregate([column(KEY)], [max(column(LAST)).alias(LAST)])
            .and_then(|last| last.sort([column(KEY).sort(true, true)]))
            .and_then(LogicalPlanBuilder::build)
            .map_err(failed)?;
        let mut batches = self.stream(plan, None).await?;
        let (mut keys, mut examples) = (0, Vec::new());
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(failed)?;
            let (of_key, of_last): (&BinaryArray, &BinaryArray) =
                (batch.column(0).as_binary(), batch.column(1).as_binary());
            let closed: Vec<(&[u8], &[u8])> = (0..batch.num_rows())
                .filter(|row| of_key.is_valid(*row) && of_last.is_valid(*row))
                .filter_map(|row| match of_last.value(row).split_last()? {
                    (1, sequence) => Some((of_key.value(row), sequence)),
                    _ => None,
                })
                .collect();
            let wanted: Vec<Wanted> = closed.iter().map(|(key, _)| Wanted { key, first_sequence: &[] }).collect();
            table.view.lookup(&wanted, |at, members| {
                let is_open = members.first().is_some_and(|newest| {
                    let is_void = table.floor().is_some_and(|floor| floor.covers(newest.sequence));
                    newest.kind == Kind::Upsert && newest.sequence == closed[at].1 && !is_void
                });
                keys += u64::from(is_open);
                if is_open && examples.len() < EXAMPLES {
                    examples.push(closed[at].0.to_vec());
                }
                Ok(())
            })?;
        }
        if keys == 0 {
            return Ok(None);
        }
        let examples = value::key_parts(&table.key_codec, &table.key_names, examples.iter().map(Vec::as_slice))?;
        let examples = examples.iter().map(|key| key_words(key)).collect();
        Ok(Some(ClosedKeys { column: name, is_end, condition, keys, examples }))
    }
}

const LAST: &str = "last";

/// The column of a legacy table that says that a row is closed, and whether it is a time.
fn validity_column(schema: &Schema) -> Option<(String, bool)> {
    let find = |names: &[&str]| {
        let mut fields = schema.fields().iter().filter(|field| !is_internal(field.name()));
        fields
            .find(|field| names.iter().any(|name| name.eq_ignore_ascii_case(field.name())))
            .map(|field| field.name().clone())
    };
    find(&ENDS).map(|name| (name, true)).or_else(|| find(&CURRENT).map(|name| (name, false)))
}

/// The condition of closed rows, and the same as SQL. Times of the year 9999 stand for a row that is open.
fn is_closed(name: &str, is_end: bool, data_type: &ArrowType) -> (Expr, String) {
    const NO: [&str; 9] = ["N", "n", "NO", "No", "no", "FALSE", "False", "false", "0"];
    let value = || column(name);
    match (is_end, data_type) {
        (true, ArrowType::Date32 | ArrowType::Timestamp(..)) => {
            let open = cast(lit(format!("{LATEST_YEAR}-01-01")), data_type.clone());
            (value().lt(open), format!("year({name}) < {LATEST_YEAR}"))
        }
        (true, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View) => (
            value().not_eq(lit("")).and(value().lt(lit(LATEST_YEAR.to_string()))),
            format!("{name} <> '' AND {name} < '{LATEST_YEAR}'"),
        ),
        (true, _) => (value().is_not_null(), format!("{name} IS NOT NULL")),
        (false, ArrowType::Boolean) => (value().is_false(), format!("NOT {name}")),
        (false, data_type) if data_type.is_numeric() => (value().eq(lit(0)), format!("{name} = 0")),
        (false, _) => (value().in_list(NO.map(lit).to_vec(), false), format!("{name} IN ('{}')", NO.join("', '"))),
    }
}
