//! Walks the tokens of a statement: what is next, what was expected, and where it stands in the user's file.

use std::ops::Range;

use super::token::{Token, TokenKind, name_value, string_value, tokenize};
use crate::diagnostic::Diagnostic;
use crate::name::Name;
use crate::text::{MappedText, Span, Spanned};

/// The rest of a statement can't be read after an error; boxed because errors are rare and large.
pub(super) type Parse<T> = Result<T, Box<Diagnostic>>;

/// A place in the tokens of a text.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    pub text: &'a MappedText,
    /// Without comments.
    tokens: Vec<Token>,
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a MappedText) -> Cursor<'a> {
        let tokens = tokenize(text.as_str()).into_iter().filter(|t| t.kind != TokenKind::Comment).collect();
        Cursor { text, tokens, at: 0 }
    }

    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// The token `ahead` of the next one.
    pub fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    /// The text of the token `ahead`, empty at the end.
    pub fn peek_str(&self, ahead: usize) -> &'a str {
        self.peek(ahead).map_or("", |token| self.str_of(token.range.clone()))
    }

    pub fn kind(&self, ahead: usize) -> Option<TokenKind> {
        self.peek(ahead).map(|token| token.kind)
    }

    /// The text between two byte offsets.
    pub fn str_of(&self, range: Range<usize>) -> &'a str {
        &self.text.as_str()[range]
    }

    /// True if the token `ahead` is this bare word, in any case.
    pub fn is_word(&self, ahead: usize, word: &str) -> bool {
        self.kind(ahead) == Some(TokenKind::Word) && self.peek_str(ahead).eq_ignore_ascii_case(word)
    }

    pub fn are_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(i, word)| self.is_word(i, word))
    }

    pub fn is_symbol(&self, ahead: usize, symbol: &str) -> bool {
        self.kind(ahead) == Some(TokenKind::Symbol) && self.peek_str(ahead) == symbol
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        self.take_words(&[word])
    }

    /// Takes all of the words or none.
    pub fn take_words(&mut self, words: &[&str]) -> bool {
        let found = self.are_words(words);
        self.at += if found { words.len() } else { 0 };
        found
    }

    pub fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(0, symbol);
        self.at += usize::from(found);
        found
    }

    pub fn expect_words(&mut self, words: &[&str]) -> Parse<()> {
        for word in words {
            if !self.take_word(word) {
                return Err(self.expected(&format!("`{}`", words.join(" "))));
            }
        }
        Ok(())
    }

    pub fn expect_symbol(&mut self, symbol: &str) -> Parse<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    /// Where the next token starts; at the end, where the last one ends.
    pub fn offset(&self) -> usize {
        self.peek(0).map_or_else(|| self.end(), |token| token.range.start)
    }

    /// Where the last token that was taken ends.
    pub fn offset_behind(&self) -> usize {
        self.at.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(0, |token| token.range.end)
    }

    /// Where the last token of all ends.
    pub fn end(&self) -> usize {
        self.tokens.last().map_or(0, |token| token.range.end)
    }

    pub fn span_of(&self, range: Range<usize>) -> Span {
        self.text.origin(range)
    }

    /// From the token with index `first` to the last one taken.
    pub fn span_since(&self, first: usize) -> Span {
        let start = self.tokens.get(first).map_or_else(|| self.end(), |token| token.range.start);
        self.span_of(start..self.offset_behind().max(start))
    }

    /// The next token, or the point behind the last one.
    pub fn here(&self) -> Span {
        self.span_of(self.peek(0).map_or(self.end()..self.end(), |token| token.range.clone()))
    }

    /// An error at the next token.
    pub fn expected(&self, what: &str) -> Box<Diagnostic> {
        let found = match self.peek(0) {
            Some(token) => {
                let text = self.str_of(token.range.clone());
                format!("found {}", quote(text))
            }
            None => "the statement ends here".to_string(),
        };
        Box::new(Diagnostic::error("syntax-error", self.here(), format!("expected {what}, {found}")))
    }

    /// A name of one part.
    pub fn identifier(&mut self, what: &str) -> Parse<Spanned<String>> {
        match self.peek(0) {
            Some(token) if matches!(token.kind, TokenKind::Word | TokenKind::QuotedName) => {
                let range = token.range.clone();
                let is_bare = token.kind == TokenKind::Word;
                self.at += 1;
                let value = name_value(self.str_of(range.clone()));
                let span = self.span_of(range);
                if is_bare && !value.is_ascii() {
                    return Err(Box::new(needs_backticks(span, &value)));
                }
                match value.is_empty() {
                    true => Err(Box::new(
                        Diagnostic::error("empty-name", span, format!("{what} is empty"))
                            .condition("PARSE_EMPTY_STATEMENT")
                            .help("write the name between the backticks"),
                    )),
                    false => Ok(Spanned::new(value, span)),
                }
            }
            Some(token) if token.kind == TokenKind::Text => {
                let value = string_value(self.str_of(token.range.clone()));
                let mut error = self.expected(what).reason("quotes make a string in Spark SQL, not a name");
                if !value.contains('`') {
                    error = error.help(format!("write `{value}` in backticks")).edit(self.here(), format!("`{value}`"));
                }
                Err(Box::new(error))
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A name of one to three parts.
    pub fn name(&mut self, what: &str) -> Parse<Spanned<Name>> {
        let first = self.at;
        let mut parts = vec![self.identifier(what)?.value];
        while self.take_symbol(".") {
            parts.push(self.identifier("the next part of the name")?.value);
        }
        // `[LIVE.]catalog.schema.table`
        let span = self.span_since(first);
        if parts.len() > 3 + usize::from(parts[0].eq_ignore_ascii_case("LIVE")) {
            return Err(Box::new(too_many_parts(span, parts.len())));
        }
        Ok(Spanned::new(Name { parts }, span))
    }

    /// A string in quotes.
    pub fn text(&mut self, what: &str) -> Parse<Spanned<String>> {
        match self.peek(0) {
            Some(token) if token.kind == TokenKind::Text => {
                let range = token.range.clone();
                self.at += 1;
                Ok(Spanned::new(string_value(self.str_of(range.clone())), self.span_of(range)))
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Passes over `( … )` with what is nested in it; the range is what lies between.
    pub fn parentheses(&mut self) -> Parse<Range<usize>> {
        let open = self.here();
        self.expect_symbol("(")?;
        let start = self.offset_behind();
        let mut depth = 1;
        while let Some(token) = self.peek(0) {
            let range = token.range.clone();
            if token.kind == TokenKind::Symbol {
                match self.str_of(range.clone()) {
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    _ => {}
                }
            }
            self.at += 1;
            if depth == 0 {
                return Ok(start..range.start);
            }
        }
        Err(Box::new(Diagnostic::error("syntax-error", open, "`(` is never closed").help("add the missing `)`")))
    }

    /// Passes over tokens until `is_stop`, looked at outside of parentheses only, or the end.
    pub fn skip_until(&mut self, is_stop: impl Fn(&Cursor<'a>) -> bool) -> Parse<()> {
        while !self.is_at_end() && !is_stop(self) {
            match self.is_symbol(0, "(") {
                true => {
                    self.parentheses()?;
                }
                false => self.at += 1,
            }
        }
        Ok(())
    }
}

/// The error for `a.b.c.d`.
pub(super) fn too_many_parts(span: Span, count: usize) -> Diagnostic {
    Diagnostic::error("too-many-name-parts", span, format!("a name has at most three parts, this one has {count}"))
        .help("write `catalog.schema.table`; a part that holds a dot goes in backticks")
}

/// The error for a bare name like `größe`.
pub(super) fn needs_backticks(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("syntax-error", span, format!("the name `{name}` needs backticks"))
        .condition("INVALID_IDENTIFIER")
        .reason("without them a name holds letters of ASCII, digits and `_`")
        .help("write it in backticks")
        .edit(span, format!("`{name}`"))
}

/// Quotes a piece of the user's text for a message, cut if it is long.
pub(super) fn quote(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    let short: String = line.chars().take(40).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    match short.contains('`') {
        true => format!("{short}{dots}"),
        false => format!("`{short}{dots}`"),
    }
}
