//! What the bytes of a target's rows mean to its timelines: which leaves are tracked, and how those that an event is
//! silent about are filled.

use pipeline::timeline::RowBytes;

use super::encode::{LeafKind, RowCodec, join};

/// The rows of a target.
pub struct Rows {
    pub codec: RowCodec,
    /// By leaf; None: all of them.
    tracked: Option<Vec<bool>>,
    /// By leaf: a struct whose NULLs are ignored is there if one of its fields has a value, as Spark reads it.
    is_derived: Vec<bool>,
}

impl Rows {
    /// `tracked` and `ignored` tell of a column by its name whether its history is tracked and its NULLs are ignored.
    pub fn new(codec: RowCodec, tracked: impl Fn(&str) -> bool, ignored: impl Fn(&str) -> bool) -> Rows {
        let leaves = codec.layout().leaves();
        let by_leaf: Vec<bool> = leaves.iter().map(|leaf| tracked(&leaf.path[0])).collect();
        let is_derived = leaves.iter().map(|leaf| leaf.kind == LeafKind::Struct && ignored(&leaf.path[0])).collect();
        Rows { tracked: by_leaf.contains(&false).then_some(by_leaf), is_derived, codec }
    }

    /// Appends the flags of the leaves that an event says something about: `says` tells it of a column and the leaf's
    /// value.
    pub fn authored(&self, values: &[u8], mut says: impl FnMut(&str, Option<&[u8]>) -> bool) -> Vec<u8> {
        let leaves = self.codec.layout().leaves();
        let mut flags = vec![0_u8; leaves.len().div_ceil(8)];
        for (number, (leaf, value)) in leaves.iter().zip(self.codec.leaves(values)).enumerate() {
            if says(&leaf.path[0], value) {
                flags[number / 8] |= 1 << (number % 8);
            }
        }
        flags
    }
}

/// A leaf that came later than the flags is not authored.
fn is_authored(flags: &[u8], leaf: usize) -> bool {
    flags.get(leaf / 8).is_some_and(|byte| byte >> (leaf % 8) & 1 == 1)
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
            if !is_authored(authored, number) {
                *leaf = inherited;
            }
        }
        // Inner structs come behind the outer ones, so from the end each one's fields are settled.
        let paths = self.codec.layout().leaves();
        for number in (0..leaves.len()).rev().filter(|number| self.is_derived[*number]) {
            let path = &paths[number].path;
            let is_inside = |other: usize| paths[other].path.len() > path.len() && paths[other].path.starts_with(path);
            let has_value = (0..leaves.len()).any(|other| is_inside(other) && leaves[other].is_some());
            leaves[number] = has_value.then_some(&[]);
        }
        let mut filled = Vec::with_capacity(values.len());
        join(leaves.into_iter(), &mut filled);
        filled
    }
}
