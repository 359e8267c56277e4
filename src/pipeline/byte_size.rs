//! Sizes as people write them: `512MB`, `10g`.

/// Reads a size as Spark does: digits and an optional unit, where `k`, `m`, `g`, `t` (also `kb`, `KiB`, …) are
/// powers of 1024. None if the text is no size or too large.
pub fn parse_byte_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in [
            ("512", Some(512)),
            ("10g", Some(10 << 30)),
            (" 1 KiB ", Some(1024)),
            ("512MB", Some(512 << 20)),
            ("1.5g", None),
            ("g", None),
            ("-1", None),
            ("99999999999t", None),
        ] {
            assert_eq!(parse_byte_size(text), bytes, "{text}");
        }
    }
}
