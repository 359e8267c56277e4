//! Opening files: the same bytes that were listed, decompressed, cut at line ends.
//!
//! Not here: what the lines say.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

use super::list::{FileEntry, modified_us};
use super::split::Part;
use crate::error::{Error, Result};

/// How a file's bytes are packed; its name says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

/// Returns how the file of this name is packed.
pub fn compression(path: &str) -> Result<Compression> {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is = |other: &str| extension.eq_ignore_ascii_case(other);
    Ok(match () {
        () if is("gz") || is("gzip") => Compression::Gzip,
        () if is("zst") || is("zstd") => Compression::Zstd,
        () if ["bz2", "lz4", "snappy", "xz", "deflate"].iter().any(|other| is(other)) => {
            return Err(Error::user(
                "unsupported-compression",
                format!("cannot read `{path}`: files packed as `{extension}` are not supported"),
                "unpack the file or pack it as .gz or .zst; `pathGlobFilter` keeps it out",
            ));
        }
        () => Compression::None,
    })
}

/// Tells whether several threads may share the file's lines.
pub fn is_plain(file: &FileEntry) -> bool {
    matches!(compression(&file.path), Ok(Compression::None))
}

/// Opens the file and makes sure that it is the one that was listed.
pub fn open_raw(file: &FileEntry) -> Result<File> {
    let opened = File::open(&file.path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::External {
            code: "file-missing",
            what: format!("`{}` was there when the files were listed and is gone now", file.path),
            help: "put the file back, or set `ignoreMissingFiles => true`".into(),
        },
        _ => Error::io("open", &file.path, error),
    })?;
    let metadata = opened.metadata().map_err(|error| Error::io("open", &file.path, error))?;
    let modified_us = modified_us(&metadata).map_err(|error| Error::io("open", &file.path, error))?;
    if metadata.len() != file.size || modified_us != file.modified_us {
        return Err(Error::External {
            code: "file-changed",
            what: format!("`{}` changed after it was listed: {} bytes, now {}", file.path, file.size, metadata.len()),
            help: "write files elsewhere and move them in when they are complete".into(),
        });
    }
    Ok(opened)
}

/// Opens the file's text, decompressed.
pub fn open_text(file: &FileEntry) -> Result<Box<dyn Read>> {
    let opened = open_raw(file)?;
    Ok(match compression(&file.path)? {
        Compression::None => Box::new(opened),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(opened)),
        Compression::Zstd => {
            Box::new(zstd::Decoder::new(opened).map_err(|error| Error::io("unpack", &file.path, error))?)
        }
    })
}

/// Reads a whole file, decompressed, without a byte-order mark.
pub fn read_whole(file: &FileEntry) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(file.size).unwrap_or(0));
    open_text(file)?.read_to_end(&mut bytes).map_err(|error| corrupt(file, error))?;
    if bytes.starts_with(BOM) {
        bytes.drain(..BOM.len());
    }
    Ok(bytes)
}

/// A file whose bytes can't be what its format or its packing says.
pub fn corrupt(file: &FileEntry, why: impl std::fmt::Display) -> Error {
    Error::user(
        "corrupt-file",
        format!("cannot read `{}`: {why}", file.path),
        "replace the file, keep it out with `pathGlobFilter`, or set `ignoreCorruptFiles => true`",
    )
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// How much is read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The lines of one part of a file, some whole lines at a time.
///
/// A line belongs to the part that its first byte is in, so that the parts of a file have each line once.
pub struct Lines<'a> {
    file: &'a FileEntry,
    input: Box<dyn Read>,
    /// Where the next byte from `input` stands in the file, if that is known (not packed).
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    /// `buffer[..given]` was handed out; what follows is the start of a line.
    given: usize,
    is_done: bool,
}

impl<'a> Lines<'a> {
    /// Opens the lines of `part`; a packed file has one part.
    pub fn open(file: &'a FileEntry, part: Part) -> Result<Lines<'a>> {
        let is_plain = is_plain(file);
        let mut lines = Lines {
            file,
            input: Box::new(std::io::empty()),
            at: part.start,
            end: if is_plain { part.end } else { u64::MAX },
            buffer: Vec::with_capacity(CHUNK_BYTES.min(usize::try_from(file.size).unwrap_or(CHUNK_BYTES)) + 1),
            given: 0,
            is_done: false,
        };
        if part.start == 0 {
            lines.input = open_text(file)?;
        } else {
            // The byte before the part tells whether its first line starts here.
            lines.at = part.start - 1;
            let mut opened = open_raw(file)?;
            opened.seek(SeekFrom::Start(lines.at)).map_err(|error| corrupt(file, error))?;
            lines.input = Box::new(opened);
            lines.skip_line()?;
        }
        Ok(lines)
    }

    /// Returns the next whole lines with their line ends (the last line of a file may lack one), or `None`.
    pub fn next_chunk(&mut self) -> Result<Option<&[u8]>> {
        if self.is_done {
            return Ok(None);
        }
        self.buffer.drain(..self.given);
        self.given = 0;
        loop {
            let before = self.buffer.len();
            let is_start = self.at == 0;
            let is_end = self.fill()?;
            if is_start && self.buffer.starts_with(BOM) {
                self.buffer.drain(..BOM.len());
            }
            if self.at >= self.end {
                // The part's last line is the one that its last byte is in.
                let from = self.buffer.len()
                    - usize::try_from(self.at - self.end + 1).unwrap_or(usize::MAX).min(self.buffer.len());
                if let Some(end) = memchr::memchr(b'\n', &self.buffer[from..]) {
                    self.given = from + end + 1;
                    self.is_done = true;
                    return Ok(Some(&self.buffer[..self.given]));
                }
            }
            if is_end {
                self.is_done = true;
                self.given = self.buffer.len();
                return Ok((!self.buffer.is_empty()).then_some(&self.buffer[..]));
            }
            if self.at < self.end
                && let Some(end) = memchr::memrchr(b'\n', &self.buffer[before.min(self.buffer.len())..])
            {
                self.given = before + end + 1;
                return Ok(Some(&self.buffer[..self.given]));
            }
        }
    }

    /// Reads one more chunk; tells whether the file ended.
    fn fill(&mut self) -> Result<bool> {
        let before = self.buffer.len();
        let wanted = CHUNK_BYTES as u64;
        let read = (&mut self.input).take(wanted).read_to_end(&mut self.buffer);
        read.map_err(|error| corrupt(self.file, error))?;
        let count = self.buffer.len() - before;
        self.at += count as u64;
        Ok(count < CHUNK_BYTES)
    }

    fn skip_line(&mut self) -> Result<()> {
        loop {
            let is_end = self.fill()?;
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                self.given = end + 1;
                let line_start = self.at - (self.buffer.len() - self.given) as u64;
                // The whole part lies inside one line, which belongs to an earlier part.
                self.is_done = line_start >= self.end;
                self.buffer.drain(..self.given);
                self.given = 0;
                return Ok(());
            }
            if is_end {
                self.is_done = true;
                return Ok(());
            }
            self.buffer.clear();
        }
    }
}

/// Returns the lines of a chunk without their ends (`\n` or `\r\n`).
pub fn lines(chunk: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest);
        let (line, after) = match end {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        rest = after;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::super::tests::listed;
    use super::*;

    fn lines_of(file: &FileEntry, part: Part) -> Vec<String> {
        let mut reader = Lines::open(file, part).unwrap();
        let mut all = Vec::new();
        while let Some(chunk) = reader.next_chunk().unwrap() {
            all.extend(lines(chunk).map(|line| String::from_utf8_lossy(line).into_owned()));
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn each_line_is_in_exactly_one_part(text in "[ab\n]{0,60}", cuts in proptest::collection::vec(0u64..60, 0..5)) {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("f"), &text).unwrap();
            let file = &listed(folder.path())[0];
            let mut cuts: Vec<u64> = cuts.into_iter().filter(|cut| *cut > 0 && *cut < file.size).collect();
            cuts.sort_unstable();
            cuts.dedup();
            cuts.push(file.size);
            let mut start = 0;
            let mut all = Vec::new();
            for end in cuts {
                all.extend(lines_of(file, Part { file: 0, start, end }));
                start = end;
            }
            let expected: Vec<String> = lines(text.as_bytes()).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn lines_longer_than_a_chunk_and_cuts_inside_them_are_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(3 * CHUNK_BYTES + 17);
        let text = format!("a\n{long}\nb\n{}c", "line\n".repeat(CHUNK_BYTES / 2));
        std::fs::write(folder.path().join("f"), &text).unwrap();
        let file = &listed(folder.path())[0];
        let expected: Vec<&str> = text.lines().collect();
        for pieces in [1, 2, 3, 5] {
            let mut all = Vec::new();
            for piece in 0..pieces {
                let at = |piece| file.size * piece / pieces;
                all.extend(lines_of(file, Part { file: 0, start: at(piece), end: at(piece + 1) }));
            }
            assert!(all == expected, "{pieces} parts");
        }
    }

    #[test]
    fn packed_text_and_a_byte_order_mark_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = b"\xEF\xBB\xBFone\r\ntwo";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        std::fs::write(folder.path().join("a.gz"), gzip.finish().unwrap()).unwrap();
        std::fs::write(folder.path().join("b.zst"), zstd::encode_all(&text[..], 1).unwrap()).unwrap();
        std::fs::write(folder.path().join("c.txt"), text).unwrap();
        for file in listed(folder.path()) {
            assert_eq!(lines_of(&file, Part { file: 0, start: 0, end: file.size }), ["one", "two"], "{}", file.path);
            assert_eq!(read_whole(&file).unwrap(), b"one\r\ntwo");
        }
    }

    #[test]
    fn a_file_that_changed_or_went_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "{}").unwrap();
        let file = listed(folder.path()).remove(0);
        std::fs::write(&path, "{} {}").unwrap();
        let error = open_text(&file).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "file-changed");
        assert!(error.to_string().contains("a.json"), "{error}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(open_text(&file).map(|_| ()).unwrap_err().code(), "file-missing");
        let packed = FileEntry { path: "/x.bz2".into(), ..file };
        assert_eq!(compression(&packed.path).unwrap_err().code(), "unsupported-compression");
    }
}
