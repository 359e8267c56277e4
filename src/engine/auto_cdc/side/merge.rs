//! Which runs become one, so that few runs stay few and every member is written anew only a few times: runs of about
//! the same size are merged four at a time, and what comes of it is of the next size.

use std::ops::Range;

use super::cursor::Cursor;
use super::manifest::Retention;
use super::merged::Merged;
use super::run_writer::RunWriter;
use super::view::View;
use crate::error::Result;

/// So many runs of a size become one of the next.
const FAN_IN: usize = 4;

/// Runs up to this many bytes are of the smallest size; each size has four times as many.
const SMALLEST_BYTES: u64 = 64 << 10;

/// More runs than this are merged in any case: every one costs each lookup a little.
const RUNS_MAX: usize = 20;

/// Which of the runs of these sizes in bytes, oldest first, to merge now; only neighbours are, so that newer stays
/// newer.
pub(super) fn due(bytes: &[u64]) -> Option<Range<usize>> {
    let sizes: Vec<u32> = bytes.iter().map(|bytes| (bytes / SMALLEST_BYTES).max(1).ilog(FAN_IN as u64)).collect();
    let largest = sizes.iter().copied().max().unwrap_or(0);
    for size in 0..=largest {
        let mut end = sizes.len();
        // Neighbours up to this size, the newest first; smaller ones in between go along.
        for group in sizes.rsplit(|other| *other > size) {
            let start = end - group.len();
            if group.iter().filter(|other| **other == size).count() >= FAN_IN {
                return Some(start..end);
            }
            end = start.saturating_sub(1);
        }
    }
    if bytes.len() <= RUNS_MAX {
        return None;
    }
    let cheapest = (0..=bytes.len() - FAN_IN).min_by_key(|start| bytes[*start..start + FAN_IN].iter().sum::<u64>())?;
    Some(cheapest..cheapest + FAN_IN)
}

/// Writes the members of neighbouring runs of a view: of each key and sequence the newest run's, only the newest of a
/// key if that is all to keep, with their locations as they are now.
pub(super) fn write(view: &View, runs: Range<usize>, writer: &mut RunWriter) -> Result<()> {
    let cursors = view.runs[runs].iter().rev().map(|run| {
        let mut cursor = Cursor::new(run, None);
        cursor.next()?;
        Ok(cursor)
    });
    let mut merged = Merged::new(cursors.collect::<Result<_>>()?);
    while let Some(cursor) = merged.current() {
        let Some((block, head)) = cursor.current() else { break };
        let is_kept = match view.manifest.retention() {
            Retention::All => true,
            Retention::Newest => writer.last_key() != Some(head.key(block)),
        };
        if is_kept {
            let old = head.location(block).ok_or_else(|| cursor.malformed())?;
            let location = old.and_then(|location| view.moves.resolve(location));
            if location == old {
                writer.push_as_it_is(block, head, location)?;
            } else {
                let mut member = cursor.member()?;
                member.location = location;
                writer.push(&member)?;
            }
        }
        merged.next()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_size_are_merged_when_there_are_four() {
        let k = |sizes: &[u64]| sizes.iter().map(|size| size << 10).collect::<Vec<_>>();
        for (sizes, expected) in [
            (vec![], None),
            (vec![10, 10, 10], None),
            (vec![10, 10, 10, 10], Some(0..4)),
            // A large old run is left alone.
            (vec![100_000, 10, 200, 10, 60], Some(1..5)),
            (vec![100_000, 10, 10, 10], None),
            // The smallest size first; the newest group of it.
            (vec![1, 1, 1, 1, 900, 1, 1, 1, 1], Some(5..9)),
            // Smaller neighbours go along.
            (vec![9000, 300, 300, 1, 300, 1, 300], Some(1..7)),
            (vec![300, 300, 5000, 300, 300], None),
        ] {
            assert_eq!(due(&k(&sizes)), expected, "{sizes:?}");
        }
    }

    #[test]
    fn any_way_of_growing_leaves_few_runs_and_writes_each_byte_a_few_times() {
        for batches in [vec![100], vec![10, 1_000], vec![3_000, 20, 70, 900, 1]] {
            let (mut runs, mut written, mut total) = (vec![10_000_000_u64 << 6], 0, 0);
            for batch in batches.iter().cycle().take(2_000) {
                let bytes = batch << 10;
                runs.push(bytes);
                total += bytes;
                while let Some(range) = due(&runs) {
                    let merged = runs[range.clone()].iter().sum();
                    assert!(range.len() > 1);
                    written += merged;
                    runs.splice(range, [merged]);
                }
                assert!(runs.len() <= RUNS_MAX, "{runs:?}");
            }
            assert!(written / total <= 8, "{batches:?}: {written} of {total}");
        }
    }
}
