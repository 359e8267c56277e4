//! The byte strings of a batch, one a row, in one allocation.

/// Byte strings by row number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteRows {
    bytes: Vec<u8>,
    /// Row `i` lies from `offsets[i]` to `offsets[i + 1]`.
    offsets: Vec<usize>,
}

impl Default for ByteRows {
    fn default() -> ByteRows {
        ByteRows { bytes: Vec::new(), offsets: vec![0] }
    }
}

impl ByteRows {
    /// Rows of these lengths, all zeros, with the place where each begins.
    pub(super) fn with_lengths(lengths: &[usize]) -> (ByteRows, Vec<usize>) {
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        let mut end = 0;
        offsets.push(0);
        for length in lengths {
            end += length;
            offsets.push(end);
        }
        let starts = offsets[..lengths.len()].to_vec();
        (ByteRows { bytes: vec![0; end], offsets }, starts)
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Appends a row.
    pub fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.offsets.push(self.bytes.len());
    }

    /// Appends the row that `write` appends to the bytes it is given.
    pub fn push_with<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        write(&mut self.bytes)?;
        self.offsets.push(self.bytes.len());
        Ok(())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Bytes of all rows together.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of row `i`.
    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        &self.bytes[self.offsets[i]..self.offsets[i + 1]]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.offsets.windows(2).map(|ends| &self.bytes[ends[0]..ends[1]])
    }
}
