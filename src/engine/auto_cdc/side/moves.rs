//! Where rows went when the target's files were compacted, so that compaction needn't rewrite the side table: a member
//! keeps its old location until its run is merged, and locations are resolved when they are read.
//!
//! `moves-<n>.side`: magic (8 bytes) · varint number of files · for each: varint file, varint number of pieces, for each:
//! varint first row, varint new file, varint base row, path and bitmap of deleted rows (Roaring's portable format), both
//! behind varint lengths · u64 XXH3 of all before.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::corrupted;
use super::member::Location;
use crate::auto_cdc::encode::varint;
use crate::error::{Error, Result};

const MAGIC: [u8; 8] = *b"FBMOVES\x01";

/// A file of the target whose rows lie elsewhere now.
#[derive(Debug, Clone, PartialEq)]
pub struct FileMove {
    pub file: u32,
    /// Ascending by first row; the first begins at row 0.
    pub pieces: Vec<MovePiece>,
}

/// Rows of a file from one row up to the next piece, which went to the same file in the same order.
#[derive(Debug, Clone, PartialEq)]
pub struct MovePiece {
    /// The piece's first row in the old file.
    pub first_row: u32,
    /// Where the rows are now: the file's number and path, and the row where the first one that was kept is.
    pub file: u32,
    pub path: String,
    pub base_row: u32,
    /// Rows of the old file that weren't kept.
    pub deleted: RoaringBitmap,
}

impl MovePiece {
    fn resolve(&self, row: u32) -> Option<Location> {
        if self.deleted.contains(row) {
            return None;
        }
        let deleted_before = |row: u32| row.checked_sub(1).map_or(0, |last| self.deleted.rank(last));
        let deleted = deleted_before(row) - deleted_before(self.first_row);
        let row = u64::from(self.base_row) + u64::from(row - self.first_row) - deleted;
        Some(Location { file: self.file, row: u32::try_from(row).ok()? })
    }
}

/// The file of moves that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovesEntry {
    pub id: u64,
    pub bytes: u64,
    #[serde(with = "super::manifest::hex_number")]
    pub checksum: u64,
}

/// All moves of a table.
#[derive(Debug, Default)]
pub(super) struct Moves {
    by_file: BTreeMap<u32, Vec<MovePiece>>,
    /// Old and new files of each file of moves.
    old_and_new: BTreeMap<u64, (BTreeSet<u32>, BTreeSet<u32>)>,
}

impl Moves {
    /// Adds the moves of a file.
    pub fn add(&mut self, path: &Path, entry: &MovesEntry) -> Result<()> {
        let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
        let moves =
            parse(&bytes, entry).ok_or_else(|| corrupted(path, "its checksum is not the one in the manifest"))?;
        let (old, new) = self.old_and_new.entry(entry.id).or_default();
        for FileMove { file, pieces } in moves {
            old.insert(file);
            new.extend(pieces.iter().map(|piece| piece.file));
            self.by_file.insert(file, pieces);
        }
        Ok(())
    }

    /// Where the row that was once written to `location` is now; None: it is deleted.
    #[inline]
    pub fn resolve(&self, location: Location) -> Option<Location> {
        if self.by_file.is_empty() { Some(location) } else { self.follow(location) }
    }

    fn follow(&self, mut location: Location) -> Option<Location> {
        // A file's rows move once, to a newer file: the way ends.
        for _ in 0..=self.by_file.len() {
            let Some(pieces) = self.by_file.get(&location.file) else { return Some(location) };
            let piece = pieces.partition_point(|piece| piece.first_row <= location.row).checked_sub(1)?;
            location = pieces[piece].resolve(location.row)?;
        }
        None
    }

    /// Paths of the files that rows were moved to.
    pub fn paths(&self) -> impl Iterator<Item = (u32, &str)> {
        self.by_file.values().flatten().map(|piece| (piece.file, piece.path.as_str()))
    }

    /// The files of moves that locations in these files of the target need.
    pub fn needed(&self, mut files: BTreeSet<u32>) -> BTreeSet<u64> {
        let mut needed = BTreeSet::new();
        loop {
            let before = needed.len();
            for (id, (old, new)) in &self.old_and_new {
                if !needed.contains(id) && !old.is_disjoint(&files) {
                    needed.insert(*id);
                    files.extend(new);
                }
            }
            if needed.len() == before {
                return needed;
            }
        }
    }
}

/// Writes a file of moves and has it on disk.
pub(super) fn write(path: &Path, id: u64, moves: &[FileMove]) -> Result<MovesEntry> {
    for FileMove { file, pieces } in moves {
        let begins = pieces.first().is_some_and(|piece| piece.first_row == 0);
        if !begins || !pieces.is_sorted_by(|a, b| a.first_row < b.first_row) {
            return Err(Error::Internal(format!("the pieces of file {file}'s move are not in order")));
        }
    }
    let mut bytes = MAGIC.to_vec();
    varint::put(&mut bytes, moves.len() as u64);
    for FileMove { file, pieces } in moves {
        varint::put(&mut bytes, u64::from(*file));
        varint::put(&mut bytes, pieces.len() as u64);
        for piece in pieces {
            for number in [piece.first_row, piece.file, piece.base_row] {
                varint::put(&mut bytes, u64::from(number));
            }
            varint::put(&mut bytes, piece.path.len() as u64);
            bytes.extend_from_slice(piece.path.as_bytes());
            varint::put(&mut bytes, piece.deleted.serialized_size() as u64);
            piece.deleted.serialize_into(&mut bytes).map_err(|error| Error::io("write", path, error))?;
        }
    }
    let checksum = XxHash3_64::oneshot(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    let mut file = std::fs::File::create_new(path).map_err(|error| Error::io("create", path, error))?;
    file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(|error| Error::io("write", path, error))?;
    Ok(MovesEntry { id, bytes: bytes.len() as u64, checksum })
}

fn parse(bytes: &[u8], entry: &MovesEntry) -> Option<Vec<FileMove>> {
    let (content, checksum) = bytes.split_last_chunk::<8>()?;
    if u64::from_le_bytes(*checksum) != entry.checksum || XxHash3_64::oneshot(content) != entry.checksum {
        return None;
    }
    let mut bytes = content.strip_prefix(&MAGIC)?;
    let bytes = &mut bytes;
    let number = |bytes: &mut &[u8]| u32::try_from(varint::take(bytes)?).ok();
    let mut moves = Vec::new();
    for _ in 0..varint::take(bytes)? {
        let file = number(bytes)?;
        let mut pieces = Vec::new();
        for _ in 0..varint::take(bytes)? {
            let (first_row, file, base_row) = (number(bytes)?, number(bytes)?, number(bytes)?);
            let path = String::from_utf8(varint::take_bytes(bytes)?.to_vec()).ok()?;
            let deleted = RoaringBitmap::deserialize_from(varint::take_bytes(bytes)?).ok()?;
            pieces.push(MovePiece { first_row, file, path, base_row, deleted });
        }
        moves.push(FileMove { file, pieces });
    }
    bytes.is_empty().then_some(moves)
}
