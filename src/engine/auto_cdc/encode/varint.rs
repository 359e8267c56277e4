//! Integers in seven-bit groups, lowest first; the high bit says that another group follows (LEB128, as in Protobuf).

/// How many bytes [`put`] writes.
#[inline]
pub fn len(value: u64) -> usize {
    // 1 for zero.
    ((64 - (value | 1).leading_zeros()) as usize).div_ceil(7)
}

/// Appends `value`.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes `value` at `at`; returns the place behind it. The caller made room.
#[inline]
pub fn write(out: &mut [u8], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Takes a value off the front of `bytes`; `None` if they end too early or say more than 64 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let group = u64::from(byte & 0x7f);
        if shift == 63 && group > 1 {
            return None;
        }
        value |= group << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes a byte string that follows its own length.
#[inline]
pub fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take(bytes)?;
    take_exactly(bytes, usize::try_from(len).ok()?)
}

/// Takes `len` bytes.
#[inline]
pub fn take_exactly<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}
