//! Blocks of a run: members one behind the other, compressed by LZ4 where that makes them smaller, with a checksum.
//!
//! ```text
//! u32 length of the members, high bit: not compressed · bytes · u64 XXH3 of all before, seeded with the block's number
//! ```

use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::OnceLock;

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use twox_hash::XxHash3_64;

use super::member::Head;

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

    /// Appends block `number` of these members to `out`, compressed if that is worth it; returns its length.
    pub fn put(&mut self, number: usize, members: &[u8], out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.resize(start + HEAD + get_maximum_output_size(members.len()), 0);
        let compressed = compress_into_with_table(members, &mut out[start + HEAD..], &mut self.table);
        match compressed {
            // An eighth is worth the time to undo it.
            Ok(compressed) if compressed < members.len() - members.len() / 8 => {
                out.truncate(start + HEAD + compressed);
                out[start..start + HEAD].copy_from_slice(&(members.len() as u32).to_le_bytes());
                put_checksum(number, start, out)
            }
            _ => {
                out.truncate(start);
                put_plain(number, members, out)
            }
        }
    }
}

/// Appends block `number` of these members to `out` as they are; returns its length.
pub(super) fn put_plain(number: usize, members: &[u8], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&(members.len() as u32 | NOT_COMPRESSED).to_le_bytes());
    out.extend_from_slice(members);
    put_checksum(number, start, out)
}

/// Ends the block that begins at `start`; returns its length.
fn put_checksum(number: usize, start: usize, out: &mut Vec<u8>) -> usize {
    let checksum = XxHash3_64::oneshot_with_seed(number as u64, &out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.len() - start
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

/// The members of a block in memory.
#[derive(Debug, Default)]
pub(super) struct Block {
    members: Vec<u8>,
    /// None: malformed.
    places: OnceLock<Option<Places>>,
}

/// Where the members of a block begin, to be searched without going through the members.
#[derive(Debug)]
struct Places {
    starts: Vec<u32>,
    /// What all keys begin with.
    common: Box<[u8]>,
    /// Of each key the eight bytes behind those, as a number that compares as they do.
    prefixes: Vec<u64>,
}

impl Block {
    pub fn new(members: Vec<u8>) -> Block {
        Block { members, places: OnceLock::new() }
    }

    /// Its members, to be replaced.
    pub fn members_mut(&mut self) -> &mut Vec<u8> {
        self.places.take();
        &mut self.members
    }

    /// About how much memory it takes, with its places.
    pub fn byte_size(&self) -> usize {
        self.members.capacity() + self.members.capacity() / 8
    }

    /// Prepares a block that is kept and was asked for again for many searches.
    pub fn index(&self) {
        self.places.get_or_init(|| Places::of(&self.members));
    }

    /// Where the first member begins whose key isn't below `key`; the block's length if none is. `from`: where a member
    /// begins that isn't behind that one. None: malformed.
    pub fn find(&self, key: &[u8], from: usize) -> Option<usize> {
        match self.places.get() {
            Some(places) => places.as_ref()?.find(&self.members, key),
            None => self.go_to(key, from),
        }
    }

    fn go_to(&self, key: &[u8], mut at: usize) -> Option<usize> {
        while at < self.members.len() {
            let head = Head::parse(&self.members, at)?;
            if head.key(&self.members) >= key {
                break;
            }
            at = head.end as usize;
        }
        Some(at)
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.members
    }
}

impl Places {
    fn of(members: &[u8]) -> Option<Places> {
        let mut heads: Vec<Head> = Vec::new();
        let mut at = 0;
        while at < members.len() {
            let head = Head::parse(members, at)?;
            at = head.end as usize;
            heads.push(head);
        }
        let key = |head: &Head| head.key(members);
        let common: &[u8] = match (heads.first(), heads.last()) {
            (Some(first), Some(last)) => {
                &key(first)[..key(first).iter().zip(key(last)).take_while(|(a, b)| a == b).count()]
            }
            _ => &[],
        };
        Some(Places {
            starts: heads.iter().map(|head| head.start).collect(),
            prefixes: heads.iter().map(|head| prefix(&key(head)[common.len()..])).collect(),
            common: common.into(),
        })
    }

    fn find(&self, members: &[u8], key: &[u8]) -> Option<usize> {
        match key[..key.len().min(self.common.len())].cmp(&self.common) {
            Ordering::Less => return Some(0),
            Ordering::Greater => return Some(members.len()),
            Ordering::Equal => {}
        }
        let wanted = prefix(&key[self.common.len()..]);
        let at = self.prefixes.partition_point(|prefix| *prefix < wanted);
        for &start in &self.starts[at..] {
            // One with the same prefix may still be below.
            if Head::parse(members, start as usize)?.key(members) >= key {
                return Some(start as usize);
            }
        }
        Some(members.len())
    }
}

/// The first eight bytes, zeros behind shorter ones, as a number that compares as they do.
fn prefix(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::super::member::{Kind, Member, Rank};
    use super::*;

    #[test]
    fn a_block_comes_back_compressed_or_not_and_only_at_its_number() {
        let noise: Vec<u8> = (0..3_000_u64).flat_map(|i| XxHash3_64::oneshot(&i.to_le_bytes()).to_le_bytes()).collect();
        for members in [Vec::new(), b"short".to_vec(), b"again and ".repeat(900), noise] {
            let (mut compressed, mut plain) = (b"before".to_vec(), b"before".to_vec());
            let length = Compressor::new().put(7, &members, &mut compressed);
            assert_eq!(length, compressed.len() - 6);
            assert_eq!(put_plain(7, &members, &mut plain), plain.len() - 6);
            assert!(length <= plain.len());
            for block in [&compressed[6..], &plain[6..]] {
                let mut opened = b"old".to_vec();
                assert_eq!(open(7, block, &mut opened), Some(()));
                assert_eq!(opened, members);
                assert_eq!(open(8, block, &mut opened), None);
            }
        }
        let mut small = Vec::new();
        assert!(Compressor::new().put(0, &b"again and ".repeat(900), &mut small) < 1_000);
    }

    #[test]
    fn a_search_finds_the_first_member_of_a_key_or_of_the_next_one() {
        let keys: [&[u8]; 9] = [
            b"common-a",
            b"common-a",
            b"common-ab",
            b"common-b1234567",
            b"common-b12345678",
            b"common-b123456789",
            b"common-b123456789",
            b"common-c\0",
            b"common-d",
        ];
        let (mut members, mut starts) = (Vec::new(), Vec::new());
        for (at, key) in keys.iter().enumerate() {
            starts.push(members.len());
            let member = Member {
                key: key.to_vec(),
                sequence: vec![9 - at as u8],
                kind: Kind::Upsert,
                rank: Rank::default(),
                batch_id: 1,
                authored: None,
                run_start: None,
                location: None,
                last_seeded: None,
                first_live: None,
                values: b"values".to_vec(),
            };
            member.borrow().put(&mut members);
        }
        starts.push(members.len());
        let others: [&[u8]; 8] =
            [b"", b"a", b"common-", b"common-aa", b"common-b12345677", b"common-c", b"common-e", b"d"];
        for key in keys.into_iter().chain(others) {
            let expected = starts[keys.iter().filter(|known| **known < key).count()];
            for indexed in [false, true] {
                let block = Block::new(members.clone());
                if indexed {
                    block.index();
                }
                assert_eq!(block.find(key, 0), Some(expected), "{}", key.escape_ascii());
                assert_eq!(block.find(key, expected), Some(expected));
            }
        }
        for (members, expected) in [(vec![], Some(0)), (vec![200, 1, 1], None)] {
            let block = Block::new(members);
            assert_eq!(block.find(b"a", 0), expected);
            block.index();
            assert_eq!(block.find(b"a", 0), expected);
        }
    }
}
