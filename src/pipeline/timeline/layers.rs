//! Events of one key and sequence: the strongest is on top, and what it says nothing about comes from those beneath.
//!
//! A member is all of them: its values are those of each leaf's strongest event. Beside that it keeps which leaves each
//! event says something about, and its rank: so one that comes later finds its place among them. An event beneath a whole
//! row, or one that says nothing more than those of its flow above it, doesn't matter any more and isn't kept.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};

use super::{Kind, Member, Origin, Precedence, Rank, RowBytes, precedence};

/// An event that others of its key and sequence lie upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer<'a> {
    pub kind: Kind,
    pub rank: Rank,
    pub origin: Origin,
    /// As [`Member::authored`]; a delete says something about every leaf.
    pub authored: Option<Cow<'a, [u8]>>,
}

impl Layer<'_> {
    fn precedence(&self) -> Precedence {
        precedence(self.kind, self.rank)
    }

    /// Whether it says nothing beside what those of its flow above it say, now or of columns that come later: about these
    /// the events of a flow say the same, those of another flow may not.
    fn is_covered(&self, of_flow: Option<&[u8]>, rows: &dyn RowBytes) -> bool {
        let (Some(said), Some(of_flow)) = (self.authored.as_deref(), of_flow) else { return false };
        rows.union(of_flow, said) == of_flow
    }
}

impl<'a> Member<'a> {
    /// The event on top, without its values.
    fn top(&self) -> Layer<'a> {
        Layer { kind: self.kind, rank: self.rank, origin: self.origin, authored: self.authored.clone() }
    }

    /// What its events say something about, together; None: everything.
    pub fn said(&self, rows: &dyn RowBytes) -> Option<Cow<'_, [u8]>> {
        let mut said = Cow::Borrowed(&self.authored.as_ref()?[..]);
        for layer in &self.below {
            said = Cow::Owned(rows.union(&said, layer.authored.as_ref()?));
        }
        Some(said)
    }

    /// The values of the event on top alone.
    fn own_values(&self, rows: &dyn RowBytes) -> Cow<'_, [u8]> {
        match &self.authored {
            None => Cow::Borrowed(&self.values),
            Some(authored) => Cow::Owned(rows.fill(&self.values, authored, None)),
        }
    }

    /// Whether its event on top is the same as the other's, wherever they came from.
    pub(super) fn is_same_event(&self, other: &Member<'_>, rows: &dyn RowBytes) -> bool {
        self.kind == other.kind
            && self.authored == other.authored
            && rows.are_equal(&self.own_values(rows), &other.own_values(rows))
    }

    /// Which of both events of one sequence is the stronger one. Where a query leaves no position to tell two events
    /// apart, what they say does.
    pub(super) fn compare_top(&self, other: &Member<'_>, rows: &dyn RowBytes) -> Ordering {
        let by_rank = self.top().precedence().cmp(&other.top().precedence());
        by_rank
            .then_with(|| self.authored.cmp(&other.authored))
            .then_with(|| self.own_values(rows).cmp(&other.own_values(rows)))
    }

    /// With one more event of its sequence; None: that says nothing that isn't known.
    pub(super) fn with(&self, event: &Member<'a>, rows: &dyn RowBytes) -> Option<Member<'a>> {
        let mut layers = vec![self.top()];
        layers.extend(self.below.iter().cloned());
        let added = event.top();
        let place = match self.compare_top(event, rows) {
            Ordering::Less => 0,
            _ => 1 + self.below.iter().take_while(|layer| layer.precedence() >= added.precedence()).count(),
        };
        let beneath = layers.split_off(place);
        // Nothing is seen of an event beneath a whole row.
        let above: Option<Vec<&[u8]>> = layers.iter().map(|layer| layer.authored.as_deref()).collect();
        let above = union(above?.into_iter(), rows);
        let mut of_flow = said_of(&layers, added.rank.flow, rows);
        if added.is_covered(of_flow.as_deref(), rows) {
            return None;
        }
        let lower = self.values_of(&beneath);
        let mut values = match (event.kind, &event.authored) {
            (Kind::Delete, _) => None,
            (Kind::Upsert, None) => Some(event.values.clone()),
            (Kind::Upsert, Some(authored)) => Some(Cow::Owned(rows.fill(&event.values, authored, lower))),
        };
        if let Some(above) = &above {
            values = Some(Cow::Owned(rows.fill(&self.values, above, values.as_deref())));
        }
        // What the event covers: all, if it is a whole row, else those of its flow that say nothing beside it.
        of_flow = added.authored.as_deref().map(|said| with_more(of_flow, said, rows));
        let (flow, is_whole) = (added.rank.flow, added.authored.is_none());
        layers.push(added);
        for layer in beneath.into_iter().filter(|_| !is_whole) {
            if layer.rank.flow == flow {
                if layer.is_covered(of_flow.as_deref(), rows) {
                    continue;
                }
                of_flow = layer.authored.as_deref().map(|said| with_more(of_flow, said, rows));
            }
            layers.push(layer);
        }
        let mut layers = layers.into_iter();
        let top = layers.next()?;
        Some(Member {
            sequence: self.sequence,
            kind: top.kind,
            rank: top.rank,
            origin: top.origin,
            authored: top.authored,
            below: layers.collect(),
            values: values.unwrap_or_default(),
            run_start: None,
            location: None,
            cutover: self.cutover,
        })
    }

    /// With its layers in the order of their ranks, which are others once a flow has another name. What an event has put
    /// over another stays.
    pub fn in_order(mut self) -> Member<'a> {
        if self.below.is_empty() {
            return self;
        }
        let mut layers = vec![self.top()];
        layers.append(&mut self.below);
        layers.sort_by_key(|layer| Reverse(layer.precedence()));
        let whole = layers.iter().position(|layer| layer.authored.is_none());
        layers.truncate(whole.map_or(layers.len(), |whole| whole + 1));
        let top = layers.remove(0);
        let Layer { kind, rank, origin, authored } = top;
        Member { kind, rank, origin, authored, below: layers, ..self }
    }

    /// The values of the lowest of its layers; None: there are none, or they delete.
    fn values_of(&self, layers: &[Layer<'_>]) -> Option<&[u8]> {
        layers.first().filter(|layer| layer.kind == Kind::Upsert).map(|_| &self.values[..])
    }
}

/// What one of them says something about; None: there are none.
fn union<'s>(said: impl Iterator<Item = &'s [u8]>, rows: &dyn RowBytes) -> Option<Vec<u8>> {
    said.fold(None, |before, said| Some(with_more(before, said, rows)))
}

fn with_more(before: Option<Vec<u8>>, said: &[u8], rows: &dyn RowBytes) -> Vec<u8> {
    before.map_or_else(|| said.to_vec(), |before| rows.union(&before, said))
}

/// What the layers of a flow say something about.
fn said_of(layers: &[Layer<'_>], flow: u32, rows: &dyn RowBytes) -> Option<Vec<u8>> {
    let of_flow = layers.iter().filter(|layer| layer.rank.flow == flow);
    union(of_flow.filter_map(|layer| layer.authored.as_deref()), rows)
}
