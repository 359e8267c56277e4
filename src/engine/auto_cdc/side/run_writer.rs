//! Writes a run. Its file:
//!
//! ```text
//! magic (8 bytes) · blocks
//! index:  u32 blocks n · (n + 1) × u64 where each begins · (n + 1) × u32 ends of the separators · separators
//! filter: see `bloom`
//! meta:   JSON: the run's number, how many members and keys, paths of the target's files by number
//! footer: u64 × 4 where index, filter, meta and footer begin · u64 × 3 their XXH3 · u64 the run's number
//!         · u64 XXH3 of the footer so far, seeded with the magic
//! ```
//!
//! Numbers are little-endian. The separator of a block is the shortest key-like string above every key of the block
//! before and not above its own first key. If the block begins within a key, it is that key and a zero: no key begins
//! another one.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::block::{self, BLOCK_BYTES, BLOCK_MAX, Block, Compressor};
use super::bloom::{self, Bloom};
use super::cache::BlockCache;
use super::manifest::RunEntry;
use super::member::{self, Head, Location, MemberRef};
use crate::error::{Error, Result};

pub(super) const MAGIC: [u8; 8] = *b"FBSIDE\0\x01";
pub(super) const FOOTER: usize = 9 * 8;

/// Bytes are handed to the file in pieces of about this size.
const WRITE_BYTES: usize = 1 << 20;

/// So many bytes of a run are not compressed. A small run is soon merged into another: packing and unpacking it would
/// take longer than it saves.
const PLAIN_BYTES: u64 = 16 << 20;

/// So many bytes of a run go to the cache when it is written. A small run is likely to be asked for soon; a large one
/// would drive out everything else.
const CACHED_BYTES: u64 = 16 << 20;

/// What a run says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meta {
    pub run: u64,
    pub members: u64,
    pub keys: u64,
    /// Paths of the target's files that members of this run lie in, by number.
    pub files: BTreeMap<u32, String>,
}

/// A run that is being written. Dropped before [`RunWriter::finish`], it deletes its file.
pub(super) struct RunWriter<'c> {
    run: u64,
    path: PathBuf,
    file: File,
    is_finished: bool,
    /// Blocks go there as well.
    cache: &'c BlockCache,
    compressor: Compressor,
    /// Members of the block at hand.
    block: Vec<u8>,
    /// Finished bytes that are not in the file yet, and where they go.
    pending: Vec<u8>,
    offset: u64,
    starts: Vec<u64>,
    separator_ends: Vec<u32>,
    separators: Vec<u8>,
    bloom: Bloom,
    members: u64,
    keys: u64,
    first_key: Vec<u8>,
    last: Option<(Vec<u8>, Vec<u8>)>,
    referenced: RoaringBitmap,
}

impl<'c> RunWriter<'c> {
    /// Begins run number `run` at `path`, for up to `keys_max` keys.
    pub fn create(path: &Path, run: u64, keys_max: u64, cache: &'c BlockCache) -> Result<RunWriter<'c>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(|error| Error::io("create", path, error))?;
        Ok(RunWriter {
            run,
            path: path.to_path_buf(),
            file,
            is_finished: false,
            cache,
            compressor: Compressor::new(),
            block: Vec::with_capacity(BLOCK_BYTES * 2),
            pending: MAGIC.to_vec(),
            offset: MAGIC.len() as u64,
            starts: Vec::new(),
            separator_ends: Vec::new(),
            separators: Vec::new(),
            bloom: Bloom::new(keys_max),
            members: 0,
            keys: 0,
            first_key: Vec::new(),
            last: None,
            referenced: RoaringBitmap::new(),
        })
    }

    /// Appends a member, which comes after all before it.
    pub fn push(&mut self, member: &MemberRef) -> Result<()> {
        if member.rank.class > member::CLASS_MAX {
            return Err(Error::Internal(format!("the class of a rank is {}", member.rank.class)));
        }
        self.begin_member(member.key, member.sequence, member.location)?;
        member.put(&mut self.block);
        self.end_member()
    }

    /// Appends a member as it lies in a block of another run.
    pub fn push_as_it_is(&mut self, block: &[u8], head: &Head, location: Option<Location>) -> Result<()> {
        self.begin_member(head.key(block), head.sequence(block), location)?;
        self.block.extend_from_slice(head.member(block));
        self.end_member()
    }

    /// The last member's key.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.last.as_ref().map(|(key, _)| key.as_slice())
    }

    fn begin_member(&mut self, key: &[u8], sequence: &[u8], location: Option<Location>) -> Result<()> {
        let is_new_key = match &self.last {
            None => {
                self.first_key = key.to_vec();
                true
            }
            Some((last_key, last_sequence)) => {
                if member::compare((last_key, last_sequence), (key, sequence)).is_ge() {
                    return Err(Error::Internal("members of a run are not in order".into()));
                }
                last_key != key
            }
        };
        if self.block.is_empty() {
            self.begin_block(key, is_new_key);
        }
        let (last_key, last_sequence) = self.last.get_or_insert_default();
        if is_new_key {
            self.bloom.insert(bloom::hash(key));
            self.keys += 1;
            last_key.clear();
            last_key.extend_from_slice(key);
        }
        last_sequence.clear();
        last_sequence.extend_from_slice(sequence);
        self.members += 1;
        if let Some(location) = location {
            self.referenced.insert(location.file);
        }
        Ok(())
    }

    fn begin_block(&mut self, key: &[u8], is_new_key: bool) {
        match &self.last {
            None => {}
            Some(_) if !is_new_key => {
                self.separators.extend_from_slice(key);
                self.separators.push(0);
            }
            Some((last, _)) => {
                let common = last.iter().zip(key).take_while(|(a, b)| a == b).count();
                self.separators.extend_from_slice(&key[..(common + 1).min(key.len())]);
            }
        }
        self.separator_ends.push(self.separators.len() as u32);
        self.starts.push(self.offset);
    }

    fn end_member(&mut self) -> Result<()> {
        if self.block.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        if self.block.len() > BLOCK_MAX {
            return Err(Error::Internal(format!("a member of {} bytes", self.block.len())));
        }
        let number = self.starts.len() - 1;
        let length = match self.offset < PLAIN_BYTES {
            true => block::put_plain(number, &self.block, &mut self.pending),
            false => self.compressor.put(number, &self.block, &mut self.pending),
        };
        self.offset += length as u64;
        if self.offset < CACHED_BYTES {
            self.cache.insert(self.run, number, &Arc::new(Block::new(self.block.clone())));
        }
        self.block.clear();
        if self.pending.len() >= WRITE_BYTES { self.write_pending() } else { Ok(()) }
    }

    fn write_pending(&mut self) -> Result<()> {
        self.file.write_all(&self.pending).map_err(|error| Error::io("write", &self.path, error))?;
        self.pending.clear();
        Ok(())
    }

    /// Ends the run; its file has still to be synced. `path_of` tells the paths of the target's files.
    pub fn finish(mut self, path_of: impl Fn(u32) -> Option<String>) -> Result<(RunEntry, File)> {
        self.end_block()?;
        let path_of = |file| match path_of(file) {
            Some(path) => Ok((file, path)),
            None => Err(Error::Internal(format!("a member lies in file {file} of the target, which nobody knows"))),
        };
        let files = self.referenced.iter().map(path_of).collect::<Result<_>>()?;
        let meta = Meta { run: self.run, members: self.members, keys: self.keys, files };
        let meta = serde_json::to_vec(&meta).map_err(|error| Error::Internal(error.to_string()))?;
        let filter = std::mem::replace(&mut self.bloom, Bloom::new(0)).into_bytes(self.keys);

        let mut footer = Vec::with_capacity(FOOTER);
        let mut at = self.offset;
        let mut checksums = Vec::new();
        for section in [self.index(), filter, meta] {
            footer.extend_from_slice(&at.to_le_bytes());
            at += section.len() as u64;
            checksums.extend_from_slice(&XxHash3_64::oneshot(&section).to_le_bytes());
            self.pending.extend_from_slice(&section);
        }
        footer.extend_from_slice(&at.to_le_bytes());
        footer.extend_from_slice(&checksums);
        footer.extend_from_slice(&self.run.to_le_bytes());
        let checksum = footer_checksum(&footer);
        footer.extend_from_slice(&checksum.to_le_bytes());
        self.pending.extend_from_slice(&footer);
        self.write_pending()?;
        let file = self.file.try_clone().map_err(|error| Error::io("write", &self.path, error))?;
        self.is_finished = true;
        let entry = RunEntry {
            id: self.run,
            bytes: at + FOOTER as u64,
            members: self.members,
            keys: self.keys,
            first_key: std::mem::take(&mut self.first_key),
            last_key: self.last.take().unwrap_or_default().0,
            checksum,
        };
        Ok((entry, file))
    }

    fn index(&self) -> Vec<u8> {
        let mut index = Vec::with_capacity(4 + self.starts.len() * 12 + 12 + self.separators.len());
        index.extend_from_slice(&(self.starts.len() as u32).to_le_bytes());
        self.starts.iter().chain([&self.offset]).for_each(|start| index.extend_from_slice(&start.to_le_bytes()));
        [0].iter().chain(&self.separator_ends).for_each(|end| index.extend_from_slice(&end.to_le_bytes()));
        index.extend_from_slice(&self.separators);
        index
    }
}

impl Drop for RunWriter<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            // Nobody names it; a leftover would be swept when the table is opened.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The checksum of a footer without its checksum. The magic is its seed: bytes of another format never match.
pub(super) fn footer_checksum(footer: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(u64::from_le_bytes(MAGIC), footer)
}
