//! Spark's date patterns (`yyyy-MM-dd HH:mm:ss.SSS`), for writing and for reading.
//! Rules: "Datetime Patterns for Formatting and Parsing" of Spark's SQL reference.
//!
//! Not here: the functions (`timestamps`).

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike};
use chrono_tz::{OffsetName, Tz};

use super::moments::{Place, parse_place};

/// A pattern, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    /// A letter and how often it stands.
    Field(char, usize),
    /// `[…]`: may be missing in text that is read.
    Optional(Vec<Piece>),
}

/// Letters that can be written and read.
const LETTERS: &str = "GyMLdDEeaFhHkKmsSVzOXxZqQu";

impl Pattern {
    /// # Errors
    /// What is wrong with the pattern.
    pub fn parse(pattern: &str) -> Result<Pattern, String> {
        let chars: Vec<char> = pattern.chars().collect();
        let mut at = 0;
        let pieces = parse_pieces(&chars, &mut at, false)?;
        Ok(Pattern(pieces))
    }

    /// Writes a wall clock in `zone`.
    pub fn write(&self, wall: NaiveDateTime, zone: Tz) -> String {
        let mut out = String::new();
        write_pieces(&self.0, wall, zone, &mut out);
        out
    }

    /// Reads the whole of `text`; None if it doesn't fit.
    pub fn read(&self, text: &str) -> Option<(NaiveDateTime, Option<Place>)> {
        let mut found = Found::default();
        let rest = read_pieces(&self.0, text, &mut found)?;
        if !rest.is_empty() {
            return None;
        }
        found.finish()
    }
}

fn parse_pieces(chars: &[char], at: &mut usize, is_inside: bool) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    while *at < chars.len() {
        let c = chars[*at];
        *at += 1;
        match c {
            '\'' => {
                let mut text = String::new();
                if chars.get(*at) == Some(&'\'') {
                    text.push('\'');
                    *at += 1;
                } else {
                    loop {
                        match chars.get(*at) {
                            None => return Err("a quote is not closed".into()),
                            Some('\'') if chars.get(*at + 1) == Some(&'\'') => {
                                text.push('\'');
                                *at += 2;
                            }
                            Some('\'') => {
                                *at += 1;
                                break;
                            }
                            Some(c) => {
                                text.push(*c);
                                *at += 1;
                            }
                        }
                    }
                }
                pieces.push(Piece::Literal(text));
            }
            '[' => pieces.push(Piece::Optional(parse_pieces(chars, at, true)?)),
            ']' if is_inside => return Ok(pieces),
            ']' => return Err("`]` without `[`".into()),
            c if c.is_ascii_alphabetic() => {
                if !LETTERS.contains(c) {
                    return Err(format!("unknown letter `{c}`"));
                }
                let mut count = 1;
                while chars.get(*at) == Some(&c) {
                    count += 1;
                    *at += 1;
                }
                pieces.push(Piece::Field(c, count));
            }
            c => pieces.push(Piece::Literal(c.to_string())),
        }
    }
    if is_inside { Err("`[` is not closed".into()) } else { Ok(pieces) }
}

fn write_pieces(pieces: &[Piece], wall: NaiveDateTime, zone: Tz, out: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Literal(text) => out.push_str(text),
            Piece::Optional(pieces) => write_pieces(pieces, wall, zone, out),
            Piece::Field(letter, count) => write_field(*letter, *count, wall, zone, out),
        }
    }
}

fn write_field(letter: char, count: usize, wall: NaiveDateTime, zone: Tz, out: &mut String) {
    let mut number = |value: i64| out.push_str(&format!("{value:0count$}"));
    match letter {
        'y' | 'u' if count == 2 => number(i64::from(wall.year().rem_euclid(100))),
        'y' | 'u' => number(i64::from(wall.year())),
        'M' | 'L' if count == 3 => out.push_str(&wall.format("%b").to_string()),
        'M' | 'L' if count >= 4 => out.push_str(&wall.format("%B").to_string()),
        'M' | 'L' => number(i64::from(wall.month())),
        'd' => number(i64::from(wall.day())),
        'D' => number(i64::from(wall.ordinal())),
        'F' => number(i64::from((wall.day() - 1) / 7 + 1)),
        'E' if count >= 4 => out.push_str(&wall.format("%A").to_string()),
        'E' => out.push_str(&wall.format("%a").to_string()),
        'e' => number(i64::from(wall.weekday().num_days_from_sunday()) + 1),
        'q' | 'Q' if count >= 3 => out.push_str(&format!("Q{}", wall.quarter())),
        'q' | 'Q' => number(i64::from(wall.quarter())),
        'a' => out.push_str(if wall.hour() < 12 { "AM" } else { "PM" }),
        'h' => number(i64::from(wall.hour12().1)),
        'H' => number(i64::from(wall.hour())),
        'k' => number(i64::from(if wall.hour() == 0 { 24 } else { wall.hour() })),
        'K' => number(i64::from(wall.hour() % 12)),
        'm' => number(i64::from(wall.minute())),
        's' => number(i64::from(wall.second())),
        'S' => {
            let nanos = format!("{:09}", wall.nanosecond() % 1_000_000_000);
            out.push_str(&nanos[..count.min(9)]);
        }
        'G' => out.push_str(if wall.year() > 0 { "AD" } else { "BC" }),
        'V' => out.push_str(zone.name()),
        _ => {
            let offset = zone.offset_from_local_datetime(&wall).earliest();
            let name = offset.and_then(|offset| offset.abbreviation().map(str::to_string));
            let seconds = offset.map_or(0, |offset| offset.fix().local_minus_utc());
            write_zone(letter, count, seconds, name.as_deref().unwrap_or("UTC"), out);
        }
    }
}

fn write_zone(letter: char, count: usize, seconds: i32, name: &str, out: &mut String) {
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
    match (letter, count) {
        ('z', _) => out.push_str(name),
        ('O', _) if seconds == 0 => out.push_str("GMT"),
        ('O', 1) if minutes == 0 => out.push_str(&format!("GMT{sign}{hours}")),
        ('O', 1) => out.push_str(&format!("GMT{sign}{hours}:{minutes:02}")),
        ('O', _) => out.push_str(&format!("GMT{sign}{hours:02}:{minutes:02}")),
        ('X', _) if seconds == 0 => out.push('Z'),
        ('Z', 4) if seconds == 0 => out.push_str("GMT"),
        ('Z', 5) if seconds == 0 => out.push('Z'),
        ('X' | 'x', 1) if minutes == 0 => out.push_str(&format!("{sign}{hours:02}")),
        ('X' | 'x', 1 | 2 | 4) | ('Z', 1..=3) => out.push_str(&format!("{sign}{hours:02}{minutes:02}")),
        ('Z', 4) => out.push_str(&format!("GMT{sign}{hours:02}:{minutes:02}")),
        _ => out.push_str(&format!("{sign}{hours:02}:{minutes:02}")),
    }
}

/// What a text was found to say.
#[derive(Debug, Default, Clone)]
struct Found {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour: Option<u32>,
    /// 1 to 12, or 0 to 11: needs `is_afternoon`.
    half_hour: Option<u32>,
    is_afternoon: Option<bool>,
    minute: u32,
    second: u32,
    micros: u32,
    place: Option<Place>,
}

impl Found {
    fn finish(self) -> Option<(NaiveDateTime, Option<Place>)> {
        let year = self.year.unwrap_or(1970);
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(year, day)?,
            None => NaiveDate::from_ymd_opt(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        let hour = match (self.hour, self.half_hour) {
            (Some(hour), _) => hour,
            (None, Some(hour)) => hour % 12 + if self.is_afternoon == Some(true) { 12 } else { 0 },
            (None, None) => 0,
        };
        let time = NaiveTime::from_hms_micro_opt(hour, self.minute, self.second, self.micros)?;
        Some((date.and_time(time), self.place))
    }
}

fn read_pieces<'a>(pieces: &[Piece], mut text: &'a str, found: &mut Found) -> Option<&'a str> {
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Literal(literal) => text = text.strip_prefix(literal.as_str())?,
            Piece::Optional(inner) => {
                let mut tried = found.clone();
                if let Some(rest) = read_pieces(inner, text, &mut tried) {
                    (*found, text) = (tried, rest);
                }
            }
            Piece::Field(letter, count) => {
                // `yyyyMMdd`: a field right before another takes its own digits only.
                let is_adjacent = matches!(pieces.get(i + 1), Some(Piece::Field(..)));
                text = read_field(*letter, *count, is_adjacent, text, found)?;
            }
        }
    }
    Some(text)
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn read_field<'a>(letter: char, count: usize, is_adjacent: bool, text: &'a str, found: &mut Found) -> Option<&'a str> {
    let number = |least: usize, most: usize| -> Option<(u32, &'a str)> {
        let most = if is_adjacent { count.max(least) } else { most };
        let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        (digits >= least).then_some(())?;
        Some((text[..digits].parse().ok()?, &text[digits..]))
    };
    let two = || number(count.min(2), 2);
    let (value, rest) = match letter {
        'y' | 'u' if count == 2 => {
            let (year, rest) = number(2, 2)?;
            found.year = Some(2000 + year as i32);
            return Some(rest);
        }
        'y' | 'u' => {
            let (year, rest) = number(count, 6.max(count))?;
            found.year = Some(year as i32);
            return Some(rest);
        }
        'M' | 'L' if count >= 3 => {
            let (i, rest) = word(text, &MONTHS, count)?;
            found.month = Some(i as u32 + 1);
            return Some(rest);
        }
        'E' => return Some(word(text, &DAYS, count.max(3))?.1),
        'a' => {
            let half = text.get(..2)?.to_ascii_uppercase();
            found.is_afternoon = Some(match half.as_str() {
                "AM" => false,
                "PM" => true,
                _ => return None,
            });
            return Some(&text[2..]);
        }
        'S' => {
            let (_, rest) = number(1, count.min(9))?;
            let digits = &text[..text.len() - rest.len()];
            found.micros = format!("{:0<6}", &digits[..digits.len().min(6)]).parse().ok()?;
            return Some(rest);
        }
        'X' | 'x' | 'Z' | 'O' | 'z' | 'V' => {
            let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-:/_".contains(c))).unwrap_or(text.len());
            found.place = Some(parse_place(&text[..end])?);
            return Some(&text[end..]);
        }
        'D' => number(1, 3)?,
        'G' => return text.strip_prefix("AD"),
        _ => two()?,
    };
    match letter {
        'M' | 'L' => found.month = Some(value),
        'd' => found.day = Some(value),
        'D' => found.day_of_year = Some(value),
        'H' => found.hour = Some(value),
        'k' => found.hour = Some(value % 24),
        'h' if (1..=12).contains(&value) => found.half_hour = Some(value),
        'K' if value < 12 => found.half_hour = Some(value),
        'm' => found.minute = value,
        's' => found.second = value,
        'q' | 'Q' | 'F' | 'e' => {}
        _ => return None,
    }
    Some(rest)
}

/// Reads one of `words`, cut to three letters if `count` is 3.
fn word<'a>(text: &'a str, words: &[&str], count: usize) -> Option<(usize, &'a str)> {
    words.iter().enumerate().find_map(|(i, word)| {
        let word = if count == 3 { &word[..3] } else { word };
        let start = text.get(..word.len())?;
        start.eq_ignore_ascii_case(word).then(|| (i, &text[word.len()..]))
    })
}
