//! Figures as they are printed.

use std::time::Duration;

pub fn median<T, F: Ord + Copy>(runs: &[T], figure: impl Fn(&T) -> F) -> F {
    let mut figures: Vec<F> = runs.iter().map(figure).collect();
    figures.sort_unstable();
    figures[figures.len() / 2]
}

/// Prints a figure and, where there is one, whether its aim is reached.
pub fn figure(name: &str, value: &str, aim: Option<(bool, &str)>) {
    let aim = aim.map_or(String::new(), |(is_reached, aim)| {
        format!("   aim {aim:<10} {}", if is_reached { "pass" } else { "missed" })
    });
    println!("  {name:<52} {value:>32}{aim}");
}

pub fn milliseconds(name: &str, time: Duration, aim_ms: u64) {
    let ms = time.as_secs_f64() * 1000.0;
    figure(name, &format!("{ms:.1} ms"), Some((ms <= aim_ms as f64, &format!("≤ {aim_ms} ms"))));
}

pub fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// `1234567` as `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
