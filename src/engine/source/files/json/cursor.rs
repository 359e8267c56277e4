//! A position in the bytes of one record: walks over JSON's tokens and says what is wrong with them.
//!
//! Not here: what a token means for a column (`value.rs`). Everything here accepts exactly RFC 8259, so that
//! decoding, skipping and inferring agree on which records are corrupt.

use super::number::Number;

/// Values nested deeper than this are corrupt, so that no input can exhaust the stack.
pub const DEPTH_MAX: u16 = 200;

/// Why a record can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corrupt {
    UnexpectedEnd,
    UnexpectedCharacter,
    ControlCharacter,
    BadEscape,
    LoneSurrogate,
    BadNumber,
    BadLiteral,
    ExpectedColon,
    ExpectedComma,
    ExpectedKey,
    TrailingCharacters,
    TooDeep,
    NoObject,
    InvalidUtf8,
}

impl Corrupt {
    /// The reason in words, for messages.
    pub fn reason(self) -> &'static str {
        match self {
            Corrupt::UnexpectedEnd => "the record ends too early",
            Corrupt::UnexpectedCharacter => "a value cannot start with this character",
            Corrupt::ControlCharacter => "a control character in a string must be escaped",
            Corrupt::BadEscape => "unknown escape in a string",
            Corrupt::LoneSurrogate => "half of a surrogate pair in a string",
            Corrupt::BadNumber => "malformed number",
            Corrupt::BadLiteral => "expected `true`, `false` or `null`",
            Corrupt::ExpectedColon => "expected `:` after a key",
            Corrupt::ExpectedComma => "expected `,` or the closing bracket",
            Corrupt::ExpectedKey => "expected a key in double quotes",
            Corrupt::TrailingCharacters => "something follows the record's value",
            Corrupt::TooDeep => "values are nested too deeply",
            Corrupt::NoObject => "the record is no object",
            Corrupt::InvalidUtf8 => "the text is not UTF-8",
        }
    }
}

/// A string token as written, without its quotes. Its escapes are known to be right.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    pub raw: &'a [u8],
    pub is_escaped: bool,
}

impl<'a> Text<'a> {
    /// The string's bytes, through `scratch` if there are escapes.
    pub fn bytes<'b>(self, scratch: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        if !self.is_escaped {
            return self.raw;
        }
        scratch.clear();
        self.append_to(scratch);
        scratch
    }

    /// Appends the string's bytes.
    #[inline]
    pub fn append_to(self, out: &mut Vec<u8>) {
        if self.is_escaped { unescape(self.raw, out) } else { out.extend_from_slice(self.raw) }
    }
}

/// See the module.
pub struct Cursor<'a> {
    bytes: &'a [u8],
    /// Index of the next byte.
    pub at: usize,
    depth: u16,
    /// `allowNonNumericNumbers`: the words `NaN`, `Infinity`, `-Infinity`, … are numbers.
    allows_non_numeric: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], allows_non_numeric: bool) -> Cursor<'a> {
        Cursor { bytes, at: 0, depth: 0, allows_non_numeric }
    }

    /// The next byte; 0, which no JSON text holds, at the end.
    #[inline(always)]
    pub fn peek(&self) -> u8 {
        match self.bytes.get(self.at) {
            Some(byte) => *byte,
            None => 0,
        }
    }

    /// Moves over `token` if it is next.
    #[inline(always)]
    pub fn eat(&mut self, token: u8) -> bool {
        let is_next = self.peek() == token;
        self.at += is_next as usize;
        is_next
    }

    /// What is still to be read.
    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The text from `start` to here.
    #[inline]
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    #[inline(always)]
    pub fn skip_space(&mut self) {
        if self.peek() <= b' ' {
            self.skip_space_run();
        }
    }

    #[cold]
    fn skip_space_run(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// Goes one level down; the caller goes up again with `leave`.
    #[inline(always)]
    pub fn enter(&mut self) -> Result<(), Corrupt> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(Corrupt::TooDeep) } else { Ok(()) }
    }

    #[inline(always)]
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// What is wrong when `expected` was due here.
    #[cold]
    pub fn wrong(&self, expected: Corrupt) -> Corrupt {
        if self.at >= self.bytes.len() { Corrupt::UnexpectedEnd } else { expected }
    }

    /// Only space may follow.
    pub fn end(&mut self) -> Result<(), Corrupt> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { Err(Corrupt::TrailingCharacters) }
    }

    /// Moves over a word if it is next and nothing else hangs on it.
    #[inline]
    pub fn word(&mut self, word: &[u8]) -> Result<(), Corrupt> {
        if self.rest().starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.wrong(Corrupt::BadLiteral))
        }
    }

    /// Reads a string; the opening quote is next.
    #[inline(always)]
    pub fn string(&mut self) -> Result<Text<'a>, Corrupt> {
        let start = self.at + 1;
        self.at = start + plain_length(&self.bytes[start..]);
        if self.peek() == b'"' {
            let raw = &self.bytes[start..self.at];
            self.at += 1;
            return Ok(Text { raw, is_escaped: false });
        }
        self.string_with_escapes(start)
    }

    #[cold]
    fn string_with_escapes(&mut self, start: usize) -> Result<Text<'a>, Corrupt> {
        loop {
            match self.peek() {
                b'"' => {
                    let raw = &self.bytes[start..self.at];
                    self.at += 1;
                    return Ok(Text { raw, is_escaped: true });
                }
                b'\\' => self.check_escape()?,
                _ => return Err(self.wrong(Corrupt::ControlCharacter)),
            }
            self.at += plain_length(self.rest());
        }
    }

    fn check_escape(&mut self) -> Result<(), Corrupt> {
        self.at += 1;
        match self.peek() {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => match self.code_unit()? {
                0xD800..=0xDBFF => {
                    if !self.rest().starts_with(b"\\u") {
                        return Err(Corrupt::LoneSurrogate);
                    }
                    self.at += 1;
                    if !matches!(self.code_unit()?, 0xDC00..=0xDFFF) {
                        return Err(Corrupt::LoneSurrogate);
                    }
                }
                0xDC00..=0xDFFF => return Err(Corrupt::LoneSurrogate),
                _ => {}
            },
            _ => return Err(self.wrong(Corrupt::BadEscape)),
        }
        Ok(())
    }

    /// Reads `uXXXX`.
    fn code_unit(&mut self) -> Result<u16, Corrupt> {
        let digits = self.bytes.get(self.at + 1..self.at + 5).ok_or(Corrupt::UnexpectedEnd)?;
        let unit = hex_unit(digits).ok_or(Corrupt::BadEscape)?;
        self.at += 5;
        Ok(unit)
    }

    /// Reads a number; `-` or a digit is next.
    #[inline(always)]
    pub fn number(&mut self) -> Result<Number<'a>, Corrupt> {
        let (number, length) = Number::scan(self.rest()).ok_or_else(|| self.wrong(Corrupt::BadNumber))?;
        self.at += length;
        Ok(number)
    }

    /// Reads one of the words that `allowNonNumericNumbers` makes numbers.
    #[inline(always)]
    pub fn non_numeric(&mut self) -> Option<f64> {
        if self.allows_non_numeric { self.non_numeric_word() } else { None }
    }

    fn non_numeric_word(&mut self) -> Option<f64> {
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
        let sign = matches!(self.peek(), b'-' | b'+') as usize;
        let length = sign + self.rest().iter().skip(sign).take_while(|byte| is_letter(byte)).count();
        let value = self.non_numeric_text(&self.rest()[..length])?;
        self.at += length;
        Some(value)
    }

    /// The value of such a word.
    pub fn non_numeric_text(&self, text: &[u8]) -> Option<f64> {
        match text {
            _ if !self.allows_non_numeric => None,
            b"NaN" => Some(f64::NAN),
            b"Infinity" | b"+Infinity" | b"INF" | b"+INF" => Some(f64::INFINITY),
            b"-Infinity" | b"-INF" => Some(f64::NEG_INFINITY),
            _ => None,
        }
    }

    /// Moves over the value that is next, checking it.
    pub fn skip_value(&mut self) -> Result<(), Corrupt> {
        match self.peek() {
            b'"' => self.string().map(drop),
            b'{' => self.skip_members(),
            b'[' => self.skip_elements(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            b'0'..=b'9' => self.number().map(drop),
            _ if self.non_numeric().is_some() => Ok(()),
            b'-' => self.number().map(drop),
            _ => Err(self.wrong(Corrupt::UnexpectedCharacter)),
        }
    }

    fn skip_members(&mut self) -> Result<(), Corrupt> {
        self.enter()?;
        self.at += 1;
        self.skip_space();
        if !self.eat(b'}') {
            loop {
                self.key()?;
                self.skip_value()?;
                if !self.has_more(b'}')? {
                    break;
                }
            }
        }
        self.leave();
        Ok(())
    }

    fn skip_elements(&mut self) -> Result<(), Corrupt> {
        self.enter()?;
        self.at += 1;
        self.skip_space();
        if !self.eat(b']') {
            loop {
                self.skip_value()?;
                if !self.has_more(b']')? {
                    break;
                }
            }
        }
        self.leave();
        Ok(())
    }

    /// Reads a key and its colon, and stops at the value.
    pub fn key(&mut self) -> Result<Text<'a>, Corrupt> {
        if self.peek() != b'"' {
            return Err(self.wrong(Corrupt::ExpectedKey));
        }
        let key = self.string()?;
        self.skip_space();
        if !self.eat(b':') {
            return Err(self.wrong(Corrupt::ExpectedColon));
        }
        self.skip_space();
        Ok(key)
    }

    /// Calls `read` with each row of the text: the object that is next or, if `multi_line`, the objects of the array.
    #[inline]
    pub fn each_row(
        &mut self,
        multi_line: bool,
        mut read: impl FnMut(&mut Cursor<'a>) -> Result<(), Corrupt>,
    ) -> Result<u64, Corrupt> {
        self.skip_space();
        if !(multi_line && self.peek() == b'[') {
            self.row(&mut read)?;
            return Ok(1);
        }
        self.at += 1;
        self.skip_space();
        if self.eat(b']') {
            return Ok(0);
        }
        let mut rows = 0;
        loop {
            self.row(&mut read)?;
            rows += 1;
            if !self.has_more(b']')? {
                return Ok(rows);
            }
        }
    }

    #[inline(always)]
    fn row(&mut self, read: &mut impl FnMut(&mut Cursor<'a>) -> Result<(), Corrupt>) -> Result<(), Corrupt> {
        if self.peek() == b'{' {
            return read(self);
        }
        // What isn't even JSON is more than no object.
        self.skip_value()?;
        Err(Corrupt::NoObject)
    }

    /// After a member or element: moves over the comma (true) or the closing bracket (false).
    #[inline(always)]
    pub fn has_more(&mut self, close: u8) -> Result<bool, Corrupt> {
        self.skip_space();
        let byte = self.peek();
        if byte == b',' {
            self.at += 1;
            self.skip_space();
            Ok(true)
        } else if byte == close {
            self.at += 1;
            Ok(false)
        } else {
            Err(self.wrong(Corrupt::ExpectedComma))
        }
    }
}

/// How many bytes come before the first quote, backslash or control character.
///
/// Eight bytes at a time: most strings of records are shorter than what would pay for a call into `memchr`.
#[inline(always)]
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        // The high bit of a byte is set where it is zero (first two) or below 0x20 (third); a borrow can only
        // make bytes above the lowest hit wrong, and only the lowest hit counts.
        let hits = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        if hits & HIGHS != 0 {
            return index * 8 + (hits & HIGHS).trailing_zeros() as usize / 8;
        }
    }
    let checked = bytes.len() - tail.len();
    checked + tail.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(tail.len())
}

fn hex_unit(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |unit, digit| Some(unit << 4 | (*digit as char).to_digit(16)? as u16))
}

/// Appends what `raw`, whose escapes were checked, stands for.
#[cold]
fn unescape(raw: &[u8], out: &mut Vec<u8>) {
    let mut rest = raw;
    while let Some(plain) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..plain]);
        let (byte, length) = match rest[plain + 1] {
            b'b' => (8, 2),
            b'f' => (12, 2),
            b'n' => (b'\n', 2),
            b'r' => (b'\r', 2),
            b't' => (b'\t', 2),
            b'u' => {
                rest = &rest[plain..];
                rest = &rest[append_code_point(rest, out)..];
                continue;
            }
            other => (other, 2),
        };
        out.push(byte);
        rest = &rest[plain + length..];
    }
    out.extend_from_slice(rest);
}

/// Appends the character of `\uXXXX` or of a pair of them; returns the escape's length.
fn append_code_point(escape: &[u8], out: &mut Vec<u8>) -> usize {
    let unit =
        |start: usize| hex_unit(&escape[start..start + 4]).expect("escapes were checked when the string was read");
    let high = unit(2) as u32;
    let (code, length) = if (0xD800..0xDC00).contains(&high) {
        (0x10000 + ((high - 0xD800) << 10) + (unit(8) as u32 - 0xDC00), 12)
    } else {
        (high, 6)
    };
    let character = char::from_u32(code).expect("surrogates were checked when the string was read");
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    length
}
