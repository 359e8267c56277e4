//! The sources of a checkpoint, and the ledger: the files that each of them has planned or read.
//!
//! Not here: listing and globbing; the caller brings what it listed.

use rusqlite::{Connection, Row, params};

use super::{State, execute, row, rows};
use crate::error::{Error, Result};

/// A source of a flow in one generation of its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Source {
    /// Names the source in the ledger and in batches.
    pub source_id: i64,
    pub flow_id: String,
    pub generation: i64,
    /// The source's key in the flow.
    pub source: String,
    /// JSON, once it is known.
    pub schema: Option<String>,
    /// Of a Delta source; a table made anew under the same name has another.
    pub table_id: Option<String>,
    /// JSON of the options that only the first start obeys.
    pub start_options: Option<String>,
    /// The end of what was committed, in the words of the source's reader.
    pub offset: Option<String>,
}

/// A source met for the first time.
#[derive(Debug, Clone)]
pub struct NewSource<'a> {
    pub flow_id: &'a str,
    pub generation: i64,
    pub source: &'a str,
    pub table_id: Option<&'a str>,
    pub start_options: Option<&'a str>,
}

/// A file of a source: as listed, or as known to the ledger.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SourceFile {
    /// As the caller spells it; always the same way.
    pub path: String,
    pub size_bytes: i64,
    pub modified_us: i64,
}

/// What makes a listed file a known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownBy {
    Path,
    /// `allowOverwrites => true`: a known path with another time or size is new.
    PathTimeAndSize,
}

const SOURCES: &str = "
SELECT source_id, flow_id, generation, source, schema, table_id, start_options, offset FROM sources";

impl State {
    /// Returns the source of this key, recorded as given if it isn't known in this generation. A table that
    /// wasn't there when it was recorded is taken in now.
    pub fn register_source(&self, source: &NewSource<'_>, now_us: i64) -> Result<Source> {
        self.write("record a source", |tx| {
            execute(
                tx,
                "INSERT INTO sources (flow_id, generation, source, table_id, start_options, created_us)
                 VALUES (?, ?, ?, ?, ?, ?)
                 ON CONFLICT DO UPDATE SET table_id = coalesce(table_id, excluded.table_id)",
                params![
                    source.flow_id,
                    source.generation,
                    source.source,
                    source.table_id,
                    source.start_options,
                    now_us
                ],
            )?;
            let sql = format!("{SOURCES} WHERE flow_id = ? AND generation = ? AND source = ?");
            row(tx, &sql, params![source.flow_id, source.generation, source.source], read_source)?
                .ok_or_else(|| Error::Internal(format!("source `{}` was not recorded", source.source)))
        })
    }

    /// The sources of a checkpoint, by key.
    pub fn sources(&self, flow_id: &str, generation: i64) -> Result<Vec<Source>> {
        let sql = format!("{SOURCES} WHERE flow_id = ? AND generation = ? ORDER BY source");
        self.read("read sources", |c| rows(c, &sql, params![flow_id, generation], read_source))
    }

    /// The sources of the checkpoints in force, of all flows.
    pub fn all_sources(&self) -> Result<Vec<Source>> {
        let sql = format!("{SOURCES} JOIN flows USING (flow_id, generation) ORDER BY flow_id, source");
        self.read("read sources", |c| rows(c, &sql, [], read_source))
    }

    /// Stores the schema (JSON) that the source is read with from now on.
    pub fn set_source_schema(&self, source_id: i64, schema: &str) -> Result<()> {
        self.write("store a schema", |tx| {
            execute(tx, "UPDATE sources SET schema = ?2 WHERE source_id = ?1", params![source_id, schema])?;
            Ok(())
        })
    }

    /// The paths of all files that the source has read.
    pub fn known_paths(&self, source_id: i64) -> Result<Vec<String>> {
        self.read("read the file ledger", |c| {
            rows(c, "SELECT path FROM files WHERE source_id = ? ORDER BY path", [source_id], |row| row.get(0))
        })
    }

    /// Returns those of `listing` that are new to the source, sorted by path.
    ///
    /// The ledger is stored in path order, so this is one merge of two sorted lists: 200,000 known files
    /// cost a fraction of a second and no hash table.
    pub fn new_files(
        &self,
        source_id: i64,
        mut listing: Vec<SourceFile>,
        known_by: KnownBy,
    ) -> Result<Vec<SourceFile>> {
        listing.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.read("read the file ledger", |c| {
            let sql = "SELECT path, size_bytes, modified_us FROM files WHERE source_id = ? ORDER BY path";
            let mut statement = c.prepare_cached(sql)?;
            let mut ledger = statement.query([source_id])?;
            let mut known = ledger.next()?;
            let mut new = vec![];
            'listed: for file in listing {
                while let Some(row) = known {
                    match path_of(row)?.cmp(&file.path) {
                        std::cmp::Ordering::Less => known = ledger.next()?,
                        std::cmp::Ordering::Greater => break,
                        std::cmp::Ordering::Equal => {
                            let is_same = known_by == KnownBy::Path
                                || (row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)
                                    == (file.size_bytes, file.modified_us);
                            match is_same {
                                true => continue 'listed,
                                false => break,
                            }
                        }
                    }
                }
                new.push(file);
            }
            Ok(new)
        })
    }

    /// How many files the ledger knows of the source.
    pub fn known_file_count(&self, source_id: i64) -> Result<i64> {
        self.read("read the file ledger", |c| {
            Ok(c.query_row("SELECT count(*) FROM files WHERE source_id = ?", [source_id], |row| row.get(0))?)
        })
    }

    /// Writes files into the ledger that were read before its record was lost (`flowbench doctor`), or that
    /// are never to be read (`includeExistingFiles => false`): `batch_id` -1.
    pub fn add_known_files(&self, source_id: i64, files: &[SourceFile]) -> Result<()> {
        self.write("write the file ledger", |tx| insert_files(tx, source_id, files, -1))
    }

    /// Sets the offset that an import or a start option found; commits move it by themselves.
    pub fn set_source_offset(&self, source_id: i64, offset: &str) -> Result<()> {
        self.write("store an offset", |tx| {
            execute(tx, "UPDATE sources SET offset = ?2 WHERE source_id = ?1", params![source_id, offset])?;
            Ok(())
        })
    }
}

pub(super) fn insert_files(tx: &Connection, source_id: i64, files: &[SourceFile], batch_id: i64) -> Result<()> {
    // Sorted input makes the insertion an append to the tree for most sources.
    let mut files: Vec<&SourceFile> = files.iter().collect();
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut statement = tx.prepare_cached(
        "INSERT INTO files (source_id, path, size_bytes, modified_us, batch_id) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET size_bytes = ?3, modified_us = ?4, batch_id = ?5",
    )?;
    for file in files {
        statement.execute(params![source_id, file.path, file.size_bytes, file.modified_us, batch_id])?;
    }
    Ok(())
}

/// The files that a batch planned, by path.
pub(super) fn files_of_batch(c: &Connection, source_id: i64, batch_id: i64) -> Result<Vec<SourceFile>> {
    // Not indexed by batch: a replay is rare, and reading the source's whole ledger is fast.
    let sql = "SELECT path, size_bytes, modified_us FROM files WHERE source_id = ? AND batch_id = ? ORDER BY path";
    rows(c, sql, params![source_id, batch_id], |row| {
        Ok(SourceFile { path: row.get(0)?, size_bytes: row.get(1)?, modified_us: row.get(2)? })
    })
}

fn path_of<'row>(row: &'row Row<'_>) -> Result<&'row str> {
    let value = row.get_ref(0)?;
    value.as_str().map_err(|e| Error::Internal(format!("state.db: files.path is not text: {e}")))
}

fn read_source(row: &Row<'_>) -> rusqlite::Result<Source> {
    Ok(Source {
        source_id: row.get(0)?,
        flow_id: row.get(1)?,
        generation: row.get(2)?,
        source: row.get(3)?,
        schema: row.get(4)?,
        table_id: row.get(5)?,
        start_options: row.get(6)?,
        offset: row.get(7)?,
    })
}
