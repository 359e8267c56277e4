//! A filter that says which keys are surely not in a run: a split-block Bloom filter, as in Parquet. A probe looks at
//! 32 bytes, one cache line.

use twox_hash::XxHash3_64;

/// False positives: about one in 200.
const BITS_PER_KEY: usize = 12;
const BLOCK: usize = 32;
/// So that a filter made for too many keys can be halved this often.
const FOLDS: usize = 16;

const SALT: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// The hash of a key, for filters of all runs.
#[inline]
pub(super) fn hash(key: &[u8]) -> u64 {
    XxHash3_64::oneshot(key)
}

/// A filter, as its bytes lie in the file: blocks of eight little-endian words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bloom {
    bytes: Vec<u8>,
}

impl Bloom {
    /// An empty filter for up to `keys` keys.
    pub fn new(keys: u64) -> Bloom {
        let blocks = (keys as usize * BITS_PER_KEY).div_ceil(BLOCK * 8).max(1);
        let blocks = if blocks >= FOLDS { blocks.next_multiple_of(FOLDS) } else { blocks };
        Bloom { bytes: vec![0; blocks * BLOCK] }
    }

    /// A filter from its bytes; None: they are none.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Bloom> {
        (!bytes.is_empty() && bytes.len().is_multiple_of(BLOCK)).then_some(Bloom { bytes })
    }

    /// The bytes, made smaller if the filter holds far fewer keys than it was made for.
    pub fn into_bytes(mut self, keys: u64) -> Vec<u8> {
        let wanted = Bloom::new(keys).bytes.len();
        while self.bytes.len() >= wanted * 2 && self.bytes.len().is_multiple_of(BLOCK * 2) {
            self.bytes = fold(&self.bytes);
        }
        self.bytes
    }

    #[inline]
    fn block(&self, hash: u64) -> usize {
        let blocks = (self.bytes.len() / BLOCK) as u64;
        // The high half of the hash, spread over the blocks; folding the filter halves this number.
        (((hash >> 32) * blocks) >> 32) as usize * BLOCK
    }

    /// Adds a key.
    #[inline]
    pub fn insert(&mut self, hash: u64) {
        let at = self.block(hash);
        let (words, _) = self.bytes[at..at + BLOCK].as_chunks_mut::<4>();
        for (word, bit) in words.iter_mut().zip(bits(hash)) {
            *word = (u32::from_le_bytes(*word) | bit).to_le_bytes();
        }
    }

    /// Whether the key may be there.
    #[inline]
    pub fn may_have(&self, hash: u64) -> bool {
        let at = self.block(hash);
        let (words, _) = self.bytes[at..at + BLOCK].as_chunks::<4>();
        words.iter().zip(bits(hash)).all(|(word, bit)| u32::from_le_bytes(*word) & bit != 0)
    }
}

/// The bit of each word that stands for a key.
#[inline]
fn bits(hash: u64) -> [u32; 8] {
    SALT.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

/// Lays neighbouring blocks over each other.
fn fold(bytes: &[u8]) -> Vec<u8> {
    let pair = |pair: &[u8]| std::array::from_fn::<u8, BLOCK, _>(|i| pair[i] | pair[BLOCK + i]);
    bytes.chunks_exact(BLOCK * 2).flat_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_knows_its_keys_and_few_others() {
        for (keys, made_for) in [(1, 1), (10, 1_000), (5_000, 5_000), (5_000, 40_000), (20_000, 27_000)] {
            let key = |i: u64| hash(&i.to_le_bytes());
            let mut bloom = Bloom::new(made_for);
            (0..keys).for_each(|i| bloom.insert(key(i)));
            let bloom = Bloom::from_bytes(bloom.into_bytes(keys)).unwrap();
            assert!(bloom.bytes.len() <= Bloom::new(keys).bytes.len() * 2 + 64 * BLOCK, "{keys} of {made_for}");
            assert!((0..keys).all(|i| bloom.may_have(key(i))));
            let false_positives = (keys..keys + 100_000).filter(|i| bloom.may_have(key(*i))).count();
            assert!(false_positives < 1_000, "{false_positives} of 100000 with {keys} of {made_for}");
        }
    }
}
