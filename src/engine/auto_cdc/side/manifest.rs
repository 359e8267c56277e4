//! The manifest: everything that belongs to the side table, in one JSON file that is replaced at once. A last line with
//! the XXH3 of the text before it tells a damaged file from a whole one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::corrupted;
use super::moves::MovesEntry;
use crate::auto_cdc::encode::Layout;
use crate::auto_cdc::silence::Silence;
use crate::error::{Error, Result};

/// The file's name.
pub const MANIFEST: &str = "manifest.json";

/// The version of the formats of manifest and runs. From 3 on, what an event says may hold names of columns that the
/// table doesn't have, and weaker events of its sequence.
pub(super) const FORMAT: u32 = 3;

/// The earliest version whose tables are as well those of [`FORMAT`].
const FORMAT_SINCE: u32 = 2;

const CHECKSUM: &str = "xxh3 ";

/// What a side table consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format.
    format: u32,
    /// Grows by one with every commit.
    version: u64,
    /// Whether a key's older members are kept.
    retention: Retention,
    /// Whether older members were dropped before all were kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_dropped: bool,
    /// What the target is: SCD type, keys, sequence, tracked columns; the flows' matter.
    pub spec: serde_json::Value,
    /// The leaves of the members' values.
    pub layout: Layout,
    /// Flows that wrote members, by the number that ranks have.
    pub flows: Vec<Flow>,
    /// The last batch of each application id.
    pub txns: BTreeMap<String, u64>,
    /// What is below the last one is deleted, unseen keys included (SCD type 1). Up to 256 are kept, the highest ones, to
    /// tell which of them an event met.
    pub floors: Vec<Floor>,
    /// The last snapshot that was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// The target's commit that belongs to this version and may not be in its log yet.
    pub pending: Option<serde_json::Value>,
    /// The target's version that its last commit was made over; None while a full refresh builds it elsewhere.
    pub made_over: Option<i64>,
    /// Counts that are kept with the members.
    pub counters: BTreeMap<String, u64>,
    /// The next file of the target gets this number.
    pub(super) next_file: u32,
    /// The next file of the side table gets this number.
    pub(super) next_id: u64,
    /// Oldest first.
    pub(super) runs: Vec<RunEntry>,
    pub(super) moves: Vec<MovesEntry>,
    /// Files that readers of the version before may still open. The next commit deletes them.
    pub(super) retired: Vec<String>,
}

/// Which members of a key are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// The one with the highest sequence; merges drop the others. None is written of a lower sequence than one that is
    /// there: so a key's newest member is in the newest run that has the key.
    Newest,
    All,
}

/// A flow that wrote members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    pub id: String,
    pub generation: i64,
    pub name: String,
    /// The class of its members' ranks.
    pub class: u8,
    /// What its events say nothing about.
    pub silence: Silence,
}

impl Flow {
    /// Whether both are one to members: a new generation is another flow, and so is one of another class, or that is
    /// silent about other columns.
    pub fn is_same(&self, other: &Flow) -> bool {
        let is_one = self.id == other.id && self.generation == other.generation;
        is_one && self.class == other.class && self.silence == other.silence
    }
}

/// A snapshot that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// As sequences are encoded.
    #[serde(with = "hex")]
    pub version: Vec<u8>,
}

/// How many floors are kept, the highest ones.
const FLOORS_KEPT: usize = 256;

/// Events at or below a sequence are void.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    #[serde(with = "hex")]
    pub sequence: Vec<u8>,
    /// Whether events of this very sequence are void too: so for TRUNCATE, not for a snapshot's absence.
    pub is_inclusive: bool,
    pub raised_by: FloorBatch,
}

/// A micro-batch that raised a floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloorBatch {
    /// The flow's number in [`Manifest::flows`].
    pub flow: u32,
    pub batch: u64,
}

/// A run that belongs to the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEntry {
    pub id: u64,
    pub bytes: u64,
    pub members: u64,
    pub keys: u64,
    #[serde(with = "hex")]
    pub first_key: Vec<u8>,
    #[serde(with = "hex")]
    pub last_key: Vec<u8>,
    /// The checksum in the run's footer, which covers its other checksums.
    #[serde(with = "hex_number")]
    pub checksum: u64,
}

impl RunEntry {
    pub(super) fn file_name(&self) -> String {
        run_name(self.id)
    }
}

pub(super) fn run_name(id: u64) -> String {
    format!("run-{id:08}.side")
}

pub(super) fn moves_name(id: u64) -> String {
    format!("moves-{id:08}.side")
}

impl Manifest {
    pub(super) fn new(retention: Retention, spec: serde_json::Value, layout: Layout) -> Manifest {
        Manifest {
            format: FORMAT,
            version: 0,
            retention,
            has_dropped: false,
            spec,
            layout,
            flows: Vec::new(),
            txns: BTreeMap::new(),
            floors: Vec::new(),
            snapshot: None,
            pending: None,
            made_over: None,
            counters: BTreeMap::new(),
            next_file: 0,
            next_id: 0,
            runs: Vec::new(),
            moves: Vec::new(),
            retired: Vec::new(),
        }
    }

    /// How many commits made it.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn next_version(&mut self) {
        self.version += 1;
    }

    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// Keeps all members of a key from now on. Those that were dropped before lie beneath whole rows and don't matter.
    pub fn keep_all(&mut self) {
        self.has_dropped |= self.retention == Retention::Newest && !self.runs.is_empty();
        self.retention = Retention::All;
    }

    /// Whether all members of a key are there.
    pub fn has_all(&self) -> bool {
        self.retention == Retention::All && !self.has_dropped
    }

    /// The runs, oldest first.
    pub fn runs(&self) -> &[RunEntry] {
        &self.runs
    }

    /// Whether compaction's moves are still resolved when locations are read; merging all runs ends that.
    pub fn has_moves(&self) -> bool {
        !self.moves.is_empty()
    }

    /// Takes in the floor of a batch, which is as high as the last one or higher.
    pub fn raise_floor(&mut self, floor: Option<Floor>) {
        if floor.as_ref() != self.floors.last() {
            self.floors.extend(floor);
            let gone = self.floors.len().saturating_sub(FLOORS_KEPT);
            self.floors.drain(..gone);
        }
    }

    /// The floor that made events of a sequence void: the first that covers them. None: nobody, or it isn't kept any
    /// more.
    pub fn voided_by(&self, covers: impl Fn(&Floor) -> bool) -> Option<&Floor> {
        let at = self.floors.iter().position(covers)?;
        // One before it may have been forgotten.
        (at > 0 || self.floors.len() < FLOORS_KEPT).then(|| &self.floors[at])
    }

    /// Whether a target that is at `version` has lost commits that the side table was made with.
    pub fn is_ahead_of(&self, version: i64) -> bool {
        self.made_over.is_some_and(|made_over| version < made_over)
    }

    /// The number of a flow in ranks; a flow that isn't known gets one.
    pub fn flow_number(&mut self, flow: &Flow) -> u32 {
        let number = self.flows.iter().position(|known| known.is_same(flow)).unwrap_or_else(|| {
            self.flows.push(flow.clone());
            self.flows.len() - 1
        });
        number as u32
    }

    /// Names of the files that the manifest needs, or leaves to readers of the version before.
    pub(super) fn file_names(&self) -> impl Iterator<Item = String> {
        let runs = self.runs.iter().map(RunEntry::file_name);
        let moves = self.moves.iter().map(|moves| moves_name(moves.id));
        runs.chain(moves).chain(self.retired.iter().cloned())
    }

    /// Reads the manifest of the side table in `dir`. Errors: `side-table-missing`, `side-table-corrupted`,
    /// `side-table-format` (made by another version of this program).
    pub fn read(dir: &Path) -> Result<Manifest> {
        let path = dir.join(MANIFEST);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(Error::user(
                    "side-table-missing",
                    format!("there is no side table: `{}`", path.display()),
                    "run a full refresh of the table, which builds its side table anew",
                ));
            }
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let text = checked(&bytes).ok_or_else(|| corrupted(&path, "its checksum differs"))?;
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| corrupted(&path, &error.to_string());
        let Format { format } = serde_json::from_slice(text).map_err(unreadable)?;
        if !(FORMAT_SINCE..=FORMAT).contains(&format) {
            let known = format!("this program knows {FORMAT_SINCE} to {FORMAT}");
            return Err(Error::user(
                "side-table-format",
                format!("the side table has format {format}, {known}: `{}`", path.display()),
                "use the version of flowbench that wrote it, or run a full refresh of the table",
            ));
        }
        let manifest: Manifest = serde_json::from_slice(text).map_err(unreadable)?;
        Ok(Manifest { format: FORMAT, ..manifest })
    }

    /// Replaces the manifest in `dir`; when it returns, the new one is on disk.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| Error::Internal(error.to_string()))?;
        text.push(b'\n');
        let checksum = format!("{CHECKSUM}{:016x}\n", XxHash3_64::oneshot(&text));
        text.extend_from_slice(checksum.as_bytes());
        let (path, new) = (dir.join(MANIFEST), dir.join(NEW_MANIFEST));
        let mut file = File::create(&new).map_err(|error| Error::io("create", &new, error))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(|error| Error::io("write", &new, error))?;
        std::fs::rename(&new, &path).map_err(|error| Error::io("replace", &path, error))?;
        sync_folder(dir)
    }
}

/// The name of a manifest until it is in force.
pub(super) const NEW_MANIFEST: &str = "manifest.json.new";

/// Has the names of a folder's files on disk.
pub(super) fn sync_folder(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| Error::io("sync", dir, error))
}

/// The text before the line of the checksum, if that is right.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let without_newline = bytes.strip_suffix(b"\n")?;
    let line = memchr::memrchr(b'\n', without_newline)? + 1;
    let (text, line) = without_newline.split_at(line);
    let expected = format!("{CHECKSUM}{:016x}", XxHash3_64::oneshot(text));
    (line == expected.as_bytes()).then_some(text)
}

/// Bytes as hexadecimal text.
mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let text: String = digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect();
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8));
        let digits: Option<Vec<u8>> = digits.collect();
        match digits {
            Some(digits) if digits.len() % 2 == 0 => Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()),
            _ => Err(D::Error::custom("not hexadecimal")),
        }
    }
}

/// Checksums as hexadecimal text: JSON's numbers have 53 bits for most readers.
pub(super) mod hex_number {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{number:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        u64::from_str_radix(&String::deserialize(deserializer)?, 16).map_err(D::Error::custom)
    }
}
