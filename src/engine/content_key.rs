//! Keys of what is remembered: 128 bits of everything that it depends on, so that two things are never taken for one.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The key of a content.
pub(crate) type ContentKey = (u64, u64);

/// Feeds two hashers that start differently.
pub(crate) struct ContentHasher(DefaultHasher, DefaultHasher);

impl ContentHasher {
    /// Nothing is hashed yet.
    pub fn new() -> ContentHasher {
        let mut second = DefaultHasher::new();
        second.write_u8(1);
        ContentHasher(DefaultHasher::new(), second)
    }

    /// The key of what was hashed so far.
    pub fn key(&self) -> ContentKey {
        (self.0.finish(), self.1.finish())
    }
}

impl Hasher for ContentHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// The key of one value.
pub(crate) fn content_key(value: &impl Hash) -> ContentKey {
    let mut hasher = ContentHasher::new();
    value.hash(&mut hasher);
    hasher.key()
}
