//! A portion of a batch's events by key, beside what is stored of each key; several threads look up and fold, each a
//! range of the keys.

use std::ops::Range;

use pipeline::timeline::{Class, Folded, Member};

use super::events::{EventId, Events};
use super::side::{View, Wanted};
use super::stored::{Flows, Stored};
use crate::error::{Error, Result};

/// A thread with fewer events costs more than it saves.
const EVENTS_A_THREAD: usize = 500;
/// A file of the target, and a run, with fewer events costs more than a thread saves.
const EVENTS_A_FILE: usize = 10_000;

/// Events by key, in order of the keys; within a key in order of their precedence.
pub(crate) struct Portion<'e> {
    events: &'e Events,
    sorted: Vec<EventId>,
    /// Which of the sorted events are each key's.
    of_keys: Vec<Range<usize>>,
    shares: Vec<Share>,
    /// In so many parts are its changes written.
    parts: usize,
}

/// What one thread works on.
struct Share {
    keys: Range<usize>,
    stored: Stored,
}

impl<'e> Portion<'e> {
    /// Sorts events of one flow and looks up what the side table has of their keys, on up to `threads` threads.
    pub fn look_up(
        events: &'e Events,
        (class, flow_order): (Class, u32),
        view: &View,
        threads: usize,
    ) -> Result<Portion<'e>> {
        let sorted = events.sorted(class, flow_order);
        let mut of_keys: Vec<Range<usize>> = Vec::new();
        for of_key in sorted.chunk_by(|a, b| events.key(*a) == events.key(*b)) {
            let start = of_keys.last().map_or(0, |last| last.end);
            of_keys.push(start..start + of_key.len());
        }
        let first = |of_key: &Range<usize>| sorted[of_key.start];
        let wanted: Vec<Wanted> = of_keys
            .iter()
            .map(|of_key| Wanted { key: events.key(first(of_key)), first_sequence: events.sequence(first(of_key)) })
            .collect();
        let shares = in_parts(of_keys.len(), (events.len() / EVENTS_A_THREAD).clamp(1, threads.max(1)));
        let shares = on_threads(shares, |keys| {
            let stored = Stored::look_up(view, &wanted[keys.clone()])?;
            Ok(Share { keys, stored })
        })?;
        let parts = (events.len() / EVENTS_A_FILE).clamp(1, threads.max(1));
        Ok(Portion { events, sorted, of_keys, shares, parts })
    }

    /// The keys in order.
    pub fn keys(&self) -> Vec<&'e [u8]> {
        self.of_keys.iter().map(|of_key| self.events.key(self.sorted[of_key.start])).collect()
    }

    /// Folds each key with `fold`: its number, its events, its stored members, oldest first, where the changes go, and
    /// where notes may go. Returns the changes in the parts that are worth a file each, and the notes.
    pub fn fold<'p, N: Default + Send>(
        &'p self,
        flows: &Flows,
        fold: impl Fn(usize, &'p [EventId], Vec<Member<'p>>, &mut Folded<'p>, &mut N) + Sync,
    ) -> Result<(Vec<Folded<'p>>, Vec<N>)> {
        let folded = on_threads(&self.shares, |share| {
            let (mut folded, mut notes) = (Folded::default(), N::default());
            for (at, key) in share.keys.clone().enumerate() {
                let events = &self.sorted[self.of_keys[key].clone()];
                fold(key, events, share.stored.members(at, flows), &mut folded, &mut notes);
            }
            Ok((folded, notes))
        })?;
        let (folded, notes): (Vec<_>, Vec<_>) = folded.into_iter().unzip();
        let mut rest = folded.into_iter();
        let joined = in_parts(self.shares.len(), self.parts).map(|shares| {
            let mut part = Folded::default();
            rest.by_ref().take(shares.len()).for_each(|share| part.append(share));
            part
        });
        Ok((joined.collect(), notes))
    }
}

/// `0..count` in about equal, non-empty ranges, `parts` of them or fewer.
fn in_parts(count: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let length = count.div_ceil(parts).max(1);
    (0..count).step_by(length).map(move |start| start..count.min(start + length))
}

/// Works on all items at the same time, each on a thread of its own; the results are in the order of the items.
pub(crate) fn on_threads<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let mut items = items.into_iter();
    let Some(first) = items.next() else { return Ok(Vec::new()) };
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        let panicked = |_| Err(Error::Internal("a thread that applies events panicked".to_string()));
        let mut done = vec![work(first)];
        done.extend(others.into_iter().map(|other| other.join().unwrap_or_else(panicked)));
        done.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_about_equal_and_none_is_empty() {
        let parts = |count, parts| in_parts(count, parts).map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(parts(0, 3), Vec::<usize>::new());
        assert_eq!(parts(1, 3), [1]);
        assert_eq!(parts(7, 3), [3, 3, 1]);
        assert_eq!(parts(4, 3), [2, 2]);
        assert_eq!(parts(4, 1), [4]);
    }

    #[test]
    fn results_stand_in_the_order_of_the_items_and_an_error_is_told() {
        assert_eq!(on_threads(0..5, |i| Ok(i * 10)).unwrap(), [0, 10, 20, 30, 40]);
        let failed = on_threads(0..5, |i| if i == 3 { Err(Error::Internal("three".into())) } else { Ok(i) });
        assert!(failed.is_err());
        assert!(on_threads(0..2, |i| if i == 1 { panic!("a test's") } else { Ok(i) }).is_err());
    }
}
