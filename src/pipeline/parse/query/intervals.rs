//! Intervals in Spark's spellings → the one that DataFusion reads: `INTERVAL '1' HOUR`.

use super::super::token::{TokenKind, string_value};
use super::inputs::Taker;

impl Taker<'_> {
    /// `INTERVAL '1 hour 30 minutes'`, `INTERVAL 1 HOUR 30 MINUTES`: DataFusion wants `INTERVAL '1' HOUR`.
    pub(super) fn interval(&mut self) -> bool {
        let mut parts = Vec::new();
        let mut length = 1;
        if self.cursor.kind(1) == Some(TokenKind::Text) && unit(self.cursor.peek_str(2)).is_none() {
            let value = string_value(self.cursor.peek_str(1));
            let words: Vec<&str> = value.split_whitespace().collect();
            for pair in words.chunks(2) {
                let [number, name] = pair else { return false };
                let (Ok(_), Some(unit)) = (number.parse::<f64>(), unit(name)) else { return false };
                parts.push((number.to_string(), unit));
            }
            length = 2;
        } else {
            while let Some((number, unit, taken)) = self.interval_part(length) {
                parts.push((number, unit));
                length += taken;
            }
        }
        if parts.is_empty() {
            return false;
        }
        let sum: Vec<String> = parts.iter().map(|(number, unit)| interval_literal(number, unit)).collect();
        let range = self.cursor.offset()..self.cursor.tokens()[self.cursor.at + length - 1].range.end;
        let text = if sum.len() == 1 { sum.concat() } else { format!("({})", sum.join(" + ")) };
        self.edits.push((range, text));
        self.cursor.at += length;
        true
    }

    /// A number and its unit at the token `ahead`: their text and how many tokens they take.
    pub(super) fn interval_part(&self, ahead: usize) -> Option<(String, &'static str, usize)> {
        let sign = usize::from(self.cursor.is_symbol(ahead, "-"));
        let number = match self.cursor.kind(ahead + sign)? {
            TokenKind::Number => self.cursor.peek_str(ahead + sign).to_string(),
            TokenKind::Text => string_value(self.cursor.peek_str(ahead + sign)),
            _ => return None,
        };
        number.trim().parse::<f64>().ok()?;
        let unit = unit(self.cursor.peek_str(ahead + sign + 1))?;
        let sign_text = if sign == 1 { "-" } else { "" };
        Some((format!("{sign_text}{}", number.trim()), unit, 2 + sign))
    }
}

/// Arrow's intervals know no quarters.
fn interval_literal(number: &str, unit: &str) -> String {
    match number.parse::<i32>() {
        Ok(quarters) if unit == "QUARTER" => format!("INTERVAL '{}' MONTH", i64::from(quarters) * 3),
        _ => format!("INTERVAL '{number}' {unit}"),
    }
}

fn unit(word: &str) -> Option<&'static str> {
    const UNITS: [&str; 10] =
        ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"];
    let word = word.to_ascii_uppercase();
    let singular = word.strip_suffix('S').unwrap_or(&word);
    UNITS.into_iter().find(|unit| *unit == singular)
}
