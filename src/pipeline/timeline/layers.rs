//! Events of one key and sequence: the strongest is on top, and what it says nothing about comes from those beneath.
//!
//! A member is all of them: its values are those of each leaf's strongest event. Beside that it keeps which leaves each
//! event says something about, and its rank: so one that comes later finds its place among them. An event beneath a whole
//! row, or one that says nothing more than those of its flow above it, doesn't matter any more and isn't kept.

use std::borrow::Cow;
use std::cmp::Ordering;

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
        let mut above: Option<Cow<'_, [u8]>> = None;
        for layer in &layers[..place] {
            // Nothing is seen of an event beneath a whole row.
            let said = layer.authored.as_ref()?;
            above = Some(match above {
                None => Cow::Borrowed(&said[..]),
                Some(above) => Cow::Owned(rows.union(&above, said)),
            });
        }
        let is_seen_through = added.authored.is_some();
        let beneath = self.values_of(&layers[place..]).filter(|_| is_seen_through);
        let mut values = match (event.kind, &event.authored) {
            (Kind::Delete, _) => None,
            (Kind::Upsert, None) => Some(event.values.clone()),
            (Kind::Upsert, Some(authored)) => Some(Cow::Owned(rows.fill(&event.values, authored, beneath))),
        };
        if let Some(above) = &above {
            values = Some(Cow::Owned(rows.fill(&self.values, above, values.as_deref())));
        }
        if is_covered(&added, &layers[..place], rows) {
            return None;
        }
        let beneath = layers.split_off(place);
        layers.push(added);
        for layer in beneath {
            if !is_covered(&layer, &layers, rows) {
                layers.push(layer);
            }
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

    /// The values of the lowest of its layers; None: there are none, or they delete.
    fn values_of(&self, layers: &[Layer<'_>]) -> Option<&[u8]> {
        layers.first().filter(|layer| layer.kind == Kind::Upsert).map(|_| &self.values[..])
    }
}

/// Whether a layer says nothing that isn't said above it, now or of columns that come later.
fn is_covered(layer: &Layer<'_>, above: &[Layer<'_>], rows: &dyn RowBytes) -> bool {
    if above.last().is_some_and(|above| above.authored.is_none()) {
        return true;
    }
    let Some(authored) = &layer.authored else { return false };
    // What a flow says about columns that come later is the same of all its events. Of another flow it may differ.
    let of_flow = above.iter().filter(|above| above.origin.flow == layer.origin.flow);
    let said = of_flow.filter_map(|above| above.authored.as_deref()).fold(None, |said: Option<Vec<u8>>, next| {
        Some(said.map_or_else(|| next.to_vec(), |said| rows.union(&said, next)))
    });
    said.is_some_and(|said| rows.union(&said, authored) == said)
}
