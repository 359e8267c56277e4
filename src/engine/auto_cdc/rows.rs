//! What the bytes of a target's rows mean to its timelines: which leaves are tracked, and how those that an event is
//! silent about are filled.

use pipeline::timeline::RowBytes;

use super::encode::{LeafKind, RowCodec, join};
use super::silence;

/// The rows of a target.
pub struct Rows {
    pub codec: RowCodec,
    /// By leaf; None: all of them.
    tracked: Option<Vec<bool>>,
}

impl Rows {
    /// `tracked` tells of a column by its name whether its history is tracked.
    pub fn new(codec: RowCodec, tracked: impl Fn(&str) -> bool) -> Rows {
        let mut rows = Rows { codec, tracked: None };
        rows.tracked = Some(rows.by_leaf(tracked)).filter(|by_leaf| by_leaf.contains(&false));
        rows
    }

    /// What `tells` says of the column of each leaf.
    pub fn by_leaf(&self, tells: impl Fn(&str) -> bool) -> Vec<bool> {
        self.codec.layout().leaves().iter().map(|leaf| tells(&leaf.path[0])).collect()
    }

    /// The flags of an event whose NULLs are ignored in the leaves that `is_ignored` tells. Whether a struct of theirs is
    /// there its fields tell, as Spark reads it.
    pub fn authored_by_value(&self, values: &[u8], is_ignored: &[bool]) -> Vec<u8> {
        let leaves = self.codec.layout().leaves();
        let mut values = self.codec.leaves(values);
        silence::flags(leaves.len(), |number| {
            let has_value = values.next().flatten().is_some();
            has_value && leaves[number].kind != LeafKind::Struct || !is_ignored[number]
        })
    }
}

impl RowBytes for Rows {
    fn are_equal(&self, a: &[u8], b: &[u8]) -> bool {
        self.codec.equal(a, b)
    }

    fn are_tracked_equal(&self, a: &[u8], b: &[u8]) -> bool {
        let Some(tracked) = &self.tracked else { return self.codec.equal(a, b) };
        let pairs = self.codec.leaves(a).zip(self.codec.leaves(b)).enumerate();
        pairs.zip(tracked).all(|((leaf, (a, b)), is_tracked)| !is_tracked || self.codec.equal_leaf(leaf, a, b))
    }

    fn fill(&self, values: &[u8], authored: &[u8], before: Option<&[u8]>) -> Vec<u8> {
        let mut leaves: Vec<Option<&[u8]>> = self.codec.leaves(values).collect();
        let mut before = before.map(|before| self.codec.leaves(before));
        for (number, leaf) in leaves.iter_mut().enumerate() {
            let inherited = before.as_mut().and_then(Iterator::next).flatten();
            if !silence::is_set(authored, number) {
                *leaf = inherited;
            }
        }
        // A struct that nothing is said of, while something is of a field, is there if one has a value. Inner structs come
        // behind the outer ones, so from the end each one's fields are settled.
        let paths = self.codec.layout().leaves();
        let is_unsaid = |number: &usize| paths[*number].kind == LeafKind::Struct && !silence::is_set(authored, *number);
        for number in (0..leaves.len()).rev().filter(is_unsaid) {
            let path = &paths[number].path;
            let is_inside =
                |other: &usize| paths[*other].path.len() > path.len() && paths[*other].path.starts_with(path);
            let inside = || (0..leaves.len()).filter(is_inside);
            if inside().any(|other| silence::is_set(authored, other)) {
                leaves[number] = inside().any(|other| leaves[other].is_some()).then_some(&[]);
            }
        }
        let mut filled = Vec::with_capacity(values.len());
        join(leaves.into_iter(), &mut filled);
        filled
    }

    fn union(&self, a: &[u8], b: &[u8]) -> Vec<u8> {
        silence::union(a, b)
    }
}
