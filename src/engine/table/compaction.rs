//! Fewer files, without deleted rows: which files are worth rewriting is a pure decision over what the log says of
//! them; carrying it out keeps the order of rows, and says where each row went.
//!
//! ```text
//! files ─▶ plan_rewrites ─▶ rewrite_files ─▶ Rewritten::prepare ─▶ PreparedCompaction { commit, moves } ─▶ commit_prepared
//! ```
//!
//! Rewriting takes long and needs nobody to wait: rows that are deleted meanwhile are deleted in the new files when the
//! commit is prepared.
//!
//! Files are joined by size class: each class is `files_max` times the one before, and as soon as so many files are in
//! a class, they become one of the next. So a row is rewritten once a class, three times on its way from a batch of a
//! thousand rows to a full file. A large file is rewritten when a given part of it is deleted, so that a deleted row
//! costs rewriting a given number of others (with 15 %, six).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use datafusion::physical_plan::common::spawn_buffered;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::action::encode_path;
use super::deletion_vector::{self, RowSet};
use super::{
    AddedFile, CONFLICT, Commit, Located, PartitionValues, PreparedCommit, RemoveSet, RowDeletes, RowRun, Table,
    WriterOptions,
};
use crate::error::{Error, Result};

/// Reading past fewer deleted rows than this costs less than a commit.
const DELETED_ROWS_MIN: u64 = 10_000;

/// Batches of rows that may wait between reading and writing.
const BATCHES_AHEAD: usize = 4;

/// When files are rewritten, and how many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionLimits {
    /// New files grow to this size.
    pub file_bytes: u64,
    /// So many files of a size class are joined.
    pub files_max: usize,
    /// A large file is rewritten when more of it is deleted.
    pub deleted_fraction_max: f64,
    /// Whether rows stay in the order in which they came: only neighbours are joined. It decides ties of those who read
    /// the table from its start.
    pub keeps_order: bool,
    /// Whether small files are rewritten for that reason too, joined: for when no batch waits.
    pub rewrites_small: bool,
    /// How much is rewritten by one commit, in bytes of the rows that stay; one rewrite at least.
    pub rewrite_bytes_max: u64,
}

impl Default for CompactionLimits {
    fn default() -> CompactionLimits {
        CompactionLimits {
            file_bytes: 128 << 20,
            files_max: 16,
            deleted_fraction_max: 0.15,
            keeps_order: false,
            rewrites_small: false,
            rewrite_bytes_max: 1 << 30,
        }
    }
}

/// Files of one partition that are rewritten one behind the other, in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewrite {
    pub files: Vec<AddedFile>,
}

/// Where the rows of a rewritten file went: those that were not deleted when it was read lie in one new file, in their
/// old order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileMove {
    /// As `AddedFile::path`.
    pub old_path: String,
    /// The rows that were deleted by then, and are gone.
    #[serde(with = "deletion_vector::text")]
    pub deleted: RowSet,
    /// As `AddedFile::path`.
    pub new_path: String,
    /// Where the first row that was not deleted is in the new file.
    pub first_row: u64,
}

impl FileMove {
    /// Where a row of the old file is in the new one; `None` if it was deleted.
    pub fn new_row(&self, old_row: u64) -> Option<u64> {
        (!self.deleted.contains(old_row)).then(|| self.first_row + old_row - self.deleted.rank(old_row))
    }

    fn new_rows(&self, old_rows: &RowSet) -> impl Iterator<Item = u64> {
        old_rows.iter().filter_map(|row| self.new_row(row))
    }
}

/// A compaction whose files are written. Whoever keeps locations of rows stores the moves before the commit is made.
#[derive(Debug, Serialize, Deserialize)]
pub struct PreparedCompaction {
    pub commit: PreparedCommit,
    /// One a rewritten file that had rows left.
    pub moves: Vec<FileMove>,
    pub compacted: Compacted,
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    pub files_before: usize,
    pub files_after: usize,
}

/// Decides which files are worth rewriting.
pub fn plan_rewrites(files: Vec<AddedFile>, limits: &CompactionLimits) -> Vec<Rewrite> {
    let mut classes: BTreeMap<(PartitionValues, u32), Vec<AddedFile>> = BTreeMap::new();
    let mut neighbours: BTreeMap<PartitionValues, Vec<AddedFile>> = BTreeMap::new();
    let mut worn = Vec::new();
    for file in files {
        let is_worn = file.deleted_fraction() > limits.deleted_fraction_max;
        match size_class(file.live_bytes(), limits) {
            _ if limits.keeps_order && !is_worn => {
                neighbours.entry(file.partition_values.clone()).or_default().push(file);
            }
            Some(class) => classes.entry((file.partition_values.clone(), class)).or_default().push(file),
            None if is_worn => worn.push(file),
            None => {}
        }
    }
    // Joining small files pays soonest; of the worn ones the worst comes first.
    let mut rewrites: Vec<Rewrite> = Vec::new();
    if limits.keeps_order {
        rewrites.extend(neighbours.into_values().flat_map(|files| neighbours_of(files, limits)));
    }
    let mut small_worn: BTreeMap<PartitionValues, Vec<AddedFile>> = BTreeMap::new();
    for ((partition, _), files) in classes {
        if files.len() >= limits.files_max.max(2) {
            rewrites.push(Rewrite { files });
        } else if limits.rewrites_small {
            let worn = files.into_iter().filter(|file| file.deleted_fraction() > limits.deleted_fraction_max);
            small_worn.entry(partition).or_default().extend(worn);
        }
    }
    let deleted = |files: &Vec<AddedFile>| files.iter().map(AddedFile::deleted_rows).sum::<u64>();
    let worth_it = small_worn.into_values().filter(|files| deleted(files) >= DELETED_ROWS_MIN);
    rewrites.extend(worth_it.map(|files| Rewrite { files }));
    for rewrite in &mut rewrites {
        rewrite.files.sort_by(AddedFile::by_age);
    }
    worn.sort_by(|a, b| b.deleted_fraction().total_cmp(&a.deleted_fraction()).then_with(|| a.path.cmp(&b.path)));
    rewrites.extend(worn.into_iter().map(|file| Rewrite { files: vec![file] }));
    let mut bytes = 0;
    let fits = |rewrite: &Rewrite| {
        let is_first = bytes == 0;
        bytes += rewrite.files.iter().map(AddedFile::live_bytes).sum::<u64>().max(1);
        is_first || bytes <= limits.rewrite_bytes_max
    };
    rewrites.into_iter().take_while(fits).collect()
}

/// Of the files of a partition those that lie side by side, are small, and are many of a class: stretches without a larger
/// file, the smallest class first.
fn neighbours_of(mut files: Vec<AddedFile>, limits: &CompactionLimits) -> Vec<Rewrite> {
    files.sort_by(AddedFile::by_age);
    // None: too large, or in a stretch already.
    let mut classes: Vec<Option<u32>> = files.iter().map(|file| size_class(file.live_bytes(), limits)).collect();
    let mut rewrites = Vec::new();
    for class in classes.iter().flatten().copied().collect::<BTreeSet<u32>>() {
        let mut start = 0;
        while start < files.len() {
            let fits = |at: &usize| classes[*at].is_some_and(|of_file| of_file <= class);
            let end = (start..files.len()).take_while(fits).last().map_or(start, |last| last + 1);
            // Smaller ones between them go along.
            let of_class: Vec<usize> = (start..end).filter(|at| classes[*at] == Some(class)).collect();
            if let (true, Some(first), Some(last)) =
                (of_class.len() >= limits.files_max.max(2), of_class.first(), of_class.last())
            {
                rewrites.push(Rewrite { files: files[*first..=*last].to_vec() });
                classes[*first..=*last].fill(None);
            }
            start = end.max(start + 1);
        }
    }
    rewrites
}

/// The class of a small file, from 0; `None` for one that is large enough to stay.
fn size_class(bytes: u64, limits: &CompactionLimits) -> Option<u32> {
    let factor = limits.files_max.max(2) as u64;
    if bytes >= limits.file_bytes / 2 {
        return None;
    }
    let mut class = 0;
    let mut bound = limits.file_bytes / factor.pow(3);
    while bytes > bound {
        class += 1;
        bound *= factor;
    }
    Some(class)
}

impl AddedFile {
    /// Rows that are deleted though the file holds them.
    pub fn deleted_rows(&self) -> u64 {
        self.deletion_vector.as_ref().map_or(0, |vector| vector.rows())
    }

    fn deleted_fraction(&self) -> f64 {
        match self.rows {
            Some(rows) if rows > 0 => self.deleted_rows() as f64 / rows as f64,
            _ => 0.0,
        }
    }

    /// Bytes of the rows that are not deleted, if all rows are of about the same size.
    fn live_bytes(&self) -> u64 {
        (self.size as f64 * (1.0 - self.deleted_fraction())) as u64
    }
}

/// Files that are rewritten and don't count yet. Dropped, they are deleted.
#[derive(Debug)]
pub struct Rewritten {
    files: Vec<ReadFile>,
    located: Located,
}

/// A file that was rewritten, as it was read.
#[derive(Debug)]
struct ReadFile {
    file: AddedFile,
    /// The rows that were deleted.
    deleted: Arc<RowSet>,
    /// Its other rows, among all that were written.
    rows: Range<u64>,
}

/// Rewrites files; `None` if there are none. The table is held only to look: commits go on meanwhile.
pub async fn rewrite_files(
    table: &Mutex<Table>,
    rewrites: Vec<Rewrite>,
    limits: &CompactionLimits,
) -> Result<Option<Rewritten>> {
    if rewrites.is_empty() {
        return Ok(None);
    }
    // Files begin at the border of an old one, so that each old one has one place.
    let options = WriterOptions { file_bytes: usize::MAX, locate_rows: true, ..WriterOptions::default() };
    let mut writer = table.lock().await.writer(options)?;
    let failed = |source| Error::Query { during: "compacting files".into(), source: Box::new(source) };
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let mut files = Vec::new();
    for rewrite in rewrites {
        writer.close_files()?;
        let mut bytes = 0;
        for file in rewrite.files {
            if bytes > 0 && bytes + file.live_bytes() > limits.file_bytes {
                writer.close_files()?;
                bytes = 0;
            }
            bytes += file.live_bytes();
            let (provider, deleted) = {
                let table = table.lock().await;
                let deleted = table.deleted_rows(&file.clone().into_add())?.unwrap_or_default();
                (table.files_provider(vec![file.clone()]).await?, deleted)
            };
            let rows = session.read_table(provider).map_err(failed)?;
            // Reading goes on while rows are written.
            let mut rows = spawn_buffered(rows.execute_stream().await.map_err(failed)?, BATCHES_AHEAD);
            let begin = writer.rows();
            while let Some(batch) = rows.next().await {
                writer.write(&batch.map_err(failed)?)?;
            }
            files.push(ReadFile { file, deleted, rows: begin..writer.rows() });
        }
    }
    Ok(Some(Rewritten { files, located: writer.finish_located()? }))
}

impl Rewritten {
    /// Prepares the commit that exchanges the files. Rows that the table has lost since they were read are deleted in
    /// the new files too.
    ///
    /// # Errors
    /// `table-conflict` – a file that was rewritten is not in the table any more; what `Table::prepare` may say.
    pub fn prepare(self, table: &Table) -> Result<PreparedCompaction> {
        let Rewritten { files, mut located } = self;
        let moves = moves(&files, &located)?;
        let mut ages: BTreeMap<&str, i64> = BTreeMap::new();
        let moved = files.iter().filter(|old| !old.rows.is_empty());
        for (place, old) in moves.iter().zip(moved) {
            let age = ages.entry(&place.new_path).or_insert(i64::MIN);
            *age = (*age).max(old.file.modified_ms);
        }
        // Its rows stay where they are in the order of the table's.
        for file in &mut located.files {
            file.modified_ms = ages.get(&*encode_path(&file.path)).copied().unwrap_or(file.modified_ms);
        }
        let mut places: BTreeMap<&str, &FileMove> =
            moves.iter().map(|place| (place.old_path.as_str(), place)).collect();
        let (mut removes, mut deletes) = (Vec::with_capacity(files.len()), RowDeletes::new());
        for ReadFile { mut file, deleted, .. } in files {
            let now = table.current_file(&file.path)?;
            let place = places.remove(file.path.as_str());
            if let (true, Some(place)) = (now.deletion_vector != file.deletion_vector, place) {
                let since = &*table.deleted_rows(now)?.unwrap_or_default() - &*deleted;
                deletes.entry(place.new_path.clone()).or_default().extend(place.new_rows(&since));
            }
            file.deletion_vector.clone_from(&now.deletion_vector);
            removes.push(file);
        }
        let compacted = Compacted { files_before: removes.len(), files_after: located.files.len() };
        let commit = Commit {
            adds: located.files,
            removes: RemoveSet::Read(removes),
            deletes,
            operation: "OPTIMIZE".into(),
            rearranges: true,
            ..Commit::default()
        };
        Ok(PreparedCompaction { commit: table.prepare(commit)?, moves, compacted })
    }
}

fn moves(files: &[ReadFile], located: &Located) -> Result<Vec<FileMove>> {
    let mut runs = located.runs.iter().scan(0, |begin, run| {
        *begin += run.rows;
        Some((*begin - run.rows, run))
    });
    let mut run: Option<(u64, &RowRun)> = runs.next();
    let mut moves = Vec::new();
    for ReadFile { file, deleted, rows } in files.iter().filter(|file| !file.rows.is_empty()) {
        while run.is_some_and(|(begin, run)| begin + run.rows <= rows.start) {
            run = runs.next();
        }
        let Some((begin, place)) = run.filter(|(begin, run)| begin + run.rows >= rows.end) else {
            return Err(Error::Internal(format!("the rows of `{}` were not moved to one place", file.path)));
        };
        moves.push(FileMove {
            old_path: file.path.clone(),
            deleted: RowSet::clone(deleted),
            new_path: encode_path(&located.files[place.file].path),
            first_row: place.first_row + rows.start - begin,
        });
    }
    Ok(moves)
}

/// Rewrites what is worth it, by one commit. Flows go on meanwhile; if one of the files is gone then, nothing happens.
pub async fn compact(table: &Mutex<Table>, limits: &CompactionLimits) -> Result<Compacted> {
    let files = {
        let mut table = table.lock().await;
        table.refresh()?;
        table.files_at(table.version())?
    };
    let Some(rewritten) = rewrite_files(table, plan_rewrites(files, limits), limits).await? else {
        return Ok(Compacted::default());
    };
    let mut table = table.lock().await;
    let prepared = match rewritten.prepare(&table) {
        Ok(prepared) => prepared,
        Err(error) if error.code() == CONFLICT => return Ok(Compacted::default()),
        Err(error) => return Err(error),
    };
    match table.commit_prepared(&prepared.commit).await {
        Ok(_) => Ok(prepared.compacted),
        Err(error) if error.code() == CONFLICT => {
            prepared.commit.discard(&table)?;
            Ok(Compacted::default())
        }
        Err(error) => Err(error),
    }
}
