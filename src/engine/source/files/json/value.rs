//! Reads one JSON value into the column it belongs to. The rules are Spark's, except that nothing is rounded,
//! cut or wrapped to make it fit:
//!
//! | column | takes |
//! |---|---|
//! | BOOLEAN | `true`, `false` |
//! | TINYINT … BIGINT | integers in range; not `1.0`, not `"1"` |
//! | FLOAT, DOUBLE | numbers; with `allowNonNumericNumbers` also `NaN`, `Infinity`, … bare or as strings |
//! | DECIMAL | numbers and numbers in strings that need no rounding |
//! | STRING | strings; any other value as its JSON text |
//! | BINARY | base64 strings |
//! | DATE, TIMESTAMP, TIMESTAMP_NTZ | strings (`time.rs`); TIMESTAMP also integers: seconds since 1970 |
//! | ARRAY, MAP, STRUCT | arrays; objects; objects |
//!
//! `null` fits every column. Of a key that occurs twice in an object the last value counts, as in Spark.
//!
//! Not here: which record is being read, and what becomes of a corrupt one (`decode.rs`).

use serde::de::IgnoredAny;

use super::column::{Bytes, Column, List, Struct, Values};
use super::cursor::{Corrupt, Cursor};
use super::keys::Match;
use super::number::Number;
use super::rescue::{append_json_string, append_member};
use super::time::TimeFormat;

/// Whether a value fits its column. What doesn't is NULL in the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    Fits,
    /// The value as written doesn't.
    Misfit,
    /// Parts of the object don't; `Context::members` holds them.
    Members,
}

/// What all columns of a decoder share.
pub struct Context {
    pub times: TimeFormat,
    pub rescues: bool,
    pub is_case_sensitive: bool,
    /// `NaN` and the like may stand where a number may.
    pub allows_non_numeric: bool,
    /// The members to rescue of the object read last, if it answered `Fit::Members`.
    pub members: Vec<u8>,
    pub scratch: Vec<u8>,
    /// Number of the record or document at hand.
    pub record: u64,
    pub counts: Counts,
}

/// What was seen that has no place in the columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub misfits: u64,
    pub other_case: u64,
    pub unknown: u64,
}

/// Appends the value that is next to `column`.
#[inline]
pub fn read_value(column: &mut Column, cursor: &mut Cursor, context: &mut Context) -> Result<Fit, Corrupt> {
    let byte = cursor.peek();
    match (&mut column.values, byte) {
        (Values::String(strings), b'"') => {
            cursor.string()?.append_to(&mut strings.bytes);
            strings.end_value();
        }
        (Values::Int64(values), b'-' | b'0'..=b'9') => match integer(cursor)? {
            Some(value) => values.push(value),
            None => return Ok(misfit(column, context)),
        },
        (Values::Float64(values), b'-' | b'0'..=b'9') => match double(cursor)? {
            Some(value) => values.push(value),
            None => return Ok(misfit(column, context)),
        },
        (Values::Timestamp { values, zone: Some(_) }, b'"') => {
            let text = cursor.string()?;
            match context.times.timestamp(text.bytes(&mut context.scratch)) {
                Some(us) => values.push(us),
                None => return Ok(misfit(column, context)),
            }
        }
        (Values::Struct(values), b'{') => {
            let row = column.nulls.len();
            let fit = read_object(values, row, cursor, context)?;
            column.nulls.append_non_null();
            return Ok(fit);
        }
        (Values::List(list), b'[') => {
            let fit = read_list(list, cursor, context)?;
            column.nulls.append_non_null();
            return Ok(fit);
        }
        (_, b'n') => {
            cursor.word(b"null")?;
            column.append_null();
            return Ok(Fit::Fits);
        }
        _ => return read_other(column, cursor, context),
    }
    column.nulls.append_non_null();
    Ok(Fit::Fits)
}

/// The types and pairs of type and value that are not the commonest.
fn read_other(column: &mut Column, cursor: &mut Cursor, context: &mut Context) -> Result<Fit, Corrupt> {
    let byte = cursor.peek();
    let start = cursor.at;
    let fits = match (&mut column.values, byte) {
        (Values::Boolean(values), b't') => {
            cursor.word(b"true")?;
            values.append(true);
            true
        }
        (Values::Boolean(values), b'f') => {
            cursor.word(b"false")?;
            values.append(false);
            true
        }
        (Values::Int8(values), b'-' | b'0'..=b'9') => {
            push(values, integer(cursor)?.and_then(|value| value.try_into().ok()))
        }
        (Values::Int16(values), b'-' | b'0'..=b'9') => {
            push(values, integer(cursor)?.and_then(|value| value.try_into().ok()))
        }
        (Values::Int32(values), b'-' | b'0'..=b'9') => {
            push(values, integer(cursor)?.and_then(|value| value.try_into().ok()))
        }
        (Values::Float32(values), b'-' | b'+' | b'0'..=b'9' | b'N' | b'I') => {
            push(values, double(cursor)?.map(|value| value as f32).filter(|value| value.is_finite()))
        }
        (Values::Float64(values), b'+' | b'N' | b'I') => push(values, double(cursor)?),
        (Values::Float32(values), b'"') => push(values, non_numeric(cursor)?.map(|value| value as f32)),
        (Values::Float64(values), b'"') => push(values, non_numeric(cursor)?),
        (Values::Decimal { values, precision, scale }, b'-' | b'0'..=b'9') => {
            push(values, cursor.number()?.as_decimal(*precision, *scale))
        }
        (Values::Decimal { values, precision, scale }, b'"') => {
            let text = cursor.string()?.bytes(&mut context.scratch);
            let number = Number::scan(text).filter(|(_, length)| *length == text.len());
            push(values, number.and_then(|(number, _)| number.as_decimal(*precision, *scale)))
        }
        (Values::Timestamp { values, zone: Some(_) }, b'-' | b'0'..=b'9') => {
            push(values, integer(cursor)?.and_then(|seconds| seconds.checked_mul(1_000_000)))
        }
        (Values::Timestamp { values, zone: None }, b'"') => {
            push(values, context.times.timestamp_ntz(cursor.string()?.bytes(&mut context.scratch)))
        }
        (Values::Date(values), b'"') => push(values, context.times.date(cursor.string()?.bytes(&mut context.scratch))),
        (Values::String(strings), _) => {
            cursor.skip_value()?;
            strings.bytes.extend_from_slice(cursor.since(start));
            strings.end_value();
            true
        }
        (Values::Binary(values), b'"') => append_base64(cursor.string()?.bytes(&mut context.scratch), values),
        (Values::Map { keys, values }, b'{') => {
            let fit = read_map(keys, values, cursor, context)?;
            column.nulls.append_non_null();
            return Ok(fit);
        }
        _ => {
            cursor.skip_value()?;
            false
        }
    };
    if !fits {
        return Ok(misfit(column, context));
    }
    column.nulls.append_non_null();
    Ok(Fit::Fits)
}

/// Reads an object into the columns of its members; `row` is their length before. The opening brace is next.
#[inline]
pub fn read_object(
    object: &mut Struct,
    row: usize,
    cursor: &mut Cursor,
    context: &mut Context,
) -> Result<Fit, Corrupt> {
    cursor.enter()?;
    cursor.at += 1;
    cursor.skip_space();
    let mut members = Vec::new();
    let mut filled = 0;
    if !cursor.eat(b'}') {
        let mut prediction = object.keys.start();
        loop {
            match object.keys.read(cursor, &mut prediction, context.is_case_sensitive)? {
                Match::Column(position) => {
                    let child = &mut object.children[position];
                    if child.len() > row {
                        child.truncate(row);
                    } else {
                        filled += 1;
                    }
                    let start = cursor.at;
                    let fit = read_value(child, cursor, context)?;
                    if fit != Fit::Fits {
                        let mut key = Vec::new();
                        append_json_string(&mut key, object.fields[position].name().as_bytes());
                        rescue(&mut members, &key[1..key.len() - 1], fit, cursor.since(start), context);
                    }
                }
                Match::Unknown { raw, key } => {
                    let start = cursor.at;
                    cursor.skip_value()?;
                    let value = cursor.since(start);
                    // A null says nothing: neither of the field's type nor of the row.
                    let has_value = value != b"null";
                    object.keys.count_unknown(raw, key, context.record, has_value as u64);
                    context.counts.unknown += has_value as u64;
                    if has_value {
                        rescue(&mut members, raw, Fit::Misfit, value, context);
                    }
                }
                Match::OtherCase { raw } => {
                    let start = cursor.at;
                    cursor.skip_value()?;
                    context.counts.other_case += 1;
                    rescue(&mut members, raw, Fit::Misfit, cursor.since(start), context);
                }
            }
            if !cursor.has_more(b'}')? {
                break;
            }
        }
    }
    cursor.leave();
    if filled < object.children.len() {
        object.children.iter_mut().filter(|child| child.len() == row).for_each(Column::append_null);
    }
    if members.is_empty() {
        return Ok(Fit::Fits);
    }
    context.members = members;
    Ok(Fit::Members)
}

/// Takes note of a value, or of an object's members, that fits no column.
fn rescue(members: &mut Vec<u8>, raw_key: &[u8], fit: Fit, value: &[u8], context: &mut Context) {
    if !context.rescues {
        return;
    }
    match fit {
        Fit::Fits => {}
        Fit::Members => {
            let inner = std::mem::take(&mut context.members);
            append_member(members, raw_key, &[b"{", inner.as_slice(), b"}"].concat());
        }
        // A bare NaN would break the rescued data, which others read as JSON.
        Fit::Misfit if context.allows_non_numeric && serde_json::from_slice::<IgnoredAny>(value).is_err() => {
            let mut text = Vec::new();
            append_json_string(&mut text, value);
            append_member(members, raw_key, &text);
        }
        Fit::Misfit => append_member(members, raw_key, value),
    }
}

#[inline]
fn read_list(list: &mut List, cursor: &mut Cursor, context: &mut Context) -> Result<Fit, Corrupt> {
    cursor.enter()?;
    cursor.at += 1;
    cursor.skip_space();
    let mut fits = true;
    if !cursor.eat(b']') {
        loop {
            fits &= read_value(&mut list.child, cursor, context)? == Fit::Fits;
            if !cursor.has_more(b']')? {
                break;
            }
        }
    }
    cursor.leave();
    list.end_list();
    Ok(if fits { Fit::Fits } else { Fit::Misfit })
}

fn read_map(keys: &mut Bytes, values: &mut List, cursor: &mut Cursor, context: &mut Context) -> Result<Fit, Corrupt> {
    cursor.enter()?;
    cursor.at += 1;
    cursor.skip_space();
    let mut members = Vec::new();
    if !cursor.eat(b'}') {
        loop {
            let key = cursor.key()?;
            key.append_to(&mut keys.bytes);
            keys.end_value();
            let start = cursor.at;
            let fit = read_value(&mut values.child, cursor, context)?;
            if fit != Fit::Fits {
                rescue(&mut members, key.raw, fit, cursor.since(start), context);
            }
            if !cursor.has_more(b'}')? {
                break;
            }
        }
    }
    cursor.leave();
    values.end_list();
    if members.is_empty() {
        return Ok(Fit::Fits);
    }
    context.members = members;
    Ok(Fit::Members)
}

#[cold]
fn misfit(column: &mut Column, context: &mut Context) -> Fit {
    column.append_null();
    context.counts.misfits += 1;
    Fit::Misfit
}

fn push<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    let fits = value.is_some();
    values.extend(value);
    fits
}

#[inline(always)]
fn integer(cursor: &mut Cursor) -> Result<Option<i64>, Corrupt> {
    if cursor.peek() == b'-' && cursor.non_numeric().is_some() {
        return Ok(None);
    }
    Ok(cursor.number()?.as_i64())
}

#[inline(always)]
fn double(cursor: &mut Cursor) -> Result<Option<f64>, Corrupt> {
    if !cursor.peek().is_ascii_digit()
        && let Some(value) = cursor.non_numeric()
    {
        return Ok(Some(value));
    }
    Ok(cursor.number()?.as_f64())
}

/// A string in a column of doubles: only the words for what no number can say.
fn non_numeric(cursor: &mut Cursor) -> Result<Option<f64>, Corrupt> {
    let text = cursor.string()?;
    Ok(cursor.non_numeric_text(text.raw))
}

/// Decodes standard base64 with padding; false, and nothing appended, if it isn't.
fn append_base64(text: &[u8], values: &mut Bytes) -> bool {
    let before = values.bytes.len();
    let digits = match text {
        [digits @ .., b'=', b'='] | [digits @ .., b'='] => digits,
        digits => digits,
    };
    let mut bits = 0u32;
    for (at, digit) in digits.iter().enumerate() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => {
                values.bytes.truncate(before);
                return false;
            }
        };
        bits = bits << 6 | value as u32;
        match at % 4 {
            0 => {}
            1 => values.bytes.push((bits >> 4) as u8),
            2 => values.bytes.push((bits >> 2) as u8),
            _ => values.bytes.push(bits as u8),
        }
    }
    if !text.len().is_multiple_of(4) || digits.len() % 4 == 1 {
        values.bytes.truncate(before);
        return false;
    }
    values.end_value();
    true
}
