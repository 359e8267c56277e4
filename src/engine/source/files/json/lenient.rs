//! Rewrites a record in one of Jackson's lenient forms of JSON as strict JSON, which everything else reads.
//!
//! A slow path, taken only if an option asks for it. It doesn't judge: what it can't make sense of is copied, and
//! refused by the cursor. Not here: `allowNonNumericNumbers`, which the cursor knows itself.

use std::borrow::Cow;

use pipeline::read_files::JsonOptions;

/// Which forms are allowed.
#[derive(Debug, Clone)]
pub struct Lenient {
    options: JsonOptions,
}

impl Lenient {
    /// None if all options are off.
    pub fn new(options: &JsonOptions) -> Option<Lenient> {
        let is_lenient = options.allow_comments
            || options.allow_single_quotes
            || options.allow_unquoted_field_names
            || options.allow_numeric_leading_zeros
            || options.allow_backslash_escaping_any_character
            || options.allow_unquoted_control_chars;
        is_lenient.then(|| Lenient { options: options.clone() })
    }

    /// The record as strict JSON.
    pub fn normalise<'a>(&self, record: &'a [u8]) -> Cow<'a, [u8]> {
        let mut rest = record;
        let mut out = Vec::with_capacity(record.len() + 16);
        while let Some(byte) = rest.first() {
            rest = match byte {
                b'/' if self.options.allow_comments && comment_length(rest) > 0 => {
                    out.push(b' ');
                    &rest[comment_length(rest)..]
                }
                b'"' => self.copy_string(rest, &mut out),
                b'\'' if self.options.allow_single_quotes => self.copy_string(rest, &mut out),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => self.copy_word(rest, &mut out),
                b'0'..=b'9' | b'-' => self.copy_number(rest, &mut out),
                other => {
                    out.push(*other);
                    &rest[1..]
                }
            };
        }
        Cow::Owned(out)
    }

    /// Copies a string with its quotes, escaping what strict JSON wants escaped.
    fn copy_string<'a>(&self, text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let quote = text[0];
        let mut at = 1;
        out.push(b'"');
        while let Some(byte) = text.get(at) {
            at += 1;
            match byte {
                byte if *byte == quote => {
                    out.push(b'"');
                    return &text[at..];
                }
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => {
                    let escaped = text.get(at).copied();
                    at += escaped.is_some() as usize;
                    self.copy_escape(escaped, quote, out);
                }
                0..0x20 if self.options.allow_unquoted_control_chars => {
                    out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                }
                other => out.push(*other),
            }
        }
        &text[at..]
    }

    fn copy_escape(&self, escaped: Option<u8>, quote: u8, out: &mut Vec<u8>) {
        match escaped {
            Some(byte @ (b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u')) => out.extend([b'\\', byte]),
            Some(byte) if byte == quote || (self.options.allow_backslash_escaping_any_character && byte >= b' ') => {
                out.push(byte);
            }
            other => {
                out.push(b'\\');
                out.extend(other);
            }
        }
    }

    /// Copies a word, in quotes if it is a key: no value is followed by a colon.
    fn copy_word<'a>(&self, text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let is_part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-' | b'@' | b'#' | 0x80..);
        let length = text.iter().take_while(|byte| is_part(byte)).count();
        let (word, rest) = text.split_at(length);
        let is_key = self.options.allow_unquoted_field_names && self.is_before_colon(rest);
        if is_key {
            out.push(b'"');
        }
        out.extend_from_slice(word);
        if is_key {
            out.push(b'"');
        }
        rest
    }

    fn is_before_colon(&self, mut rest: &[u8]) -> bool {
        loop {
            rest = rest.trim_ascii_start();
            match rest.first() {
                Some(b'/') if self.options.allow_comments && comment_length(rest) > 0 => {
                    rest = &rest[comment_length(rest)..]
                }
                first => return first == Some(&b':'),
            }
        }
    }

    /// Copies a number up to its fraction, without the zeros before its first digit.
    fn copy_number<'a>(&self, text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
        let sign = (text[0] == b'-') as usize;
        let count = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, _) = text[sign..].split_at(count);
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count().min(count.saturating_sub(1));
        out.extend_from_slice(&text[..sign]);
        out.extend_from_slice(if self.options.allow_numeric_leading_zeros { &digits[zeros..] } else { digits });
        let rest = &text[sign + count..];
        // The digits of fraction and exponent may start with zeros.
        let tail =
            rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')).count();
        let tail = if matches!(rest.first(), Some(b'.' | b'e' | b'E')) { tail } else { 0 };
        out.extend_from_slice(&rest[..tail]);
        &rest[tail..]
    }
}

/// The length of the comment at the start of `text`; 0 if there is none.
fn comment_length(text: &[u8]) -> usize {
    if text.starts_with(b"//") {
        return memchr::memchr(b'\n', text).unwrap_or(text.len());
    }
    if !text.starts_with(b"/*") {
        return 0;
    }
    memchr::memmem::find(&text[2..], b"*/").map_or(0, |end| end + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lenient_forms_become_strict_json() {
        let all = JsonOptions {
            allow_comments: true,
            allow_single_quotes: true,
            allow_unquoted_field_names: true,
            allow_numeric_leading_zeros: true,
            allow_backslash_escaping_any_character: true,
            allow_unquoted_control_chars: true,
            ..JsonOptions::default()
        };
        let lenient = Lenient::new(&all).unwrap();
        let cases = [
            (r#"{a:1,_b /*x*/ : true}"#, r#"{"a":1,"_b"   : true}"#),
            (r#"{'a':'it\'s "x"'} // end"#, r#"{"a":"it's \"x\""}  "#),
            (r#"{"a":007,"b":-00.050,"c":0,"d":1e05}"#, r#"{"a":7,"b":-0.050,"c":0,"d":1e05}"#),
            (r#"{"a":"\$\q\n\u0041"}"#, r#"{"a":"$q\n\u0041"}"#),
            ("{\"a\":\"x\ty\"}", r#"{"a":"x\u0009y"}"#),
            (r#"{"a//b":"/* no comment */"}"#, r#"{"a//b":"/* no comment */"}"#),
            (r#"{"ä":null,ö:false}"#, r#"{"ä":null,"ö":false}"#),
        ];
        for (text, expected) in cases {
            assert_eq!(String::from_utf8_lossy(&lenient.normalise(text.as_bytes())), expected, "{text}");
        }
    }
}
