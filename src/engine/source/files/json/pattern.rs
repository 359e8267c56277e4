//! Spark's datetime patterns (`dd/MM/yyyy HH:mm:ss`), as far as they can be read.
//!
//! Not here: what a text without pattern may look like (`time.rs`). As in Spark 3, letters that only make sense
//! for printing (day of week, quarter, week) are refused when the option is read, not when a record is.

use super::time::{Moment, Zone, days_since_1970, fraction_us, offset, time_of_day_us, zone};
use crate::error::{Error, Result};

/// A pattern, ready to read texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
enum Item {
    /// A number of `min..=max` digits.
    Digits {
        field: Field,
        min: usize,
        max: usize,
    },
    /// The last two digits of a year from 2000 to 2099.
    TwoDigitYear,
    MonthName,
    AmPm,
    Fraction,
    /// `+02:00` and the like; `Z` too if `has_z`.
    Offset {
        has_z: bool,
    },
    ZoneName,
    Literal(String),
    Optional(Vec<Item>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Field {
    Year,
    Month,
    Day,
    DayOfYear,
    Hour,
    HourOfHalfDay,
    Minute,
    Second,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

impl Pattern {
    /// Reads a Spark pattern.
    ///
    /// # Errors
    /// Names the letter that can't be used for reading.
    pub fn parse(text: &str) -> Result<Pattern> {
        let characters: Vec<char> = text.chars().collect();
        let mut at = 0;
        let items = parse_items(text, &characters, &mut at, 0)?;
        Ok(Pattern { items })
    }

    /// Reads a whole text; fields that the pattern lacks are those of 1970-01-01T00:00:00.
    pub fn read(&self, text: &str) -> Option<Moment> {
        let mut parts = Parts::default();
        let rest = read_items(&self.items, text, &mut parts)?;
        if !rest.is_empty() {
            return None;
        }
        parts.moment()
    }
}

fn refused(pattern: &str, what: String) -> Error {
    Error::user(
        "unsupported-datetime-pattern",
        format!("cannot read times with the pattern `{pattern}`: {what}"),
        "use the letters y M d D H h a m s S X x Z z V, quotes around literal text, and [ ] around optional parts",
    )
}

fn parse_items(pattern: &str, characters: &[char], at: &mut usize, depth: usize) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    while let Some(&letter) = characters.get(*at) {
        match letter {
            '[' => {
                *at += 1;
                items.push(Item::Optional(parse_items(pattern, characters, at, depth + 1)?));
            }
            ']' if depth > 0 => {
                *at += 1;
                return Ok(items);
            }
            '\'' => items.push(Item::Literal(quoted(pattern, characters, at)?)),
            'a'..='z' | 'A'..='Z' => {
                let count = characters[*at..].iter().take_while(|other| **other == letter).count();
                *at += count;
                let is_followed_by_digits = matches!(characters.get(*at), Some('a'..='z' | 'A'..='Z'));
                items.push(
                    item(letter, count, is_followed_by_digits)
                        .ok_or_else(|| refused(pattern, format!("`{}`", letter.to_string().repeat(count))))?,
                );
            }
            ']' | '{' | '}' | '#' => return Err(refused(pattern, format!("`{letter}`"))),
            other => {
                *at += 1;
                items.push(Item::Literal(other.to_string()));
            }
        }
    }
    if depth > 0 { Err(refused(pattern, "`[` is never closed".into())) } else { Ok(items) }
}

/// Reads `'text'`; `''` is a quote, inside of quoted text and outside.
fn quoted(pattern: &str, characters: &[char], at: &mut usize) -> Result<String> {
    *at += 1;
    if characters.get(*at) == Some(&'\'') {
        *at += 1;
        return Ok("'".into());
    }
    let mut literal = String::new();
    loop {
        match (characters.get(*at), characters.get(*at + 1)) {
            (Some('\''), Some('\'')) => {
                literal.push('\'');
                *at += 2;
            }
            (Some('\''), _) => {
                *at += 1;
                return Ok(literal);
            }
            (Some(other), _) => {
                literal.push(*other);
                *at += 1;
            }
            (None, _) => return Err(refused(pattern, "a quote is never closed".into())),
        }
    }
}

/// One run of a letter. A number that another field follows at once has exactly as many digits as letters.
fn item(letter: char, count: usize, is_followed_by_field: bool) -> Option<Item> {
    let number = |field: Field, widest: usize| match count {
        1 if is_followed_by_field => Some(Item::Digits { field, min: 1, max: 1 }),
        1 => Some(Item::Digits { field, min: 1, max: widest }),
        count if count <= widest => Some(Item::Digits { field, min: count, max: count }),
        _ => None,
    };
    match (letter, count) {
        ('y' | 'u', 2) => Some(Item::TwoDigitYear),
        ('y' | 'u', 1 | 4) => number(Field::Year, 4),
        ('M' | 'L', 1 | 2) => number(Field::Month, 2),
        ('M' | 'L', 3 | 4) => Some(Item::MonthName),
        ('d', 1 | 2) => number(Field::Day, 2),
        ('D', 1..=3) => number(Field::DayOfYear, 3),
        ('H', 1 | 2) => number(Field::Hour, 2),
        ('h', 1 | 2) => number(Field::HourOfHalfDay, 2),
        ('m', 1 | 2) => number(Field::Minute, 2),
        ('s', 1 | 2) => number(Field::Second, 2),
        ('S', 1..=9) => Some(Item::Fraction),
        ('a', 1) => Some(Item::AmPm),
        ('X', 1..=5) => Some(Item::Offset { has_z: true }),
        ('x' | 'Z', 1..=5) => Some(Item::Offset { has_z: false }),
        ('z', 1..=4) | ('V', 2) => Some(Item::ZoneName),
        _ => None,
    }
}

/// What was read so far.
#[derive(Debug, Clone, Default)]
struct Parts {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    hour_of_half_day: Option<i64>,
    is_pm: Option<bool>,
    minute: i64,
    second: i64,
    us: i64,
    zone: Option<Zone>,
}

impl Parts {
    fn set(&mut self, field: Field, value: i64) {
        match field {
            Field::Year => self.year = Some(value),
            Field::Month => self.month = Some(value),
            Field::Day => self.day = Some(value),
            Field::DayOfYear => self.day_of_year = Some(value),
            Field::Hour => self.hour = Some(value),
            Field::HourOfHalfDay => self.hour_of_half_day = Some(value),
            Field::Minute => self.minute = value,
            Field::Second => self.second = value,
        }
    }

    fn moment(self) -> Option<Moment> {
        let year = self.year.unwrap_or(1970);
        let days = match self.day_of_year {
            Some(day) => {
                let days = days_since_1970(year, 1, 1)? + day - 1;
                (day >= 1 && days < days_since_1970(year + 1, 1, 1)?).then_some(days)?
            }
            None => days_since_1970(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        let hour = match (self.hour, self.hour_of_half_day) {
            (Some(hour), _) => hour,
            (None, Some(hour)) if (1..=12).contains(&hour) => hour % 12 + 12 * self.is_pm.unwrap_or(false) as i64,
            (None, Some(_)) => return None,
            (None, None) => 0,
        };
        let time_us = time_of_day_us(hour, self.minute, self.second, self.us)?;
        Some(Moment { local_us: days * 86_400_000_000 + time_us, zone: self.zone })
    }
}

fn read_items<'t>(items: &[Item], mut text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    for item in items {
        text = match item {
            Item::Digits { field, min, max } => {
                let (value, rest) = super::time::digits(text.as_bytes(), *min, *max)?;
                parts.set(*field, value);
                &text[text.len() - rest.len()..]
            }
            Item::TwoDigitYear => {
                let (value, rest) = super::time::digits(text.as_bytes(), 2, 2)?;
                parts.set(Field::Year, 2000 + value);
                &text[text.len() - rest.len()..]
            }
            Item::MonthName => {
                let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
                let name = text[..letters].to_ascii_lowercase();
                let month = MONTHS.iter().position(|month| *month == name || month[..3] == name)?;
                parts.set(Field::Month, month as i64 + 1);
                &text[letters..]
            }
            Item::AmPm => {
                let word = text.get(..2)?;
                parts.is_pm = Some(word.eq_ignore_ascii_case("pm"));
                (parts.is_pm == Some(true) || word.eq_ignore_ascii_case("am")).then_some(&text[2..])?
            }
            Item::Fraction => {
                let (us, rest) = fraction_us(text.as_bytes())?;
                parts.us = us;
                &text[text.len() - rest.len()..]
            }
            Item::Offset { has_z } => match text.strip_prefix('Z') {
                Some(rest) if *has_z => {
                    parts.zone = Some(Zone::Fixed(0));
                    rest
                }
                _ => {
                    let (seconds, rest) = offset(text.as_bytes())?;
                    parts.zone = Some(Zone::Fixed(seconds));
                    &text[text.len() - rest.len()..]
                }
            },
            Item::ZoneName => {
                let is_name =
                    |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'+' | b':');
                let length = text.as_bytes().iter().take_while(|byte| is_name(byte)).count();
                parts.zone = Some(zone(&text.as_bytes()[..length])?);
                &text[length..]
            }
            Item::Literal(literal) => text.strip_prefix(literal.as_str())?,
            Item::Optional(items) => {
                let mut tried = parts.clone();
                match read_items(items, text, &mut tried) {
                    Some(rest) => {
                        *parts = tried;
                        rest
                    }
                    None => text,
                }
            }
        };
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_read_what_spark_reads() {
        let cases = [
            ("dd/MM/yyyy HH:mm:ss", "31/01/2024 12:34:56", Some(1_706_704_496_000_000)),
            ("yyyyMMdd", "20240131", Some(1_706_659_200_000_000)),
            ("yyyyMMddHHmmssSSS", "20240131123456789", Some(1_706_704_496_789_000)),
            ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2024-01-31T12:34:56", Some(1_706_704_496_000_000)),
            ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2024-01-31T12:34:56.5Z", Some(1_706_704_496_500_000)),
            ("d MMM yy, h:mm a", "1 Feb 24, 12:05 AM", Some(1_706_745_900_000_000)),
            ("d MMMM yyyy h 'o''clock' a", "1 February 2024 1 o'clock PM", Some(1_706_792_400_000_000)),
            ("yyyy-DDD", "2024-060", Some(1_709_164_800_000_000)),
            ("dd/MM/yyyy", "31/02/2024", None),
            ("dd/MM/yyyy", "1/02/2024", None),
            ("dd/MM/yyyy", "01/02/2024 ", None),
        ];
        for (pattern, text, expected) in cases {
            let moment = Pattern::parse(pattern).unwrap().read(text);
            assert_eq!(moment.map(|moment| moment.local_us), expected, "{pattern}: {text}");
        }
    }

    #[test]
    fn letters_that_cannot_be_read_are_errors() {
        for pattern in ["EEE dd", "YYYY-MM", "yyyy 'T", "[yyyy", "yyyy]", "ww", "qqq", "MMMMM", "yyy", "HHH"] {
            assert!(Pattern::parse(pattern).is_err(), "{pattern}");
        }
    }
}
