//! Globs of paths and of names: `? * [abc] [a-z] [^a] {a,b} {a,b{c,d}}`, `\` before a character that is meant literally.
//!
//! A strict glob (the default of `read_files`) is matched segment by segment, so that `*` never spans a `/` and the
//! walk in [`super::list`] reads only folders that can match. A loose one (`useStrictGlobber => false`) is matched as
//! one text against the whole path. `**` means no more than `*`.
//!
//! Not here: reading folders.

use std::path::PathBuf;

use regex::Regex;

use crate::error::{Error, Result};

/// A strict glob: a folder that is known without looking, then one matcher for each level below it.
#[derive(Debug)]
pub struct PathGlob {
    pub base: PathBuf,
    pub segments: Vec<Segment>,
    /// The pattern ends with `/`: only folders match.
    pub is_folder: bool,
}

/// One level of a path.
#[derive(Debug)]
pub enum Segment {
    Name(String),
    Pattern(NameGlob),
}

/// A glob on one name.
#[derive(Debug)]
pub struct NameGlob {
    regex: Regex,
    /// The pattern itself starts with `.` or `_`, so the user wants such names.
    wants_hidden: bool,
}

impl NameGlob {
    /// Reads a glob on one name, such as `*.json` or `{a,b}-[0-9].csv`.
    pub fn new(pattern: &str) -> Result<NameGlob> {
        let regex = format!("(?s)^(?:{})$", to_regex(pattern, "[^/]")?);
        Ok(NameGlob { regex: compile(pattern, &regex)?, wants_hidden: is_hidden(pattern) })
    }

    /// Tells whether the whole name matches; `*` doesn't reach hidden names.
    pub fn matches(&self, name: &str) -> bool {
        (self.wants_hidden || !is_hidden(name)) && self.regex.is_match(name)
    }
}

/// Names that start with `_` or `.` are those of the writing program, not data (`ignoredPathSegmentRegex`).
pub fn is_hidden(name: &str) -> bool {
    name.starts_with(['_', '.'])
}

/// Reads a strict glob of an absolute path; more than one if a `{…}` holds a `/`.
pub fn strict(path: &str) -> Result<Vec<PathGlob>> {
    expand_slashes(path)?.iter().map(|path| strict_one(path)).collect()
}

fn strict_one(path: &str) -> Result<PathGlob> {
    let mut base = PathBuf::from("/");
    let mut segments = Vec::new();
    for text in path.split('/') {
        match text {
            "" | "." => {}
            ".." => match segments.pop() {
                Some(Segment::Name(_) | Segment::Pattern(_)) => {}
                None => {
                    base.pop();
                }
            },
            _ if is_glob(text) => segments.push(Segment::Pattern(NameGlob::new(text)?)),
            _ if segments.is_empty() => base.push(unescape(text)),
            _ => segments.push(Segment::Name(unescape(text))),
        }
    }
    Ok(PathGlob { base, segments, is_folder: path.ends_with('/') })
}

/// A loose glob: where to start looking, and what the path of a file there has to match.
#[derive(Debug)]
pub struct LooseGlob {
    pub base: PathBuf,
    /// None: a plain path, everything below `base`.
    regex: Option<Regex>,
}

impl LooseGlob {
    /// Reads a loose glob of an absolute path: `*` spans `/`, and a path matches if the glob matches its beginning.
    pub fn new(path: &str) -> Result<LooseGlob> {
        let mut base = PathBuf::from("/");
        let mut is_plain = true;
        let mut folded = Vec::new();
        for text in path.split('/').filter(|text| !matches!(*text, "" | ".")) {
            is_plain &= !is_glob(text);
            if text == ".." {
                folded.pop();
                if is_plain {
                    base.pop();
                }
                continue;
            }
            folded.push(text);
            if is_plain {
                base.push(unescape(text));
            }
        }
        if is_plain {
            return Ok(LooseGlob { base, regex: None });
        }
        let end = if path.ends_with('/') { "/" } else { "" };
        let regex = format!("(?s)^/{}{end}", to_regex(&folded.join("/"), ".")?);
        Ok(LooseGlob { base, regex: Some(compile(path, &regex)?) })
    }

    /// Tells whether a file below `base` is meant.
    pub fn matches(&self, path: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(path))
    }
}

fn is_glob(text: &str) -> bool {
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            '*' | '?' | '[' | '{' => return true,
            _ => {}
        }
    }
    false
}

fn unescape(text: &str) -> String {
    let mut chars = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(char) = chars.next() {
        plain.push(if char == '\\' { chars.next().unwrap_or('\\') } else { char });
    }
    plain
}

fn compile(pattern: &str, regex: &str) -> Result<Regex> {
    Regex::new(regex).map_err(|_| bad_glob(pattern, "it can't be read as a glob"))
}

fn bad_glob(pattern: &str, why: &str) -> Error {
    Error::user(
        "bad-glob",
        format!("bad glob `{pattern}`: {why}"),
        "globs are made of `?`, `*`, `[abc]`, `[a-z]`, `[^a]` and `{a,b}`; put `\\` before a character meant literally",
    )
}

/// Translates a glob; `any` is the regular expression of the characters that `?` and `*` stand for.
fn to_regex(pattern: &str, any: &str) -> Result<String> {
    let mut regex = String::with_capacity(pattern.len() * 2);
    let mut depth = 0;
    let mut chars = pattern.chars().peekable();
    let literal = |regex: &mut String, char: char| regex.push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
    while let Some(char) = chars.next() {
        match char {
            '?' => regex.push_str(any),
            '*' => {
                while chars.next_if_eq(&'*').is_some() {}
                regex.push_str(any);
                regex.push('*');
            }
            '[' => {
                regex.push('[');
                if chars.next_if(|next| matches!(next, '^' | '!')).is_some() {
                    regex.push('^');
                }
                let mut is_first = true;
                loop {
                    match chars.next() {
                        None => return Err(bad_glob(pattern, "`[` without `]`")),
                        Some(']') if !is_first => break,
                        Some('-') if !is_first && chars.peek() != Some(&']') => regex.push('-'),
                        Some('\\') => match chars.next() {
                            Some(next) => literal(&mut regex, next),
                            None => return Err(bad_glob(pattern, "`[` without `]`")),
                        },
                        // `&&`, `~~` and `--` mean something inside a regular expression's class.
                        Some(next @ ('&' | '~' | '-' | '[' | ']' | '^')) => {
                            regex.push('\\');
                            regex.push(next);
                        }
                        Some(next) => literal(&mut regex, next),
                    }
                    is_first = false;
                }
                regex.push(']');
            }
            '{' => {
                depth += 1;
                regex.push_str("(?:");
            }
            ',' if depth > 0 => regex.push('|'),
            '}' if depth > 0 => {
                depth -= 1;
                regex.push(')');
            }
            '\\' => literal(&mut regex, chars.next().unwrap_or('\\')),
            _ => literal(&mut regex, char),
        }
    }
    if depth > 0 { Err(bad_glob(pattern, "`{` without `}`")) } else { Ok(regex) }
}

/// More than this many paths from one glob are a slip, not a wish.
const EXPANSIONS_MAX: usize = 10_000;

/// Writes out every `{…}` that holds a `/`, since such a choice isn't one level of a path.
fn expand_slashes(path: &str) -> Result<Vec<String>> {
    let mut expanded = Vec::new();
    let mut waiting = vec![path.to_string()];
    while let Some(waiter) = waiting.pop() {
        match choice_with_slash(&waiter)? {
            None => expanded.push(waiter),
            Some((before, choices, after)) => {
                waiting.extend(choices.iter().rev().map(|choice| format!("{before}{choice}{after}")));
            }
        }
        if expanded.len() + waiting.len() > EXPANSIONS_MAX {
            return Err(bad_glob(path, "its `{…}` stand for more than 10000 paths"));
        }
    }
    Ok(expanded)
}

/// Finds the first outermost `{…}` with a `/` inside: what is before it, its choices, what is after it.
fn choice_with_slash(path: &str) -> Result<Option<(&str, Vec<&str>, &str)>> {
    let mut depth = 0;
    let (mut open, mut has_slash, mut commas) = (0, false, Vec::new());
    let mut chars = path.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            '{' => {
                depth += 1;
                if depth == 1 {
                    (open, has_slash) = (at, false);
                    commas.clear();
                }
            }
            ',' if depth == 1 => commas.push(at),
            '/' if depth > 0 => has_slash = true,
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 && has_slash {
                    let mut choices = Vec::with_capacity(commas.len() + 1);
                    let mut from = open + 1;
                    for comma in commas.iter().copied().chain([at]) {
                        choices.push(&path[from..comma]);
                        from = comma + 1;
                    }
                    return Ok(Some((&path[..open], choices, &path[at + 1..])));
                }
            }
            _ => {}
        }
    }
    if depth > 0 { Err(bad_glob(path, "`{` without `}`")) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_the_table() {
        let cases = [
            ("*.json", "a.json", true),
            ("*.json", "a.json.gz", false),
            ("*", ".hidden", false),
            ("*", "_SUCCESS", false),
            ("_*", "_SUCCESS", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[abc]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[^a]x", "bx", true),
            ("[^a]x", "ax", false),
            ("[!a]x", "ax", false),
            ("[a-]x", "-x", true),
            ("[]a]x", "]x", true),
            ("[a&&b]x", "&x", true),
            ("{a,b{c,d}}", "a", true),
            ("{a,b{c,d}}", "bd", true),
            ("{a,b{c,d}}", "b", false),
            ("{0*,1}.txt", "01.txt", true),
            ("year=202[0-4]", "year=2023", true),
            ("a.c", "abc", false),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("a,b", "a,b", true),
            ("über*", "überall", true),
        ];
        for (glob, name, matches) in cases {
            assert_eq!(NameGlob::new(glob).unwrap().matches(name), matches, "{glob} on {name}");
        }
    }

    #[test]
    fn a_glob_that_never_ends_is_refused_with_advice() {
        for glob in ["{a,b", "[abc", "/x/{a/b,c"] {
            let error = strict(glob).map(|_| ()).unwrap_err();
            assert_eq!(error.code(), "bad-glob", "{glob}");
        }
    }

    #[test]
    fn choices_with_a_slash_become_paths_of_their_own() {
        assert_eq!(expand_slashes("/a/{b/c,d}/*").unwrap(), ["/a/b/c/*", "/a/d/*"]);
        assert_eq!(expand_slashes("/a/{x{1/2,3},y}").unwrap(), ["/a/x1/2", "/a/x3", "/a/y"]);
        assert_eq!(expand_slashes("/a/{b,c}/*").unwrap(), ["/a/{b,c}/*"]);
    }

    #[test]
    fn the_walk_starts_at_the_last_folder_without_a_glob() {
        let glob = &strict("/w/../data/./in/year=*/x/").unwrap()[0];
        assert_eq!(glob.base, PathBuf::from("/data/in"));
        assert_eq!(glob.segments.len(), 2);
        assert!(glob.is_folder);
    }
}
