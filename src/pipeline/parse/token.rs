//! SQL text → tokens with their byte ranges, as Spark reads it: `'…'` and `"…"` are strings with backslash
//! escapes, backticks quote names, `/* */` comments nest.
//!
//! It never fails, so that one broken statement doesn't hide the others: what is not closed ends with the
//! text. Not here: the grammar of queries, which sqlparser knows (`query.rs`).

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or a bare name; may start with a digit (`1a`), as Spark allows.
    Word,
    /// A name in backticks.
    QuotedName,
    /// A string in single or double quotes, raw (`r'…'`) or not.
    Text,
    Number,
    /// One character, or `=>`.
    Symbol,
    Comment,
}

/// A token and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub range: Range<usize>,
    /// False for a string, quoted name or comment that the text ends in.
    pub is_closed: bool,
}

/// Splits `sql` into tokens; blanks are left out, comments are kept.
pub(super) fn tokenize(sql: &str) -> Vec<Token> {
    let (bytes, mut tokens, mut at) = (sql.as_bytes(), Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let (kind, length, is_closed) = match byte {
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'-' if next == Some(b'-') => (TokenKind::Comment, line_length(&bytes[at..]), true),
            b'/' if next == Some(b'*') => {
                let (length, is_closed) = block_comment_length(&bytes[at..]);
                (TokenKind::Comment, length, is_closed)
            }
            b'\'' | b'"' => {
                let (length, is_closed) = quoted_length(&bytes[at..], true);
                (TokenKind::Text, length, is_closed)
            }
            b'r' | b'R' if matches!(next, Some(b'\'' | b'"')) => {
                let (length, is_closed) = quoted_length(&bytes[at + 1..], false);
                (TokenKind::Text, length + 1, is_closed)
            }
            b'`' => {
                let (length, is_closed) = quoted_length(&bytes[at..], false);
                (TokenKind::QuotedName, length, is_closed)
            }
            b if b.is_ascii_digit()
                || (b == b'.' && next.is_some_and(|n| n.is_ascii_digit()) && !follows_name(&tokens, at)) =>
            {
                let (kind, length) = number_length(&bytes[at..]);
                (kind, length, true)
            }
            b if is_word_byte(b) => {
                (TokenKind::Word, bytes[at..].iter().take_while(|b| is_word_byte(**b)).count(), true)
            }
            b'=' if next == Some(b'>') => (TokenKind::Symbol, 2, true),
            _ => (TokenKind::Symbol, 1, true),
        };
        tokens.push(Token { kind, range: at..at + length, is_closed });
        at += length;
    }
    tokens
}

/// Every byte of a character outside ASCII counts as part of a word, so that tokens end on boundaries.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// True if a name ends right before `at`: the dot of `t.1a` then separates and starts no number.
fn follows_name(tokens: &[Token], at: usize) -> bool {
    tokens
        .last()
        .is_some_and(|token| token.range.end == at && matches!(token.kind, TokenKind::Word | TokenKind::QuotedName))
}

fn line_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len())
}

fn block_comment_length(bytes: &[u8]) -> (usize, bool) {
    let (mut at, mut depth) = (0, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return (at, true);
                }
            }
            _ => at += 1,
        }
    }
    (bytes.len(), false)
}

/// A doubled quote stands for one; with `has_escapes` a backslash takes the next byte with it.
fn quoted_length(bytes: &[u8], has_escapes: bool) -> (usize, bool) {
    let (quote, mut at) = (bytes[0], 1);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if has_escapes => at += 2,
            b if b == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            b if b == quote => return (at + 1, true),
            _ => at += 1,
        }
    }
    (bytes.len(), false)
}

/// `12`, `1.5`, `1e-3`, with a type's letters (`5L`, `2.0BD`); `12ab` is a word.
fn number_length(bytes: &[u8]) -> (TokenKind, usize) {
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = digits(0);
    if bytes.get(at) == Some(&b'.') {
        at += 1 + digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits((at + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    let letters = bytes[at..].iter().take_while(|b| is_word_byte(**b)).count();
    let is_suffix = ["", "l", "s", "y", "d", "f", "bd"]
        .iter()
        .any(|suffix| bytes[at..at + letters].eq_ignore_ascii_case(suffix.as_bytes()));
    (if is_suffix { TokenKind::Number } else { TokenKind::Word }, at + letters)
}

/// Returns the value of a string token, escapes resolved as Spark does.
pub(super) fn string_value(token: &str) -> String {
    let (is_raw, quoted) = match token.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, token),
    };
    let Some(quote) = quoted.chars().next() else { return String::new() };
    let inner = quoted[1..].strip_suffix(quote).unwrap_or(&quoted[1..]);
    let (mut value, mut chars) = (String::new(), inner.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '\\' if !is_raw => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some('b') => value.push('\u{8}'),
                Some('0') => value.push('\0'),
                Some('Z') => value.push('\u{1a}'),
                // LIKE gives these two a meaning of their own, so the backslash stays.
                Some(c @ ('%' | '_')) => value.extend(['\\', c]),
                Some(c @ ('u' | 'U')) => {
                    let length = if c == 'u' { 4 } else { 8 };
                    let digits: String = chars.clone().take(length).collect();
                    match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                        Some(decoded) if digits.len() == length => {
                            value.push(decoded);
                            chars.nth(length - 1);
                        }
                        _ => value.push(c),
                    }
                }
                Some(c) => value.push(c),
                None => value.push('\\'),
            },
            c if c == quote && chars.peek() == Some(&quote) => {
                chars.next();
                value.push(c);
            }
            c => value.push(c),
        }
    }
    value
}

/// Returns the name in backticks, or a bare word as it is.
pub(super) fn name_value(token: &str) -> String {
    match token.strip_prefix('`') {
        Some(rest) => rest.strip_suffix('`').unwrap_or(rest).replace("``", "`"),
        None => token.to_string(),
    }
}

/// Returns `value` as a string literal.
pub(super) fn string_literal(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_what_spark_reads() {
        let kinds = |sql: &str| tokenize(sql).into_iter().map(|t| sql[t.range].to_string()).collect::<Vec<_>>();
        assert_eq!(kinds("a.b=>1.5e-3"), ["a", ".", "b", "=>", "1.5e-3"]);
        assert_eq!(kinds(r#"'it\'s' "a""b" r'\' `x``y`"#), [r"'it\'s'", r#""a""b""#, r"r'\'", "`x``y`"]);
        assert_eq!(kinds("a/* x /* y */ z */b--c\nd"), ["a", "/* x /* y */ z */", "b", "--c", "d"]);
        assert_eq!(kinds("t.1a 5L 2024é"), ["t", ".", "1a", "5L", "2024é"]);
        assert!(!tokenize("'abc\\")[0].is_closed);
    }

    #[test]
    fn strings_lose_their_quotes_and_escapes() {
        for (token, value) in [
            (r"'it\'s'", "it's"),
            (r#""say ""hi""""#, "say \"hi\""),
            (r"'\\d+\n'", "\\d+\n"),
            (r"r'\d'", r"\d"),
            (r"'10\%'", r"10\%"),
            (r"'\u00e9\u12'", "éu12"),
            ("'open", "open"),
        ] {
            assert_eq!(string_value(token), value, "{token}");
        }
    }
}
