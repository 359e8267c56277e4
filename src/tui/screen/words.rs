//! Short words for numbers and times.

use pipeline::scd::KeyPart;

use crate::app::App;

/// `14:03:59` in the local time zone.
pub fn time_of_day(app: &App, time_us: i64) -> String {
    let seconds = time_us.div_euclid(1_000_000) + i64::from(app.options.utc_offset_s);
    let day = seconds.rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", day / 3_600, day / 60 % 60, day % 60)
}

/// `950`, `84k`, `1.20M`: at most five characters.
pub fn short(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{}k", n / 1_000),
        1_000_000..1_000_000_000 => format!("{:.2}M", n as f64 / 1e6),
        _ => format!("{:.2}G", n as f64 / 1e9),
    }
}

/// `3.4k/s`.
pub fn per_second(rate: f64) -> String {
    match rate {
        r if r < 1_000.0 => format!("{r:.0}/s"),
        r if r < 1_000_000.0 => format!("{:.1}k/s", r / 1e3),
        r => format!("{:.1}M/s", r / 1e6),
    }
}

/// A key where its columns are known: `7, eu`.
pub fn key_values(key: &[KeyPart]) -> String {
    key.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(", ")
}

/// The names of a key's columns: `id, region`.
pub fn key_columns(key: &[KeyPart]) -> String {
    key.iter().map(|part| part.column.as_str()).collect::<Vec<_>>().join(", ")
}

/// `00:38`, `1:02:03`.
pub fn clock(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds / 3_600 {
        0 => format!("{:02}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Values as bars of eight heights, the newest at the right.
pub fn sparkline(values: &[u64], cells: usize, is_ascii: bool) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];
    let shown = &values[values.len().saturating_sub(cells)..];
    let max = shown.iter().copied().max().unwrap_or(0).max(1);
    let bars = if is_ascii { ASCII } else { BARS };
    shown.iter().map(|value| bars[(value * 7 / max) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_short() {
        assert_eq!([0, 9_999, 84_015, 1_204_118, 5_000_000_000].map(short), ["0", "9999", "84k", "1.20M", "5.00G"]);
        assert_eq!([38_000, 3_723_000].map(clock), ["00:38", "1:02:03"]);
        assert_eq!(sparkline(&[9, 0, 4, 8], 3, false), "▁▄█");
        assert_eq!(sparkline(&[], 3, true), "");
        assert_eq!([3.4, 3_400.0, 2e6].map(per_second), ["3/s", "3.4k/s", "2.0M/s"]);
    }
}
