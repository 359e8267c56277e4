//! The versions of a key and the events that made them, from the side table.

use pipeline::auto_cdc::ScdType;
use pipeline::scd::{Effect, EventKind, KeyEvent, KeyFlags, KeyHistory, Version};
use pipeline::timeline::{Floor, Kind, Layer, Member, Origin, Told};

use super::origin::{Origins, Places};
use super::scd_table::ScdTable;
use super::value;
use crate::auto_cdc::side;
use crate::engine::Engine;
use crate::error::Result;

impl Engine {
    /// The history of a key of a table of AUTO CDC. `key`: its value, or `column=value` of each of its columns.
    ///
    /// # Errors
    /// `unknown-dataset`, `not-auto-cdc`, `nothing-stored`; `bad-key`, `bad-value`, `unknown-key`.
    pub async fn scd_history(&self, table: &str, key: &[String]) -> Result<KeyHistory> {
        let table = self.scd_table(table).await?;
        let key = value::parse_key(&table.key_codec, &table.key_names, key)?;
        let stored = table.key(&key)?;
        let told = table.told(&stored);
        let origins = Origins::read(self.state_for_reading()?.as_ref(), &table.view.manifest().flows)?;
        let late = origins.late(&told.members);
        let sequence = |bytes: &[u8]| value::sequence(&table.sequence_codec, bytes);
        let values = values(&table, &told)?;

        let cutover = table.cutover(told.cutover);
        let mut places = origins.places(self)?;
        let mut events = Vec::with_capacity(told.members.len());
        for (at, member) in told.members.iter().enumerate() {
            let (effect, version) = effect(&table, &told, at);
            let class = member.rank.class;
            let is_absence = member.kind == Kind::Delete && class.is_snapshot();
            events.push(KeyEvent {
                sequence: sequence(member.sequence)?,
                kind: match member.kind {
                    Kind::Upsert => EventKind::Upsert,
                    Kind::Delete if is_absence => EventKind::Absence,
                    Kind::Delete => EventKind::Delete,
                },
                effect,
                version: version.map(|version| version + 1),
                flow: origins.flow(member.origin.flow).to_string(),
                is_seed: class.is_seed(),
                batch: member.origin.batch,
                update: origins.update(member.origin),
                place: match is_absence {
                    true => places.of_batch(member.origin)?,
                    false => places.of(member.origin, member.rank.position)?,
                },
                is_late: late[at],
                values: values[at].clone(),
            });
        }
        // What made events void stands behind them, weaker events of a sequence before the strongest.
        let mut others = voiding(&table, &told, &origins, &mut places)?;
        for (at, event) in events.iter().enumerate() {
            others
                .extend(beneath(&told.members[at], event, &origins, &mut places)?.into_iter().map(|event| (at, event)));
        }
        others.sort_by_key(|(at, _)| *at);
        let index = |member: usize| member + others.iter().filter(|(at, _)| *at <= member).count();
        for (before, (at, event)) in others.iter().enumerate() {
            events.insert(at + before, event.clone());
        }
        let versions = told.rows.iter().enumerate().map(|(at, row)| {
            Ok(Version {
                number: at + 1,
                start: sequence(row.start)?,
                end: row.end.map(sequence).transpose()?,
                is_open: row.end.is_none(),
                values: values[row.last].clone(),
                first_event: index(row.first),
                last_event: index(row.last),
                is_after_gap: at > 0 && told.rows[at - 1].end != Some(row.start),
            })
        });
        let versions = versions.collect::<Result<Vec<_>>>()?;
        let columns = table.value_columns();
        let is_tracked = |name: &str| {
            table.spec.scd_type == ScdType::One
                || table.spec.tracked.iter().any(|tracked| tracked.eq_ignore_ascii_case(name))
        };
        Ok(KeyHistory {
            table: table.label.clone(),
            scd_type: table.spec.scd_type,
            key: table.key_parts(&key)?,
            tracked: (0..columns.len()).filter(|at| is_tracked(&columns[*at].name)).collect(),
            columns,
            sequence_type: table.spec.sequence.to_string(),
            versions,
            events,
            keeps_all_events: table.keeps_all(),
            flags: flags(&table, &told, &late),
            last_seeded: cutover.last_seeded.map(sequence).transpose()?,
            first_live: cutover.first_live.map(sequence).transpose()?,
        })
    }
}

/// How many events the history of a key tells.
pub(super) fn event_count(table: &ScdTable, told: &Told<'_>) -> usize {
    told.members.iter().map(|member| 1 + member.below.len()).sum::<usize>() + floors(table, told).len()
}

/// The TRUNCATEs, and snapshots without the key, that made its oldest events void, each with the last member that it is
/// above.
fn floors<'t>(table: &'t ScdTable, told: &Told<'_>) -> Vec<(usize, &'t side::Floor)> {
    let manifest = table.view.manifest();
    if manifest.floors.is_empty() {
        return Vec::new();
    }
    let of_members: Vec<Option<&side::Floor>> = told
        .members
        .iter()
        .map(|member| {
            manifest.voided_by(|floor| {
                Floor { sequence: &floor.sequence, is_inclusive: floor.is_inclusive }.covers(member.sequence)
            })
        })
        .collect();
    let is_last = |at: usize| of_members.get(at + 1).is_none_or(|next| *next != of_members[at]);
    let lasts = (0..of_members.len()).filter(|at| is_last(*at));
    lasts.filter_map(|at| Some((at, of_members[at]?))).collect()
}

/// The same as events, with how many members stand before each.
fn voiding(
    table: &ScdTable,
    told: &Told<'_>,
    origins: &Origins,
    places: &mut Places<'_>,
) -> Result<Vec<(usize, KeyEvent)>> {
    let mut voiding = Vec::new();
    for (at, floor) in floors(table, told) {
        let member = &told.members[at];
        let side::FloorBatch { flow, batch } = floor.raised_by;
        let origin = Origin { flow, batch };
        let event = KeyEvent {
            sequence: value::sequence(&table.sequence_codec, &floor.sequence)?,
            kind: if origins.class(flow).is_snapshot() { EventKind::Absence } else { EventKind::Truncate },
            effect: if member.kind == Kind::Upsert { Effect::Deletes } else { Effect::DeletesNothing },
            version: None,
            flow: origins.flow(flow).to_string(),
            is_seed: origins.class(flow).is_seed(),
            batch,
            update: origins.update(origin),
            place: places.of_batch(origin)?,
            is_late: false,
            values: Vec::new(),
        };
        voiding.push((at + 1, event));
    }
    Ok(voiding)
}

/// The events of a member's sequence that the one on top lies upon, the weakest first; `top`: that one.
fn beneath(member: &Member<'_>, top: &KeyEvent, origins: &Origins, places: &mut Places<'_>) -> Result<Vec<KeyEvent>> {
    let event = |layer: &Layer<'_>| {
        let is_absence = layer.kind == Kind::Delete;
        Ok(KeyEvent {
            kind: if is_absence { EventKind::Absence } else { EventKind::Upsert },
            effect: match top.effect {
                Effect::Opens | Effect::Repeats => Effect::FillsIn,
                other => other,
            },
            flow: origins.flow(layer.origin.flow).to_string(),
            is_seed: layer.rank.class.is_seed(),
            batch: layer.origin.batch,
            update: origins.update(layer.origin),
            place: match is_absence {
                true => places.of_batch(layer.origin)?,
                false => places.of(layer.origin, layer.rank.position)?,
            },
            is_late: false,
            values: Vec::new(),
            ..top.clone()
        })
    };
    member.below.iter().rev().map(event).collect()
}

/// What is special about a key.
pub(super) fn flags(table: &ScdTable, told: &Told<'_>, late: &[bool]) -> KeyFlags {
    let cutover = table.cutover(told.cutover);
    KeyFlags {
        is_deleted: told.is_deleted(),
        has_gaps: told.has_gaps(),
        is_late: late.contains(&true),
        has_tie: cutover.last_seeded.is_some() && cutover.last_seeded == cutover.first_live,
    }
}

/// The row after each member as texts; nothing after a delete.
fn values(table: &ScdTable, told: &Told<'_>) -> Result<Vec<Vec<Option<String>>>> {
    let upserts: Vec<&[u8]> =
        told.members.iter().filter(|member| member.kind == Kind::Upsert).map(|member| &member.values[..]).collect();
    let mut rows = match table.value_fields.is_empty() {
        true => vec![Vec::new(); upserts.len()],
        false => value::texts(&table.rows.codec.decode(&upserts, &table.value_fields)?)?,
    }
    .into_iter();
    let of_member = |kind| match kind {
        Kind::Upsert => rows.next().unwrap_or_default(),
        Kind::Delete => Vec::new(),
    };
    Ok(told.members.iter().map(|member| member.kind).map(of_member).collect())
}

/// What a member did, and the row that it is about.
fn effect(table: &ScdTable, told: &Told<'_>, at: usize) -> (Effect, Option<usize>) {
    let member = &told.members[at];
    if table.floor().is_some_and(|floor| floor.covers(member.sequence)) {
        return (Effect::Voided, None);
    }
    if member.kind == Kind::Delete {
        let ended = told.rows.iter().position(|row| row.end == Some(member.sequence));
        let was_there = at > 0 && told.members[at - 1].kind == Kind::Upsert;
        return match ended.is_some() || table.spec.scd_type == ScdType::One && was_there {
            true => (Effect::Deletes, ended),
            false => (Effect::DeletesNothing, None),
        };
    }
    match told.row_of(at) {
        None => (Effect::Superseded, None),
        Some(row) if told.rows[row].first == at => (Effect::Opens, Some(row)),
        Some(row) => (Effect::Repeats, Some(row)),
    }
}
