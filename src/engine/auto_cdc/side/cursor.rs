//! A way through a run in order: to a key, or from member to member. Only forward.

use std::sync::Arc;

use super::block::Block;
use super::cache::BlockCache;
use super::member::{Head, MemberRef};
use super::run::Run;
use crate::error::{Error, Result};

/// So many blocks are read at once when one comes after the other.
const BLOCKS_AHEAD: usize = 32;

/// A place in a run.
pub(super) struct Cursor<'r> {
    run: &'r Run,
    cache: Option<&'r BlockCache>,
    /// The block at hand and its number.
    block: Arc<Block>,
    number: Option<usize>,
    /// The member at hand; None before the first, behind the last of a block that was searched, and at the end.
    head: Option<Head>,
    /// Blocks read from the file: bytes, and numbers from and to.
    ahead: Vec<u8>,
    ahead_from: usize,
    ahead_to: usize,
}

impl<'r> Cursor<'r> {
    /// Before the run's first member. Blocks are taken from the cache, and left there, if there is one.
    pub fn new(run: &'r Run, cache: Option<&'r BlockCache>) -> Cursor<'r> {
        Cursor {
            run,
            cache,
            block: Arc::default(),
            number: None,
            head: None,
            ahead: Vec::new(),
            ahead_from: 0,
            ahead_to: 0,
        }
    }

    /// The member at hand and its block.
    #[inline]
    pub fn current(&self) -> Option<(&Arc<Block>, &Head)> {
        self.head.as_ref().map(|head| (&self.block, head))
    }

    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        self.head.as_ref().map(|head| head.key(&self.block))
    }

    /// Key and sequence of the member at hand.
    #[inline]
    pub fn place(&self) -> Option<(&[u8], &[u8])> {
        self.head.as_ref().map(|head| (head.key(&self.block), head.sequence(&self.block)))
    }

    /// The member at hand; an error if there is none.
    pub fn member(&self) -> Result<MemberRef<'_>> {
        let member = self.head.as_ref().and_then(|head| MemberRef::parse(&self.block, head));
        member.ok_or_else(|| self.malformed())
    }

    /// What is said of a member that can't be read.
    pub fn malformed(&self) -> Error {
        self.run.corrupted("a member")
    }

    /// Goes to the newest member of `key`, which isn't before that of the last call; false: the run doesn't have it.
    pub fn find(&mut self, key: &[u8]) -> Result<bool> {
        if let Some(current) = self.key()
            && current >= key
        {
            return Ok(current == key);
        }
        let index = self.run.index()?;
        let number = index.find(key, self.number.unwrap_or(0));
        if self.number != Some(number) {
            if number >= index.len() {
                return Ok(false);
            }
            self.load(number)?;
        } else if self.head.is_none() {
            return Ok(false);
        }
        let from = self.head.map_or(0, |head| head.start as usize);
        let place = self.block.find(key, from).ok_or_else(|| self.malformed())?;
        self.set_member(place)?;
        Ok(self.key() == Some(key))
    }

    /// Goes to the first member whose key isn't below `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.find(key)?;
        if self.head.is_none() { self.next_block() } else { Ok(()) }
    }

    /// Goes to the next member.
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        if let Some(head) = self.head
            && (head.end as usize) < self.block.len()
        {
            return self.set_member(head.end as usize);
        }
        self.next_block()
    }

    fn next_block(&mut self) -> Result<()> {
        let next = self.number.map_or(0, |number| number + 1);
        if next >= self.run.index()?.len() {
            self.head = None;
            return Ok(());
        }
        self.load(next)?;
        self.set_member(0)
    }

    #[inline]
    fn set_member(&mut self, at: usize) -> Result<()> {
        self.head = match at < self.block.len() {
            true => Some(Head::parse(&self.block, at).ok_or_else(|| self.malformed())?),
            false => None,
        };
        Ok(())
    }

    fn load(&mut self, number: usize) -> Result<()> {
        let last = self.number.replace(number);
        self.head = None;
        if let Some(cache) = self.cache
            && let Some(block) = cache.get(self.run.entry.id, number)
        {
            block.index();
            self.block = block;
            return Ok(());
        }
        if !(self.ahead_from..self.ahead_to).contains(&number) {
            let is_next = last.is_some_and(|last| last + 1 == number) || last.is_none() && number == 0;
            let ahead = if is_next { BLOCKS_AHEAD } else { 1 };
            let end = (number + ahead).min(self.run.index()?.len());
            self.run.read_blocks(number, end, &mut self.ahead)?;
            (self.ahead_from, self.ahead_to) = (number, end);
        }
        let bytes = &self.ahead[self.run.index()?.range_within(self.ahead_from, number)];
        match Arc::get_mut(&mut self.block) {
            // Nobody else has it: its memory is used again.
            Some(block) => self.run.open_block(number, bytes, block.members_mut())?,
            None => {
                let mut members = Vec::new();
                self.run.open_block(number, bytes, &mut members)?;
                self.block = Arc::new(Block::new(members));
            }
        }
        if let Some(cache) = self.cache {
            cache.insert(self.run.entry.id, number, &self.block);
        }
        Ok(())
    }
}
