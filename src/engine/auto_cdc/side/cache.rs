//! Blocks in memory, by run and number.
//!
//! Which one makes room for another is left to chance, among those not asked for lately: look-ups go through all keys
//! in order again and again, and with the oldest block leaving first, none would be there when its turn comes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::block::Block;

/// The cache's bound.
const CACHE_BYTES: usize = 96 << 20;

/// The blocks that are kept.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    blocks: Mutex<Cached>,
}

#[derive(Debug, Default)]
struct Cached {
    by_place: HashMap<(u64, u32), Entry>,
    /// The same places, to choose from.
    places: Vec<(u64, u32)>,
    bytes: usize,
    chance: u64,
}

#[derive(Debug)]
struct Entry {
    block: Arc<Block>,
    /// Asked for since it was last chosen to make room, which it then didn't.
    is_used: bool,
}

impl BlockCache {
    pub fn get(&self, run: u64, number: usize) -> Option<Arc<Block>> {
        let mut cached = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = cached.by_place.get_mut(&(run, number as u32))?;
        entry.is_used = true;
        Some(Arc::clone(&entry.block))
    }

    pub fn insert(&self, run: u64, number: usize, block: &Arc<Block>) {
        let mut cached = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (run, number as u32);
        let entry = Entry { block: Arc::clone(block), is_used: false };
        cached.bytes += block.byte_size();
        match cached.by_place.insert(place, entry) {
            Some(old) => cached.bytes -= old.block.byte_size(),
            None => cached.places.push(place),
        }
        while cached.bytes > CACHE_BYTES && !cached.places.is_empty() {
            cached.make_room();
        }
    }

    /// Forgets the blocks of runs that are no more.
    pub fn retain_runs(&self, is_alive: impl Fn(u64) -> bool) {
        let mut cached = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        cached.places.retain(|(run, _)| is_alive(*run));
        cached.by_place.retain(|(run, _), _| is_alive(*run));
        cached.bytes = cached.by_place.values().map(|entry| entry.block.byte_size()).sum();
    }
}

impl Cached {
    /// Chooses a block; it leaves if it wasn't asked for since the last time.
    fn make_room(&mut self) {
        // Weyl's sequence, mixed: no need for better chance than this.
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.chance ^ (self.chance >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let chosen = ((mixed >> 32) as usize) % self.places.len();
        let place = self.places[chosen];
        match self.by_place.get_mut(&place) {
            Some(entry) if entry.is_used => entry.is_used = false,
            _ => {
                self.places.swap_remove(chosen);
                if let Some(old) = self.by_place.remove(&place) {
                    self.bytes -= old.block.byte_size();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_keeps_its_bound_and_part_of_what_is_gone_through_in_order() {
        let cache = BlockCache::default();
        let block = Arc::new(Block::new(vec![0; 1 << 20]));
        let count = CACHE_BYTES / block.byte_size() * 5 / 4;
        let mut found = 0;
        for _ in 0..10 {
            for number in 0..count {
                match cache.get(1, number) {
                    Some(_) => found += 1,
                    None => cache.insert(1, number, &block),
                }
            }
            let cached = cache.blocks.lock().unwrap();
            assert_eq!(cached.places.len(), cached.by_place.len());
            assert_eq!(cached.bytes, cached.places.len() * block.byte_size());
            assert!(cached.bytes <= CACHE_BYTES);
        }
        assert!(found > count * 4, "{found} of {} were there", count * 9);
        cache.retain_runs(|_| false);
        assert!(cache.get(1, 0).is_none());
    }
}
