//! The side table as of one manifest, for reading: the members of given keys, or of all keys in order. A view stays as
//! it is while writers go on; the files that it has open outlive their deletion.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::block::Block;
use super::bloom;
use super::cache::BlockCache;
use super::corrupted;
use super::cursor::Cursor;
use super::manifest::{Manifest, Retention, moves_name};
use super::member::{Head, MemberRef};
use super::merged::Merged;
use super::moves::Moves;
use super::run::Run;
use crate::error::{Error, Result};

/// A manifest with its runs open.
#[derive(Debug)]
pub struct View {
    pub(super) manifest: Manifest,
    /// Oldest first, as in the manifest.
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) moves: Arc<Moves>,
    pub(super) cache: Arc<BlockCache>,
    paths: OnceLock<BTreeMap<u32, String>>,
}

/// A key to look up, and the smallest sequence of what came in for it.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub key: &'a [u8],
    pub first_sequence: &'a [u8],
}

/// Which keys to go through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key; None: from the beginning.
    pub from: Option<Vec<u8>>,
    /// The key before which to end; None: to the end.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys.
    pub fn all() -> KeyRange {
        KeyRange::default()
    }

    /// The keys whose bytes begin with `prefix`.
    pub fn with_prefix(prefix: &[u8]) -> KeyRange {
        // The next string that doesn't: the last byte that can be raised, raised.
        let to = prefix.iter().rposition(|byte| *byte != u8::MAX).map(|last| {
            let mut to = prefix[..=last].to_vec();
            to[last] += 1;
            to
        });
        KeyRange { from: Some(prefix.to_vec()), to }
    }
}

/// How often a reader looks at the manifest again because a file is gone.
const TRIES: u32 = 20;

/// So many keys are looked up in one run after the other before their members are handed on.
const KEYS_AT_ONCE: usize = 512;

impl View {
    /// Reads the side table in `dir`, in any process, while others write.
    ///
    /// Errors: `side-table-missing`, `side-table-corrupted`, `side-table-format`, `io`.
    pub fn open(dir: &Path) -> Result<View> {
        let mut version = None;
        for _ in 0..TRIES {
            let manifest = Manifest::read(dir)?;
            match View::of(dir, manifest.clone(), None) {
                // A commit deleted what it had retired: there is a newer manifest.
                Err(Error::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound && version != Some(manifest.version()) =>
                {
                    version = Some(manifest.version());
                }
                Err(Error::Io { path, source, .. }) if source.kind() == ErrorKind::NotFound => {
                    return Err(corrupted(&path, "the file is gone"));
                }
                other => return other,
            }
        }
        Err(Error::External {
            code: "side-table-busy",
            what: format!("the side table changes faster than it can be opened: `{}`", dir.display()),
            help: "try again".into(),
        })
    }

    /// Opens what a manifest names; runs and moves that `before` has open are taken from there.
    pub(super) fn of(dir: &Path, manifest: Manifest, before: Option<&View>) -> Result<View> {
        let opened = |entry: &super::RunEntry| before?.runs.iter().find(|run| run.entry == *entry).cloned();
        let runs = manifest.runs.iter().map(|entry| match opened(entry) {
            Some(run) => Ok(run),
            None => Run::open(&dir.join(entry.file_name()), entry).map(Arc::new),
        });
        let runs = runs.collect::<Result<_>>()?;
        let moves = match before {
            Some(before) if before.manifest.moves == manifest.moves => Arc::clone(&before.moves),
            _ => {
                let mut moves = Moves::default();
                for entry in &manifest.moves {
                    moves.add(&dir.join(moves_name(entry.id)), entry)?;
                }
                Arc::new(moves)
            }
        };
        let cache = before.map_or_else(Arc::default, |before| Arc::clone(&before.cache));
        Ok(View { manifest, runs, moves, cache, paths: OnceLock::new() })
    }

    /// What the side table consists of.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The path of a file of the target that members lie in, as it was given when they were written.
    pub fn file_path(&self, file: u32) -> Option<&str> {
        let paths = self.paths.get_or_init(|| {
            let of_runs =
                self.runs.iter().flat_map(|run| run.meta.files.iter().map(|(file, path)| (*file, path.clone())));
            of_runs.chain(self.moves.paths().map(|(file, path)| (file, path.to_string()))).collect()
        });
        paths.get(&file).map(String::as_str)
    }

    /// The number of a file of the target that members lie in.
    pub fn file_number(&self, path: &str) -> Option<u32> {
        self.file_path(0);
        let paths = self.paths.get()?;
        paths.iter().find(|(_, known)| *known == path).map(|(number, _)| *number)
    }

    /// For each key, ascending and each once, its number in `wanted` and its members, newest first, down to the newest
    /// one before `first_sequence`; with [`Retention::Newest`] the newest alone. A key that isn't there has none.
    pub fn lookup(&self, wanted: &[Wanted], mut visit: impl FnMut(usize, &[MemberRef]) -> Result<()>) -> Result<()> {
        if !wanted.is_sorted_by(|a, b| a.key < b.key) {
            return Err(Error::Internal("keys to look up are not in order".into()));
        }
        let mut cursors: Vec<Cursor> = self.runs.iter().rev().map(|run| Cursor::new(run, Some(&*self.cache))).collect();
        for (chunk, keys) in wanted.chunks(KEYS_AT_ONCE).enumerate() {
            let found = self.find(keys, &mut cursors)?;
            let mut members = Vec::with_capacity(found.members.len());
            for (_, block, head) in &found.members {
                members.push(self.parse(&found.blocks[*block], head)?);
            }
            let mut rest = members.as_mut_slice();
            let mut numbers = found.members.iter().map(|(number, ..)| *number).peekable();
            for (number, wanted) in keys.iter().enumerate() {
                let mut count = 0;
                while numbers.next_if_eq(&number).is_some() {
                    count += 1;
                }
                let (of_key, after) = rest.split_at_mut(count);
                let count = self.newest_down_to(of_key, wanted.first_sequence);
                visit(chunk * KEYS_AT_ONCE + number, &of_key[..count])?;
                rest = after;
            }
        }
        Ok(())
    }

    /// The keys in order, each with all its members, newest first; with [`Retention::Newest`] the newest alone.
    pub fn scan(&self, range: &KeyRange) -> Result<Scan<'_>> {
        let cursors = self.runs.iter().rev().map(|run| {
            let mut cursor = Cursor::new(run, None);
            match &range.from {
                Some(from) => cursor.seek(from)?,
                None => cursor.next()?,
            }
            Ok(cursor)
        });
        let merged = Merged::new(cursors.collect::<Result<_>>()?);
        Ok(Scan { view: self, merged, to: range.to.clone(), blocks: Vec::new(), members: Vec::new() })
    }

    /// Reads all of it. Error: the first that is damaged.
    pub fn check(&self) -> Result<()> {
        let mut scan = self.scan(&KeyRange::all())?;
        while scan.next()?.is_some() {}
        Ok(())
    }

    /// Finds the members of some keys in every run, sorted by the key's number.
    fn find(&self, keys: &[Wanted], cursors: &mut [Cursor]) -> Result<Found> {
        let mut found = Found::default();
        let hashes: Vec<u64> = keys.iter().map(|wanted| bloom::hash(wanted.key)).collect();
        let is_newest_enough = self.manifest.retention() == Retention::Newest;
        let mut is_done = vec![false; keys.len()];
        let mut candidates = Vec::with_capacity(keys.len());
        for (run, cursor) in self.runs.iter().rev().zip(cursors) {
            // The filter is asked for all keys first: its cache lines are then waited for together.
            candidates.clear();
            run.may_have(keys, &hashes, &mut candidates)?;
            for &number in &candidates {
                let wanted = &keys[number];
                if is_done[number] {
                    continue;
                }
                if !cursor.find(wanted.key)? {
                    continue;
                }
                while let Some((block, head)) = cursor.current()
                    && head.key(block) == wanted.key
                {
                    let is_predecessor = head.sequence(block) < wanted.first_sequence;
                    let block = found.pin(block);
                    found.members.push((number, block, *head));
                    // A run has nothing newer of a key than the runs after it, if only that is kept.
                    is_done[number] = is_newest_enough;
                    if is_newest_enough || is_predecessor {
                        break;
                    }
                    cursor.next()?;
                }
            }
        }
        // Stable: a key's members stay in the order of runs, newest run first.
        found.members.sort_by_key(|(number, ..)| *number);
        Ok(found)
    }

    /// Brings a key's members, newest run's first, into order; says how many count.
    fn newest_down_to(&self, members: &mut [MemberRef], first_sequence: &[u8]) -> usize {
        if members.len() > 1 {
            members.sort_by(|a, b| b.sequence.cmp(a.sequence));
        }
        let mut count = 0;
        for i in 0..members.len() {
            if count > 0 && members[count - 1].sequence == members[i].sequence {
                continue;
            }
            members[count] = members[i];
            count += 1;
            if self.manifest.retention() == Retention::Newest || members[i].sequence < first_sequence {
                break;
            }
        }
        count
    }

    fn parse<'a>(&self, block: &'a [u8], head: &Head) -> Result<MemberRef<'a>> {
        let member = MemberRef::parse(block, head);
        let mut member = member.ok_or_else(|| Error::Internal("a member of a checked block is malformed".into()))?;
        member.location = member.location.and_then(|location| self.moves.resolve(location));
        Ok(member)
    }
}

/// Members where they lie.
#[derive(Default)]
struct Found {
    blocks: Vec<Arc<Block>>,
    /// The key's number, the block's, and the place in the block.
    members: Vec<(usize, usize, Head)>,
}

impl Found {
    /// Keeps a block; returns its number.
    fn pin(&mut self, block: &Arc<Block>) -> usize {
        pin(&mut self.blocks, block)
    }
}

fn pin(blocks: &mut Vec<Arc<Block>>, block: &Arc<Block>) -> usize {
    if blocks.last().is_none_or(|last| !Arc::ptr_eq(last, block)) {
        blocks.push(Arc::clone(block));
    }
    blocks.len() - 1
}

/// Keys in order with their members.
pub struct Scan<'v> {
    view: &'v View,
    merged: Merged<'v>,
    to: Option<Vec<u8>>,
    blocks: Vec<Arc<Block>>,
    members: Vec<(usize, Head)>,
}

impl Scan<'_> {
    /// The members of the next key, newest first, at least one; None at the end.
    #[expect(clippy::should_implement_trait, reason = "what it returns borrows from it")]
    pub fn next(&mut self) -> Result<Option<Vec<MemberRef<'_>>>> {
        self.blocks.clear();
        self.members.clear();
        let retention = self.view.manifest.retention();
        while let Some((block, head)) = self.merged.current().and_then(Cursor::current) {
            match self.members.first() {
                None if self.to.as_deref().is_some_and(|to| head.key(block) >= to) => return Ok(None),
                Some((first, first_head)) if first_head.key(&self.blocks[*first]) != head.key(block) => break,
                Some(_) if retention == Retention::Newest => {}
                _ => {
                    let block = pin(&mut self.blocks, block);
                    self.members.push((block, *head));
                }
            }
            self.merged.next()?;
        }
        if self.members.is_empty() {
            return Ok(None);
        }
        let members = self.members.iter().map(|(block, head)| self.view.parse(&self.blocks[*block], head));
        members.collect::<Result<_>>().map(Some)
    }
}
