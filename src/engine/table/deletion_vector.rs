//! Deletion vectors: which rows of a data file are deleted without the file being rewritten (Delta protocol:
//! Deletion Vectors). Reading those of any program, and writing ours: one file a commit, which holds the vectors
//! of all files that the commit touches.
//!
//! ```text
//! file   = version byte 1, then for each vector: size (u32, big-endian), data, CRC-32 of data (big-endian)
//! data   = magic number (little-endian), 64-bit roaring bitmap in its portable form; `size` bytes
//! ```
//!
//! Not here: which vector belongs to which file (`action::Add`), and what reading makes of it (`provider.rs`).

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use super::action::decode_path;
use crate::error::{Error, Result};

/// Rows of one data file by their position in it, from 0, deleted ones counted.
pub type RowSet = RoaringTreemap;

/// Data file, by `AddedFile::path` → rows of it.
pub type RowDeletes = BTreeMap<String, RowSet>;

/// Says that a bitmap in its portable form follows.
const MAGIC: [u8; 4] = 1_681_511_377_u32.to_le_bytes();
/// The version of a file of vectors.
const FILE_VERSION: u8 = 1;
/// A UUID's 16 bytes in base 85.
const UUID_CHARACTERS: usize = 20;

/// Where the deletion vector of a data file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVector {
    /// `u`: a file of this table, named by a UUID; `p`: a file anywhere; `i`: in the log itself.
    pub storage_type: String,
    /// `u`: a folder (may be empty) and the UUID in base 85; `p`: an address; `i`: the data in base 85.
    pub path_or_inline_dv: String,
    /// Where in the file the vector's size is; 1 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i32>,
    /// Bytes of the data.
    pub size_in_bytes: i32,
    /// How many rows are deleted.
    pub cardinality: i64,
}

impl DeletionVector {
    /// How many rows are deleted.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.cardinality).unwrap_or(0)
    }

    /// The file that holds the vector; `None` if the log does, or if the file is not on this machine.
    pub fn file(&self, table_dir: &Path) -> Option<PathBuf> {
        match self.storage_type.as_str() {
            "u" => {
                let (folder, uuid) = self.path_or_inline_dv.split_at_checked(self.uuid_at()?)?;
                let uuid = uuid::Uuid::from_slice(&z85::decode(uuid).ok()?).ok()?;
                Some(table_dir.join(folder).join(file_name(uuid)))
            }
            "p" => decode_path(table_dir, &self.path_or_inline_dv),
            _ => None,
        }
    }

    fn uuid_at(&self) -> Option<usize> {
        self.path_or_inline_dv.len().checked_sub(UUID_CHARACTERS)
    }

    /// The same vector seen from the folder above: a generation's that is promoted into its table.
    pub fn below(&self, folder: &str) -> DeletionVector {
        let path_or_inline_dv = match (self.storage_type.as_str(), self.uuid_at()) {
            ("u", None | Some(0)) => format!("{folder}{}", self.path_or_inline_dv),
            ("u", Some(_)) => format!("{folder}/{}", self.path_or_inline_dv),
            _ => self.path_or_inline_dv.clone(),
        };
        DeletionVector { path_or_inline_dv, ..self.clone() }
    }

    /// Reads the vector.
    ///
    /// # Errors
    /// `deletion-vector-unreadable`: without it nobody knows which rows the table has.
    pub fn read(&self, table_dir: &Path) -> Result<RowSet> {
        let data = match self.storage_type.as_str() {
            "i" => {
                z85::decode(&self.path_or_inline_dv).map_err(|error| self.unreadable(table_dir, error.to_string()))?
            }
            _ => self.read_data(table_dir).map_err(|why| self.unreadable(table_dir, why))?,
        };
        let rows = match data.strip_prefix(&MAGIC) {
            Some(bitmap) => RowSet::deserialize_from(bitmap).map_err(|error| error.to_string()),
            None => Err("it is not a roaring bitmap in the portable form".to_owned()),
        };
        let rows = rows.map_err(|why| self.unreadable(table_dir, why))?;
        match rows.len() == self.rows() {
            true => Ok(rows),
            false => {
                let why = format!("it deletes {} rows, and {} by the log", rows.len(), self.cardinality);
                Err(self.unreadable(table_dir, why))
            }
        }
    }

    fn read_data(&self, table_dir: &Path) -> std::result::Result<Vec<u8>, String> {
        let file = self.file(table_dir).ok_or("it is not on this machine")?;
        let size = u32::try_from(self.size_in_bytes).map_err(|_| "its size is negative")?;
        let offset = u64::try_from(self.offset.unwrap_or(1)).map_err(|_| "its offset is negative")?;
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(file)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut framed = vec![0; size as usize + 8];
            file.read_exact(&mut framed)?;
            Ok(framed)
        };
        let mut data = read().map_err(|error| error.to_string())?;
        let crc = data.split_off(size as usize + 4);
        if data[..4] != size.to_be_bytes() {
            return Err("its size is another one by the log".to_owned());
        }
        data.drain(..4);
        match crc == crc32fast::hash(&data).to_be_bytes() {
            true => Ok(data),
            false => Err("its checksum is wrong".to_owned()),
        }
    }

    fn unreadable(&self, table_dir: &Path, why: String) -> Error {
        let place = self.file(table_dir).map_or_else(
            || format!("in the log of the table at `{}`", table_dir.display()),
            |file| format!("`{}` at offset {}", file.display(), self.offset.unwrap_or(1)),
        );
        Error::External {
            code: "deletion-vector-unreadable",
            what: format!("the deletion vector {place} cannot be read: {why}"),
            help: "restore the file from a copy; a table that can be rebuilt from its sources is built anew by: \
                   flowbench run --full-refresh"
                .into(),
        }
    }
}

/// The vectors of a table's current version that were read or written by this process, by data file.
#[derive(Debug, Default)]
pub struct Vectors {
    known: Mutex<HashMap<String, (DeletionVector, Arc<RowSet>)>>,
}

impl Vectors {
    /// The rows, if this is the vector that is known of the file.
    pub fn get(&self, path: &str, vector: &DeletionVector) -> Option<Arc<RowSet>> {
        self.known().get(path).filter(|(known, _)| known == vector).map(|(_, rows)| Arc::clone(rows))
    }

    /// Remembers the vector that is in force for a file.
    pub fn insert(&self, path: &str, vector: &DeletionVector, rows: &Arc<RowSet>) {
        self.known().insert(path.to_owned(), (vector.clone(), Arc::clone(rows)));
    }

    /// Forgets files that have left the table.
    pub fn forget<'a>(&self, paths: impl Iterator<Item = &'a String>) {
        let mut known = self.known();
        paths.for_each(|path| drop(known.remove(path)));
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, (DeletionVector, Arc<RowSet>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a file of this name holds deletion vectors.
pub fn is_vector_file(name: &str) -> bool {
    name.starts_with("deletion_vector_") && name.ends_with(".bin")
}

fn file_name(uuid: uuid::Uuid) -> String {
    format!("deletion_vector_{uuid}.bin")
}

/// Writes vectors into one new file in the table's folder, which the caller makes durable. They come back in the same
/// order, with the name of the file.
pub fn write(table_dir: &Path, vectors: &[&RowSet]) -> Result<(String, Vec<DeletionVector>)> {
    let uuid = uuid::Uuid::new_v4();
    let mut bytes = vec![FILE_VERSION];
    let mut written = Vec::with_capacity(vectors.len());
    let too_big = |_| Error::Internal("the deletion vectors of one commit pass 2 GiB".into());
    for rows in vectors {
        let size = i32::try_from(MAGIC.len() + rows.serialized_size()).map_err(too_big)?;
        let offset = i32::try_from(bytes.len()).map_err(too_big)?;
        bytes.extend_from_slice(&size.to_be_bytes());
        let data = bytes.len();
        bytes.extend_from_slice(&MAGIC);
        rows.serialize_into(&mut bytes).map_err(|error| Error::Internal(format!("deletion vector: {error}")))?;
        let crc = crc32fast::hash(&bytes[data..]);
        bytes.extend_from_slice(&crc.to_be_bytes());
        written.push(DeletionVector {
            storage_type: "u".into(),
            path_or_inline_dv: z85::encode(uuid.as_bytes()),
            offset: Some(offset),
            size_in_bytes: size,
            cardinality: i64::try_from(rows.len()).map_err(too_big)?,
        });
    }
    let name = file_name(uuid);
    let path = table_dir.join(&name);
    let write = || File::create_new(&path)?.write_all(&bytes);
    write().map_err(|error| Error::io("write", &path, error))?;
    Ok((name, written))
}

/// Row sets as text: the portable bitmap in base 85.
pub mod text {
    use serde::{Deserialize, Deserializer, Serializer, de, ser};

    use super::RowSet;

    pub fn serialize<S: Serializer>(rows: &RowSet, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(rows.serialized_size());
        rows.serialize_into(&mut bytes).map_err(ser::Error::custom)?;
        serializer.serialize_str(&z85::encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RowSet, D::Error> {
        let text = String::deserialize(deserializer)?;
        RowSet::deserialize_from(z85::decode(text).map_err(de::Error::custom)?.as_slice()).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_one_file_are_read_back() {
        let dir = tempfile::TempDir::new().expect("folder");
        let few = RowSet::from_iter([0, 7, 70_000]);
        let many: RowSet = (0..300_000).filter(|row| row % 3 == 0).collect();
        let far = RowSet::from_iter([u64::from(u32::MAX) + 5]);
        let (name, vectors) = write(dir.path(), &[&few, &many, &far]).expect("written");
        assert!(is_vector_file(&name) && dir.path().join(&name).exists());
        for (vector, rows) in vectors.iter().zip([few, many, far]) {
            assert_eq!(vector.read(dir.path()).expect("read"), rows);
        }
    }

    #[test]
    fn vectors_of_delta_kernel_are_read() {
        use buoyant_kernel::actions::deletion_vector_writer::{KernelDeletionVector, StreamingDeletionVectorWriter};
        let dir = tempfile::TempDir::new().expect("folder");
        let sets = [RowSet::from_iter([5]), (10..200_000).collect(), RowSet::from_iter([1, 1 << 33])];
        let mut bytes = Vec::new();
        let mut writer = StreamingDeletionVectorWriter::new(&mut bytes);
        let written = sets.iter().map(|rows| {
            let mut vector = KernelDeletionVector::new();
            vector.add_deleted_row_indexes(rows.iter());
            writer.write_deletion_vector(vector).expect("written")
        });
        let written: Vec<_> = written.collect();
        writer.finalize().expect("written");
        let uuid = uuid::Uuid::new_v4();
        std::fs::write(dir.path().join(file_name(uuid)), bytes).expect("written");
        for (rows, theirs) in sets.iter().zip(written) {
            let vector = DeletionVector {
                storage_type: "u".into(),
                path_or_inline_dv: z85::encode(uuid.as_bytes()),
                offset: Some(theirs.offset),
                size_in_bytes: theirs.size_in_bytes,
                cardinality: theirs.cardinality,
            };
            assert_eq!(vector.read(dir.path()).expect("read"), *rows);
        }
    }

    #[test]
    fn vectors_in_the_log_and_in_folders_are_found() {
        // The example of the protocol: rows 3, 4, 7, 11, 18 and 29.
        let inline = DeletionVector {
            storage_type: "i".into(),
            path_or_inline_dv: "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L".into(),
            offset: None,
            size_in_bytes: 40,
            cardinality: 6,
        };
        assert_eq!(inline.read(Path::new("/t")).expect("read"), RowSet::from_iter([3, 4, 7, 11, 18, 29]));
        let relative = DeletionVector {
            storage_type: "u".into(),
            path_or_inline_dv: "ab^-aqEH.-t@S}K{vb[*k^".into(),
            offset: Some(4),
            ..inline.clone()
        };
        let name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin";
        assert_eq!(relative.file(Path::new("/t")), Some(Path::new("/t/ab").join(name)));
        assert_eq!(relative.below("gen-2").file(Path::new("/t")), Some(Path::new("/t/gen-2/ab").join(name)));
        let plain = DeletionVector { path_or_inline_dv: "^-aqEH.-t@S}K{vb[*k^".into(), ..relative };
        assert_eq!(plain.below("gen-2").file(Path::new("/t")), Some(Path::new("/t/gen-2").join(name)));
        let absolute =
            DeletionVector { storage_type: "p".into(), path_or_inline_dv: "file:///x/d.bin".into(), ..plain };
        assert_eq!(absolute.below("gen-2").file(Path::new("/t")), Some(PathBuf::from("/x/d.bin")));
    }

    #[test]
    fn what_is_broken_is_said() {
        let dir = tempfile::TempDir::new().expect("folder");
        let (name, vectors) = write(dir.path(), &[&RowSet::from_iter([1, 2, 3])]).expect("written");
        let miscounted = DeletionVector { cardinality: 4, ..vectors[0].clone() };
        let error = miscounted.read(dir.path()).expect_err("another number").to_string();
        assert!(error.contains("it deletes 3 rows, and 4 by the log"), "{error}");
        let path = dir.path().join(name);
        let mut bytes = std::fs::read(&path).expect("there");
        let last = bytes.len() - 6;
        bytes[last] ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        let error = vectors[0].read(dir.path()).expect_err("flipped");
        assert!(error.code() == "deletion-vector-unreadable" && error.to_string().contains("checksum"), "{error}");
        std::fs::write(&path, &bytes[..9]).expect("written");
        assert_eq!(vectors[0].read(dir.path()).expect_err("cut").code(), "deletion-vector-unreadable");
    }
}
