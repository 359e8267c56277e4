//! Blocks of a run: members one behind the other, compressed by LZ4 where that makes them smaller, with a checksum.
//!
//! ```text
//! u32 length of the members, high bit: not compressed · bytes · u64 XXH3 of all before, seeded with the block's number
//! ```
//!
//! Also here: the cache of blocks in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use twox_hash::XxHash3_64;

/// A block is closed when its members reach this.
pub(super) const BLOCK_BYTES: usize = 8 << 10;

/// The largest block: one member, as lengths have 31 bits.
pub(super) const BLOCK_MAX: usize = (1 << 31) - 1;

const NOT_COMPRESSED: u32 = 1 << 31;
const HEAD: usize = 4;
const CHECKSUM: usize = 8;

/// Makes blocks; keeps what LZ4 needs from one to the next.
pub(super) struct Compressor {
    table: CompressTable,
}

impl Compressor {
    pub fn new() -> Compressor {
        Compressor { table: CompressTable::small() }
    }

    /// Appends block `number` of these members to `out`; returns its length.
    pub fn put(&mut self, number: usize, members: &[u8], out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.resize(start + HEAD + get_maximum_output_size(members.len()), 0);
        let compressed = compress_into_with_table(members, &mut out[start + HEAD..], &mut self.table);
        let mut length = members.len() as u32;
        match compressed {
            // An eighth is worth the time to undo it.
            Ok(compressed) if compressed < members.len() - members.len() / 8 => out.truncate(start + HEAD + compressed),
            _ => {
                length |= NOT_COMPRESSED;
                out.truncate(start + HEAD);
                out.extend_from_slice(members);
            }
        }
        out[start..start + HEAD].copy_from_slice(&length.to_le_bytes());
        let checksum = XxHash3_64::oneshot_with_seed(number as u64, &out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.len() - start
    }
}

/// The members of block `number` into `members`; None: the block is damaged.
pub(super) fn open(number: usize, block: &[u8], members: &mut Vec<u8>) -> Option<()> {
    let (framed, checksum) = block.split_last_chunk::<CHECKSUM>()?;
    if XxHash3_64::oneshot_with_seed(number as u64, framed) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let (length, bytes) = framed.split_first_chunk::<HEAD>()?;
    let length = u32::from_le_bytes(*length);
    members.clear();
    if length & NOT_COMPRESSED != 0 {
        members.extend_from_slice(bytes);
        return Some(());
    }
    members.resize(length as usize, 0);
    (decompress_into(bytes, members).ok()? == members.len()).then_some(())
}

/// The cache's bound, in bytes of members.
const CACHE_BYTES: usize = 48 << 20;

/// Blocks in memory, by run and number; the ones not asked for lately make room.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    blocks: Mutex<Cached>,
}

#[derive(Debug, Default)]
struct Cached {
    by_place: HashMap<(u64, u32), Entry>,
    /// In order of arrival; a block that was used since gets another round.
    order: VecDeque<(u64, u32)>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    members: Arc<Vec<u8>>,
    is_used: bool,
}

impl BlockCache {
    pub fn get(&self, run: u64, number: usize) -> Option<Arc<Vec<u8>>> {
        let mut cached = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = cached.by_place.get_mut(&(run, number as u32))?;
        entry.is_used = true;
        Some(Arc::clone(&entry.members))
    }

    pub fn insert(&self, run: u64, number: usize, members: &Arc<Vec<u8>>) {
        let mut cached = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (run, number as u32);
        let entry = Entry { members: Arc::clone(members), is_used: false };
        cached.bytes += members.capacity();
        match cached.by_place.insert(place, entry) {
            Some(old) => cached.bytes -= old.members.capacity(),
            None => cached.order.push_back(place),
        }
        while cached.bytes > CACHE_BYTES {
            let Some(place) = cached.order.pop_front() else { break };
            let Some(entry) = cached.by_place.get_mut(&place) else { continue };
            if entry.is_used {
                entry.is_used = false;
                cached.order.push_back(place);
            } else if let Some(old) = cached.by_place.remove(&place) {
                cached.bytes -= old.members.capacity();
            }
        }
    }

    /// Forgets the blocks of runs that are no more.
    pub fn retain_runs(&self, is_alive: impl Fn(u64) -> bool) {
        let mut cached = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        cached.order.retain(|(run, _)| is_alive(*run));
        cached.by_place.retain(|(run, _), _| is_alive(*run));
        cached.bytes = cached.by_place.values().map(|entry| entry.members.capacity()).sum();
    }
}
