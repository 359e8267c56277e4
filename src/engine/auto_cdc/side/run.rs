//! A run that is open for reading. Footer and meta are read when it is opened, index and filter when they are first
//! needed, blocks when they are asked for. Everything is checked against its checksum.
//!
//! The file's format is in `run_writer`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use twox_hash::XxHash3_64;

use super::bloom::Bloom;
use super::manifest::RunEntry;
use super::run_writer::{FOOTER, MAGIC, Meta, footer_checksum};
use super::view::Wanted;
use super::{block, corrupted};
use crate::error::{Error, Result};

/// An open run. Deleting its file doesn't disturb it.
#[derive(Debug)]
pub(super) struct Run {
    pub entry: RunEntry,
    pub meta: Meta,
    file: File,
    path: PathBuf,
    sections: Sections,
    index: OnceLock<Index>,
    bloom: OnceLock<Bloom>,
}

/// Where index, filter, meta and footer begin, and the checksums of the first three.
#[derive(Debug, Clone, Copy)]
struct Sections {
    at: [u64; 4],
    checksums: [u64; 3],
}

impl Run {
    /// Opens the run that a manifest names. Errors: `io`, `side-table-corrupted`.
    pub fn open(path: &Path, entry: &RunEntry) -> Result<Run> {
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        let length = file.metadata().map_err(|error| Error::io("read", path, error))?.len();
        if length != entry.bytes || length < (MAGIC.len() + FOOTER) as u64 {
            return Err(corrupted(path, &format!("{length} bytes, not {}", entry.bytes)));
        }
        let magic = read(&file, path, 0, MAGIC.len())?;
        let footer = read(&file, path, length - FOOTER as u64, FOOTER)?;
        let (words, _) = footer.as_chunks::<8>();
        let word = |i: usize| u64::from_le_bytes(words[i]);
        let sections = Sections { at: [word(0), word(1), word(2), word(3)], checksums: [word(4), word(5), word(6)] };
        let checksum = footer_checksum(&footer[..FOOTER - 8]);
        let is_whole = magic == MAGIC
            && checksum == word(8)
            && checksum == entry.checksum
            && word(7) == entry.id
            && sections.at.is_sorted()
            && sections.at[3] == length - FOOTER as u64;
        if !is_whole {
            return Err(corrupted(path, "its footer is not the one that the manifest names"));
        }
        let meta = read_section(&file, path, &sections, 2)?;
        let meta = serde_json::from_slice(&meta).map_err(|error| corrupted(path, &error.to_string()))?;
        Ok(Run {
            entry: entry.clone(),
            meta,
            file,
            path: path.to_path_buf(),
            sections,
            index: OnceLock::new(),
            bloom: OnceLock::new(),
        })
    }

    /// Which of some keys, ascending, may be in the run, by their place in `keys`; `hashes` are theirs.
    pub fn may_have(&self, keys: &[Wanted], hashes: &[u64], candidates: &mut Vec<usize>) -> Result<()> {
        let start = keys.partition_point(|wanted| wanted.key < self.entry.first_key.as_slice());
        let end = keys.partition_point(|wanted| wanted.key <= self.entry.last_key.as_slice());
        if start < end {
            let bloom = self.bloom()?;
            candidates.extend((start..end).filter(|number| bloom.may_have(hashes[*number])));
        }
        Ok(())
    }

    fn bloom(&self) -> Result<&Bloom> {
        match self.bloom.get() {
            Some(bloom) => Ok(bloom),
            None => {
                let bytes = read_section(&self.file, &self.path, &self.sections, 1)?;
                let bloom = Bloom::from_bytes(bytes).ok_or_else(|| self.corrupted("its filter"))?;
                Ok(self.bloom.get_or_init(|| bloom))
            }
        }
    }

    pub fn index(&self) -> Result<&Index> {
        match self.index.get() {
            Some(index) => Ok(index),
            None => {
                let bytes = read_section(&self.file, &self.path, &self.sections, 0)?;
                let index = Index::from_bytes(bytes).ok_or_else(|| self.corrupted("its index"))?;
                Ok(self.index.get_or_init(|| index))
            }
        }
    }

    /// The bytes of the blocks from `first` up to `end` as they lie in the file.
    pub fn read_blocks(&self, first: usize, end: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let index = self.index()?;
        let (from, to) = (index.start(first), index.start(end));
        if from > to || to > self.sections.at[0] {
            return Err(self.corrupted("its index"));
        }
        bytes.resize((to - from) as usize, 0);
        self.file.read_exact_at(bytes, from).map_err(|error| Error::io("read", &self.path, error))
    }

    /// The members of a block.
    pub fn open_block(&self, number: usize, bytes: &[u8], members: &mut Vec<u8>) -> Result<()> {
        block::open(number, bytes, members).ok_or_else(|| self.corrupted(&format!("block {number}")))
    }

    pub fn corrupted(&self, what: &str) -> Error {
        corrupted(&self.path, what)
    }
}

fn read(file: &File, path: &Path, at: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).map_err(|error| Error::io("read", path, error))?;
    Ok(bytes)
}

fn read_section(file: &File, path: &Path, sections: &Sections, number: usize) -> Result<Vec<u8>> {
    let length = (sections.at[number + 1] - sections.at[number]) as usize;
    let bytes = read(file, path, sections.at[number], length)?;
    match XxHash3_64::oneshot(&bytes) == sections.checksums[number] {
        true => Ok(bytes),
        false => Err(corrupted(path, "a checksum differs")),
    }
}

/// Where the blocks are, and which keys begin them; as it lies in the file.
#[derive(Debug)]
pub(super) struct Index {
    bytes: Vec<u8>,
    blocks: usize,
    /// Where the ends of separators begin, and the separators.
    ends_at: usize,
    separators_at: usize,
}

impl Index {
    fn from_bytes(bytes: Vec<u8>) -> Option<Index> {
        let blocks = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        let ends_at = 4 + (blocks + 1) * 8;
        let separators_at = ends_at + (blocks + 1) * 4;
        let index = Index { bytes, blocks, ends_at, separators_at };
        let is_whole = index.bytes.len() >= separators_at
            && (0..blocks).all(|i| index.end(i) <= index.end(i + 1) && index.start(i) < index.start(i + 1))
            && index.end(blocks) == index.bytes.len() - separators_at;
        is_whole.then_some(index)
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.blocks
    }

    /// Where a block begins in the file; that of the last but one ends there.
    #[inline]
    fn start(&self, block: usize) -> u64 {
        let at = 4 + block * 8;
        u64::from_le_bytes(std::array::from_fn(|i| self.bytes[at + i]))
    }

    #[inline]
    fn end(&self, separator: usize) -> usize {
        let at = self.ends_at + separator * 4;
        u32::from_le_bytes(std::array::from_fn(|i| self.bytes[at + i])) as usize
    }

    #[inline]
    fn separator(&self, block: usize) -> &[u8] {
        &self.bytes[self.separators_at + self.end(block)..self.separators_at + self.end(block + 1)]
    }

    /// The place of a block in the bytes of the blocks from `first` on.
    pub fn range_within(&self, first: usize, block: usize) -> std::ops::Range<usize> {
        let first = self.start(first);
        (self.start(block) - first) as usize..(self.start(block + 1) - first) as usize
    }

    /// The block where a key begins if the run has it: the last one whose separator isn't above the key. `from` is a
    /// block that is surely not behind it; the nearer, the faster.
    pub fn find(&self, key: &[u8], from: usize) -> usize {
        // Steps that double, then halving: a near block is found in a few steps, a far one in twice a binary search.
        let (mut low, mut step) = (from, 1);
        while low + step < self.blocks && self.separator(low + step) <= key {
            low += step;
            step *= 2;
        }
        let mut high = (low + step).min(self.blocks);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.separator(middle) <= key { low = middle } else { high = middle }
        }
        low
    }
}
