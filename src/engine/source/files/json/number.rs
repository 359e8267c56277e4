//! A number token and its exact value as an integer, a double or a decimal.
//!
//! Not here: which of them a column wants (`value.rs`).

/// A number as written: (-1)^`is_negative` × `mantissa` × 10^`exponent` as long as `digits` ≤ 19.
#[derive(Debug, Clone, Copy)]
pub struct Number<'a> {
    pub text: &'a [u8],
    pub is_negative: bool,
    /// Without fraction and exponent: the only form that is an integer to Spark.
    pub is_integer: bool,
    mantissa: u64,
    /// Digits of the mantissa from the first that isn't zero; past 19 the mantissa has overflowed.
    digits: u32,
    exponent: i32,
}

const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

impl<'a> Number<'a> {
    /// Reads the number at the start of `bytes`; returns it with its length. None: malformed.
    #[inline(always)]
    pub fn scan(bytes: &'a [u8]) -> Option<(Number<'a>, usize)> {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let is_negative = byte(0) == b'-';
        let first = is_negative as usize;
        let mut at = first;
        let mut mantissa = 0u64;
        loop {
            let digit = byte(at).wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            mantissa = mantissa.wrapping_mul(10).wrapping_add(digit as u64);
            at += 1;
        }
        let whole = at - first;
        if whole == 0 || (whole > 1 && byte(first) == b'0') {
            return None;
        }
        let mut digits = whole as u32;
        let mut exponent = 0i32;
        let mut is_integer = true;
        if byte(at) == b'.' {
            is_integer = false;
            at += 1;
            let start = at;
            loop {
                let digit = byte(at).wrapping_sub(b'0');
                if digit > 9 {
                    break;
                }
                mantissa = mantissa.wrapping_mul(10).wrapping_add(digit as u64);
                at += 1;
            }
            let fraction = at - start;
            if fraction == 0 {
                return None;
            }
            digits += fraction as u32;
            exponent = -(fraction as i32);
        }
        if byte(at) | 0x20 == b'e' {
            is_integer = false;
            let (power, length) = scan_exponent(&bytes[at + 1..])?;
            exponent = exponent.saturating_add(power);
            at += 1 + length;
        }
        if digits > 19 && byte(first) == b'0' {
            // Zeros before the first digit that counts, as in 0.00000000000000000001.
            let zeros = bytes[first..at].iter().take_while(|byte| matches!(byte, b'0' | b'.')).count();
            digits = digits.saturating_sub(zeros as u32 - 1);
        }
        Some((Number { text: &bytes[..at], is_negative, is_integer, mantissa, digits, exponent }, at))
    }

    /// The value, if the number is written as an integer and fits.
    #[inline(always)]
    pub fn as_i64(&self) -> Option<i64> {
        if !self.is_integer || self.digits > 19 {
            return None;
        }
        if self.is_negative { 0i64.checked_sub_unsigned(self.mantissa) } else { i64::try_from(self.mantissa).ok() }
    }

    /// The nearest double; None if the number is beyond all of them.
    #[inline(always)]
    pub fn as_f64(&self) -> Option<f64> {
        // Clinger's fast path: both factors are exact doubles, so one rounding gives the nearest result.
        if self.digits <= 19 && self.mantissa <= 1 << 53 && self.exponent.unsigned_abs() <= 22 {
            let power = POWERS_OF_TEN[self.exponent.unsigned_abs() as usize];
            let mantissa = self.mantissa as f64;
            let value = if self.exponent < 0 { mantissa / power } else { mantissa * power };
            return Some(if self.is_negative { -value } else { value });
        }
        let value: f64 = std::str::from_utf8(self.text).ok()?.parse().ok()?;
        value.is_finite().then_some(value)
    }

    /// The value times 10^`scale`, if that is an integer of at most `precision` digits: nothing is rounded away.
    pub fn as_decimal(&self, precision: u8, scale: i8) -> Option<i128> {
        decimal(self.text, precision, scale)
    }

    /// Digits before and after the point that a decimal needs to hold the number exactly.
    pub fn decimal_digits(&self) -> (u32, u32) {
        let Some((digits, exponent)) = significant(self.text) else { return (u32::MAX / 2, 0) };
        let whole = (digits.len() as i64 + exponent).clamp(0, 1 << 20) as u32;
        let fraction = (-exponent).clamp(0, 1 << 20) as u32;
        (if digits.is_empty() { 0 } else { whole }, if digits.is_empty() { 0 } else { fraction })
    }
}

/// Reads `[+-]digits` after the `e`.
fn scan_exponent(bytes: &[u8]) -> Option<(i32, usize)> {
    let is_negative = bytes.first() == Some(&b'-');
    let sign = matches!(bytes.first(), Some(b'-' | b'+')) as usize;
    let count = bytes[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let power = bytes[sign..sign + count]
        .iter()
        .fold(0i32, |power, digit| power.saturating_mul(10).saturating_add((digit - b'0') as i32));
    Some((if is_negative { -power } else { power }, sign + count))
}

/// A number's digits without zeros at either end, and the power of ten of the last of them.
fn significant(text: &[u8]) -> Option<(Vec<u8>, i64)> {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (mantissa, power) = match text.iter().position(|byte| byte | 0x20 == b'e') {
        Some(at) => (&text[..at], scan_exponent(&text[at + 1..])?.0 as i64),
        None => (text, 0),
    };
    let fraction = mantissa.iter().position(|byte| *byte == b'.').map_or(0, |point| mantissa.len() - point - 1);
    let mut digits: Vec<u8> = mantissa.iter().filter(|byte| **byte != b'.').map(|byte| byte - b'0').collect();
    let mut exponent = power - fraction as i64;
    while digits.last() == Some(&0) {
        digits.pop();
        exponent += 1;
    }
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    digits.drain(..zeros);
    Some((digits, exponent))
}

/// A number's text as a decimal; see [`Number::as_decimal`].
fn decimal(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let (digits, exponent) = significant(text)?;
    if digits.is_empty() {
        return Some(0);
    }
    let zeros = exponent + scale as i64;
    if zeros < 0 || digits.len() as i64 + zeros > precision as i64 {
        return None;
    }
    let value = digits.iter().fold(0i128, |value, digit| value * 10 + *digit as i128) * 10i128.pow(zeros as u32);
    Some(if text.starts_with(b"-") { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Option<Number<'_>> {
        Number::scan(text.as_bytes()).and_then(|(number, length)| (length == text.len()).then_some(number))
    }

    #[test]
    fn integers_are_exact_or_nothing() {
        let cases = [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("99999999999999999999", None),
            ("1.0", None),
            ("1e3", None),
        ];
        for (text, expected) in cases {
            assert_eq!(scan(text).unwrap().as_i64(), expected, "{text}");
        }
    }

    #[test]
    fn malformed_numbers_are_refused() {
        for text in ["", "-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "1.e3"] {
            assert!(scan(text).is_none(), "{text}");
        }
    }

    #[test]
    fn doubles_are_what_rust_parses() {
        let cases = [
            "0.1",
            "-1.5",
            "59.33782",
            "9007199254740993",
            "1e22",
            "1e23",
            "123456789012345678901234567890",
            "5e-324",
            "0.000000000000000000012345",
            "1.7976931348623157e308",
            "0.1e1",
            "-0.0",
        ];
        for text in cases {
            let expected: f64 = text.parse().unwrap();
            assert_eq!(scan(text).unwrap().as_f64().unwrap().to_bits(), expected.to_bits(), "{text}");
        }
        assert_eq!(scan("1e999").unwrap().as_f64(), None);
    }

    #[test]
    fn decimals_never_round() {
        let cases = [
            ("12.34", 5, 2, Some(1234)),
            ("12.340", 5, 2, Some(1234)),
            ("12.345", 5, 2, None),
            ("1e3", 5, 1, Some(10000)),
            ("1e4", 5, 1, None),
            ("-0.5", 3, 1, Some(-5)),
            ("0", 1, 0, Some(0)),
            ("100", 1, -2, Some(1)),
        ];
        for (text, precision, scale, expected) in cases {
            assert_eq!(scan(text).unwrap().as_decimal(precision, scale), expected, "{text}");
        }
    }
}
