//! Sharing bytes out: equal shares for the partitions of a scan, big files cut between them.
//!
//! Not here: finding the record that a cut falls into (`read`).

use super::list::FileEntry;

/// A range of bytes of one file; records belong to the part that their first byte is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Index into the scan's files.
    pub file: usize,
    pub start: u64,
    pub end: u64,
}

/// A part smaller than this isn't worth another seek.
const PART_BYTES_MIN: u64 = 256 * 1024;

/// A file costs about this much beside its bytes: opening, looking, a batch of its own.
const FILE_COST: u64 = 4 * 1024;

/// Shares the files out into at most `shares` lists of about equal size, in order; at least one list, maybe empty.
///
/// Think of the files laid end to end and the whole divided into equal shares: a file that `can_cut` is cut where a
/// share ends, any other belongs to the share that its middle is in.
pub fn split(files: &[FileEntry], shares: usize, can_cut: impl Fn(&FileEntry) -> bool) -> Vec<Vec<Part>> {
    let shares = shares.max(1) as u64;
    let total: u64 = files.iter().map(|file| file.size + FILE_COST).sum();
    let share = total.div_ceil(shares).max(1);
    let mut lists = vec![Vec::new(); shares as usize];
    let mut at = 0;
    for (file, entry) in files.iter().enumerate() {
        let mut start = 0;
        if can_cut(entry) {
            let first = (at + PART_BYTES_MIN).div_ceil(share);
            let ends = (first..shares).map(|ordinal| ordinal * share - at);
            for end in ends.take_while(|end| end + PART_BYTES_MIN <= entry.size) {
                if end - start >= PART_BYTES_MIN {
                    lists[((at + (start + end) / 2) / share) as usize].push(Part { file, start, end });
                    start = end;
                }
            }
        }
        lists[((at + (start + entry.size) / 2) / share) as usize].push(Part { file, start, end: entry.size });
        at += entry.size + FILE_COST;
    }
    lists.retain(|list| !list.is_empty());
    if lists.is_empty() { vec![Vec::new()] } else { lists }
}

/// Cuts the files into parts of at most `bytes`, where they can be cut.
pub fn cut(files: &[FileEntry], bytes: u64, can_cut: impl Fn(&FileEntry) -> bool) -> Vec<Part> {
    let mut parts = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        let step = if can_cut(file) { bytes } else { u64::MAX };
        let mut start: u64 = 0;
        loop {
            let end = start.saturating_add(step).min(file.size);
            parts.push(Part { file: index, start, end });
            if end >= file.size {
                break;
            }
            start = end;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::tests::entry;
    use super::*;

    fn files(sizes: &[u64]) -> Vec<FileEntry> {
        sizes.iter().map(|size| FileEntry { size: *size, ..entry("/f") }).collect()
    }

    fn check(files: &[FileEntry], lists: &[Vec<Part>]) {
        let mut parts = lists.iter().flatten();
        for (index, file) in files.iter().enumerate() {
            let mut at = 0;
            loop {
                let part = parts.next().unwrap();
                assert_eq!((part.file, part.start), (index, at));
                at = part.end;
                if at == file.size {
                    break;
                }
            }
        }
        assert_eq!(parts.next(), None);
    }

    #[test]
    fn shares_are_about_equal_and_lose_nothing() {
        let cases: [&[u64]; 6] =
            [&[], &[0, 0, 1], &[1 << 30], &[800 * 1024; 1100], &[10, 1 << 30, 10], &[100 << 20, 1 << 20, 300 << 20, 5]];
        for sizes in cases {
            let files = files(sizes);
            for shares in [1, 2, 7] {
                let lists = split(&files, shares, |_| true);
                assert!(lists.len() <= shares);
                check(&files, &lists);
                let total: u64 = sizes.iter().sum();
                let biggest: u64 =
                    lists.iter().map(|list| list.iter().map(|part| part.end - part.start).sum()).max().unwrap();
                assert!(biggest <= total / shares as u64 + 1024 * 1024, "{sizes:?} {shares} {biggest}");
            }
        }
    }

    #[test]
    fn files_that_cannot_be_cut_stay_whole() {
        let files = files(&[100, 1 << 30, 1 << 30, 5]);
        let lists = split(&files, 2, |_| false);
        check(&files, &lists);
        assert_eq!(lists.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    }

    #[test]
    fn parts_for_a_sample_are_of_bounded_size() {
        let parts = cut(&files(&[10, 0]), 4, |_| true);
        let ends: Vec<_> = parts.iter().map(|part| (part.file, part.start, part.end)).collect();
        assert_eq!(ends, [(0, 0, 4), (0, 4, 8), (0, 8, 10), (1, 0, 0)]);
    }
}
