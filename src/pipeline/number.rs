//! Numbers and sizes for people; the same on the command line and on the screen.

/// `1 204 118`: digits in groups, by a blank that needs no locale.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `3 files`, `1 file`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// `18.2 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{n} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// `412 ms`, `3.1 s`, `2 min 05 s`, `1 h 03 min`.
pub fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {:02} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {:02} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Rows a second, short: `3.4k/s`.
pub fn rate(rows: u64, ms: u64) -> String {
    if ms == 0 {
        return String::new();
    }
    let per_second = rows as f64 * 1_000.0 / ms as f64;
    match per_second {
        0.0..1_000.0 => format!("{per_second:.0}/s"),
        1_000.0..1_000_000.0 => format!("{:.1}k/s", per_second / 1_000.0),
        _ => format!("{:.1}M/s", per_second / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1_000, 1_204_118].map(count), ["0", "999", "1 000", "1 204 118"]);
        assert_eq!([0, 1_023, 1_536, 5 << 30].map(bytes), ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]);
        assert_eq!([7, 3_149, 125_000, 3_780_000].map(duration), ["7 ms", "3.1 s", "2 min 05 s", "1 h 03 min"]);
        assert_eq!([rate(10, 0), rate(500, 1_000), rate(3_400, 1_000)], ["", "500/s", "3.4k/s"]);
        assert_eq!(counted(1, "file", "files"), "1 file");
    }
}
