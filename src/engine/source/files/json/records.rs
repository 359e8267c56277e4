//! Cuts bytes into records: lines for the decoder, parts of a large file for the threads.
//!
//! Not here: what is in a record.

use std::ops::Range;

/// Not part of a file's first record.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// UTF-8 is checked for about so many bytes at once, which stay in the cache until they are decoded.
const WINDOW_BYTES: usize = 32 << 10;

/// Cuts the text of JSON lines into at most `parts` ranges of about the same length, each ending at a line's end.
pub fn split_records(bytes: &[u8], parts: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::with_capacity(parts);
    let mut start = 0;
    for part in 1..=parts {
        let aim = (bytes.len() as u128 * part as u128 / parts as u128) as usize;
        let end = if aim <= start { start } else { end_of_line(bytes, aim - 1) };
        if end > start {
            ranges.push(start..end);
        }
        start = start.max(end);
    }
    ranges
}

/// Where the last whole line of `bytes` ends: for reading a file piece by piece. 0 if there is none.
pub fn whole_records(bytes: &[u8]) -> usize {
    memchr::memrchr(b'\n', bytes).map_or(0, |newline| newline + 1)
}

/// The index after the newline at or after `from`.
fn end_of_line(bytes: &[u8], from: usize) -> usize {
    memchr::memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |newline| from + newline + 1)
}

/// A line that isn't blank, without its end.
pub struct Record<'a> {
    pub bytes: &'a [u8],
    pub is_utf8: bool,
    pub line: u64,
}

/// The records of JSON lines, in order.
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u64,
    window_end: usize,
    window_is_utf8: bool,
}

impl<'a> Records<'a> {
    /// `line` is the number of the first line; before line 1 a byte order mark is passed over.
    pub fn new(bytes: &'a [u8], line: u64) -> Records<'a> {
        let at = if line == 1 && bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Records { bytes, at, line, window_end: at, window_is_utf8: true }
    }

    /// How many bytes were passed.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Number of the next line.
    pub fn line(&self) -> u64 {
        self.line
    }

    fn check_window(&mut self) {
        let aim = self.bytes.len().min(self.at + WINDOW_BYTES);
        self.window_end = end_of_line(self.bytes, aim - 1);
        self.window_is_utf8 = is_utf8(&self.bytes[self.at..self.window_end]);
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        while self.at < self.bytes.len() {
            if self.at >= self.window_end {
                self.check_window();
            }
            let end = end_of_line(self.bytes, self.at);
            let line = &self.bytes[self.at..end];
            let number = self.line;
            self.at = end;
            self.line += 1;
            // Only blank lines can start with a space or a line's end, or lines worth a second look.
            if line[0] <= b' ' && line.trim_ascii().is_empty() {
                continue;
            }
            let bytes = line.strip_suffix(b"\n").unwrap_or(line);
            let is_utf8 = self.window_is_utf8 || is_utf8(bytes);
            return Some(Record { bytes, is_utf8, line: number });
        }
        None
    }
}

fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_at_lines_and_lose_nothing() {
        let text = b"{\"a\":1}\n{}\n\n{\"a\":\"a long one, longer than the others\"}\n{\"a\":2}";
        for parts in 1..10 {
            let ranges = split_records(text, parts);
            assert!(ranges.len() <= parts);
            let joined: Vec<u8> = ranges.iter().flat_map(|range| text[range.clone()].to_vec()).collect();
            assert_eq!(joined, text);
            assert!(ranges.iter().all(|range| range.end == text.len() || text[range.end - 1] == b'\n'));
        }
        assert!(split_records(b"", 3).is_empty());
        assert_eq!(whole_records(b"{}\n{\"a"), 3);
        assert_eq!(whole_records(b"{\"a"), 0);
    }

    #[test]
    fn blank_lines_and_byte_order_marks_are_no_records() {
        let text = b"\xEF\xBB\xBF{}\r\n \r\n\n\xFF\n[]";
        let records: Vec<_> = Records::new(text, 1).map(|record| (record.bytes, record.is_utf8, record.line)).collect();
        assert_eq!(records, [(&b"{}\r"[..], true, 1), (b"\xFF", false, 4), (b"[]", true, 5)]);
    }
}
