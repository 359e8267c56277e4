//! Intervals on an axis, one a line of text: numbers and times to scale, other texts by their rank.
//!
//! Knows nothing of what the intervals are. Every line has exactly the cells it was made for, each character one cell.
//!
//! ```text
//! 2021      2022      2023        2024                    ticks
//! ├─────────┤                                             an interval that ends where the next begins
//!           ├─────┤      ┃                                a mark
//!                 ╌╌╌╌╌╌╌├──────────▸                     a gap before it; it has no end
//! ────────────────────▲──────────────                     the cursor
//! ```

/// From where to where something holds, as the axis' labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval<'a> {
    pub start: &'a str,
    /// None: it still holds.
    pub end: Option<&'a str>,
    /// The end of the one before, if it doesn't touch this one.
    pub gap_from: Option<&'a str>,
}

/// Where labels lie in a line of some cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// In order, without repetitions.
    labels: Vec<String>,
    /// By label; empty if the labels are neither numbers nor times.
    values: Vec<f64>,
    kind: Kind,
    /// Labels are drawn at equal distances.
    is_ranked: bool,
    cells: usize,
    /// Cells at the right that are kept for what has no end.
    tail: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// In seconds since 1970.
    Time,
    Text,
}

impl Axis {
    /// An axis for labels in order. They are numbers or times if all of them are and the order is theirs; to scale,
    /// unless that draws most of them on top of one another.
    pub fn new<'a>(labels: impl IntoIterator<Item = &'a str>, has_open_end: bool, cells: usize) -> Axis {
        let mut unique: Vec<String> = Vec::new();
        for label in labels {
            if unique.last().is_none_or(|last| last != label) {
                unique.push(label.to_string());
            }
        }
        let (kind, values) = [Kind::Number, Kind::Time]
            .into_iter()
            .find_map(|kind| {
                let values: Vec<f64> = unique.iter().map(|label| kind.value(label)).collect::<Option<_>>()?;
                values.is_sorted().then_some((kind, values))
            })
            .unwrap_or((Kind::Text, Vec::new()));
        let tail = if has_open_end { (cells / 10).max(2) } else { 0 };
        let mut axis = Axis { labels: unique, values, kind, is_ranked: kind == Kind::Text, cells, tail };
        if !axis.is_ranked {
            let mut places: Vec<usize> = axis.labels.iter().filter_map(|label| axis.cell(label)).collect();
            places.dedup();
            axis.is_ranked = places.len() * 2 < axis.labels.len();
        }
        axis
    }

    /// False: only the order of what is drawn can be seen, not the distances.
    pub fn is_to_scale(&self) -> bool {
        !self.is_ranked
    }

    /// The cell of a label, or of any other text that can be compared with the labels.
    pub fn cell(&self, label: &str) -> Option<usize> {
        let last = self.labels.len().checked_sub(1)?;
        let known = self.labels.iter().position(|known| known == label);
        let value = if self.values.is_empty() { None } else { self.kind.value(label) };
        let part = match (self.is_ranked, known, value) {
            (true, Some(at), _) => at as f64 / last.max(1) as f64,
            (true, None, Some(value)) => {
                let before = self.values.partition_point(|known| *known < value);
                let is_same = self.values.get(before) == Some(&value);
                (before as f64 - if is_same { 0.0 } else { 0.5 }) / last.max(1) as f64
            }
            (false, _, Some(value)) => {
                let (first, span) = (self.values[0], self.values[last] - self.values[0]);
                if span > 0.0 { (value - first) / span } else { 0.0 }
            }
            (_, _, None) => return None,
        };
        self.cell_of(part)
    }

    /// The cell of a part of the axis, from 0 to 1; what lies beyond is drawn at its ends.
    fn cell_of(&self, part: f64) -> Option<usize> {
        let room = self.cells.saturating_sub(self.tail).checked_sub(1)?;
        Some(match part {
            part if part > 1.0 => self.cells - 1,
            part => (part.max(0.0) * room as f64).round() as usize,
        })
    }

    /// An interval as a line.
    pub fn bar(&self, interval: &Interval, marks: &[&str], is_ascii: bool) -> String {
        let pick = |unicode: char, ascii: char| if is_ascii { ascii } else { unicode };
        let mut line = vec![' '; self.cells];
        for mark in marks {
            if let Some(at) = self.cell(mark) {
                line[at] = pick('┃', '|');
            }
        }
        let Some(start) = self.cell(interval.start) else { return line.into_iter().collect() };
        if let Some(from) = interval.gap_from.and_then(|from| self.cell(from)) {
            (from + 1..start).for_each(|at| line[at] = pick('╌', '.'));
        }
        match interval.end.map(|end| self.cell(end).unwrap_or(start).max(start)) {
            Some(end) => {
                (start..end).for_each(|at| line[at] = pick('─', '='));
                line[start] = pick('├', '[');
                line[end] = if end == start { pick('◆', '*') } else { pick('┤', ')') };
            }
            None => {
                let end = self.cells - 1;
                (start..end).for_each(|at| line[at] = pick('─', '='));
                line[start] = pick('├', '[');
                line[end] = pick('▸', '>');
            }
        }
        line.into_iter().collect()
    }

    /// The axis itself with a cursor on it.
    pub fn pointer(&self, cursor: Option<&str>, is_ascii: bool) -> String {
        let mut line = vec![if is_ascii { '-' } else { '─' }; self.cells];
        if let Some(at) = cursor.and_then(|cursor| self.cell(cursor)) {
            line[at] = if is_ascii { '^' } else { '▲' };
        }
        line.into_iter().collect()
    }

    /// Labels over the cells where they lie, as many as there is room for.
    pub fn ticks(&self) -> String {
        let mut line = String::new();
        let mut end = 0;
        for (at, label) in self.tick_labels() {
            // Labels are ASCII unless they are the user's texts: those are cut by characters, which is close enough.
            let cells = crate::widget::text::width(&label);
            if (end > 0 && at < end + 2) || at + cells > self.cells {
                continue;
            }
            line.push_str(&" ".repeat(at - end));
            line.push_str(&label);
            end = at + cells;
        }
        line.push_str(&" ".repeat(self.cells.saturating_sub(end)));
        line
    }

    fn tick_labels(&self) -> Vec<(usize, String)> {
        let bounds = self.values.first().copied().zip(self.values.last().copied());
        let to_scale = bounds.filter(|(first, last)| !self.is_ranked && last > first);
        let Some((first, last)) = to_scale else {
            let labels = self.labels.iter().filter_map(|label| Some((self.cell(label)?, short(label).to_string())));
            return labels.collect();
        };
        let values = match self.kind {
            Kind::Time => time_ticks(first, last, self.cells),
            Kind::Number | Kind::Text => number_ticks(first, last, self.cells),
        };
        let place = |value: f64| self.cell_of((value - first) / (last - first));
        values.into_iter().filter_map(|(value, label)| Some((place(value)?, label))).collect()
    }
}

impl Kind {
    fn value(self, label: &str) -> Option<f64> {
        match self {
            Kind::Number => label.parse().ok().filter(|value: &f64| value.is_finite()),
            Kind::Time => seconds(label),
            Kind::Text => None,
        }
    }
}

/// A time without what says nothing.
fn short(label: &str) -> &str {
    label.strip_suffix(" 00:00:00").unwrap_or(label)
}

/// Round numbers between two, with their texts.
fn number_ticks(first: f64, last: f64, cells: usize) -> Vec<(f64, String)> {
    let wanted = (cells / 10).max(1) as f64;
    let rough = (last - first) / wanted;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| *step >= rough).unwrap_or(rough);
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let begin = (first / step).ceil();
    (0..=cells)
        .map(|n| (begin + n as f64) * step)
        .take_while(|value| *value <= last)
        .map(|value| (value, format!("{value:.decimals$}")))
        .collect()
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Steps of an axis of times: months, or seconds.
const MONTH_STEPS: [i64; 8] = [1, 3, 6, 12, 24, 60, 120, 1_200];
const SECOND_STEPS: [i64; 11] = [1, 5, 15, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, DAY, 7 * DAY];

/// Round times between two, in seconds since 1970, with their texts.
fn time_ticks(first: f64, last: f64, cells: usize) -> Vec<(f64, String)> {
    let span = last - first;
    let fits = |step: f64, label: usize| span / step * (label + 2) as f64 <= cells as f64;
    let text = |seconds: i64, step: i64| {
        let (year, month, day) = civil(seconds.div_euclid(DAY));
        let of_day = seconds.rem_euclid(DAY);
        match step {
            _ if step >= DAY || of_day == 0 => format!("{year:04}-{month:02}-{day:02}"),
            _ if step >= MINUTE => format!("{:02}:{:02}", of_day / HOUR, of_day / MINUTE % 60),
            _ => format!("{:02}:{:02}:{:02}", of_day / HOUR, of_day / MINUTE % 60, of_day % 60),
        }
    };
    if let Some(step) = SECOND_STEPS.into_iter().find(|step| fits(*step as f64, 10)) {
        let begin = (first as i64).div_euclid(step) * step;
        let times = (0..).map(|n| begin + n * step).skip_while(|time| (*time as f64) < first);
        return times
            .take_while(|time| *time as f64 <= last)
            .take(cells)
            .map(|time| (time as f64, text(time, step)))
            .collect();
    }
    let step = MONTH_STEPS.into_iter().find(|step| {
        let label = if step % 12 == 0 { 4 } else { 7 };
        fits(*step as f64 * 30.4 * DAY as f64, label)
    });
    let step = step.unwrap_or(MONTH_STEPS[MONTH_STEPS.len() - 1]);
    let (year, month, _) = civil((first as i64).div_euclid(DAY));
    let begin = (year * 12 + month - 1).div_euclid(step) * step;
    (0..=cells as i64)
        .map(|n| begin + n * step)
        .map(|months| (months.div_euclid(12), months.rem_euclid(12) + 1))
        .map(|(year, month)| ((days(year, month, 1) * DAY) as f64, year, month))
        .skip_while(|(time, ..)| *time < first)
        .take_while(|(time, ..)| *time <= last)
        .map(|(time, year, month)| {
            (time, if step % 12 == 0 { format!("{year:04}") } else { format!("{year:04}-{month:02}") })
        })
        .collect()
}

/// Seconds since 1970 of `2021-03-04` or `2021-03-04 09:12:00.5`, with `T` between them or `Z` behind.
fn seconds(text: &str) -> Option<f64> {
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (date, Some(time.strip_suffix('Z').unwrap_or(time))),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let mut next = |digits: std::ops::RangeInclusive<usize>| -> Option<i64> {
        let part = parts.next().filter(|part| digits.contains(&part.len()))?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let (year, month, day) = (next(4..=6)?, next(2..=2)?, next(2..=2)?);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let mut total = (days(year, month, day) * DAY) as f64;
    if let Some(time) = time {
        let mut unit = HOUR as f64;
        for (place, part) in time.split(':').enumerate() {
            let is_digits = part.bytes().all(|byte| byte.is_ascii_digit() || (place == 2 && byte == b'.'));
            if place > 2 || !is_digits {
                return None;
            }
            total += part.parse::<f64>().ok()? * unit;
            unit /= 60.0;
        }
    }
    Some(total)
}

/// Days since 1970-01-01 of a date of the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The other way around: year, month, day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interval<'a>(start: &'a str, end: Option<&'a str>) -> Interval<'a> {
        Interval { start, end, gap_from: None }
    }

    #[test]
    fn intervals_lie_to_scale_between_their_ends() {
        let axis = Axis::new(["0", "5", "10"], false, 21);
        assert!(axis.is_to_scale());
        assert_eq!(axis.bar(&interval("0", Some("5")), &[], false), "├─────────┤          ");
        assert_eq!(axis.bar(&interval("5", Some("10")), &[], true), "          [=========)");
        assert_eq!(axis.bar(&interval("5", Some("5")), &["10"], false), "          ◆         ┃");
        assert_eq!(axis.pointer(Some("2.5"), false), "─────▲───────────────");
        assert_eq!(axis.pointer(None, true), "-".repeat(21));
        assert_eq!(axis.ticks(), "0         5          ");
    }

    #[test]
    fn what_has_no_end_runs_to_the_edge_and_gaps_are_dotted() {
        let axis = Axis::new(["1", "2", "3"], true, 24);
        let bar = axis.bar(&Interval { start: "3", end: None, gap_from: Some("2") }, &[], false);
        assert_eq!(bar, "            ╌╌╌╌╌╌╌╌╌├─▸");
        assert_eq!(axis.bar(&interval("1", None), &[], true), "[======================>");
    }

    #[test]
    fn numbers_and_times_are_known_and_other_texts_are_ranked() {
        let scale = |labels: &[&str]| {
            let axis = Axis::new(labels.iter().copied(), false, 40);
            (axis.kind, axis.is_to_scale())
        };
        assert_eq!(scale(&["1", "20", "300.5"]), (Kind::Number, true));
        assert_eq!(scale(&["2021-03-04", "2022-11-20 18:00:00", "2023-06-01T07:30:00.25Z"]), (Kind::Time, true));
        // Strings: their order isn't that of numbers.
        assert_eq!(scale(&["10", "9"]), (Kind::Text, false));
        assert_eq!(scale(&["{2024, 1}", "{2024, 2}"]), (Kind::Text, false));
        assert_eq!(scale(&["2021-13-04", "2022-11-20"]), (Kind::Text, false));
        assert_eq!(scale(&[]).0, Kind::Number);
        let axis = Axis::new(["a", "b", "c"], false, 21);
        assert_eq!(
            [axis.cell("a"), axis.cell("b"), axis.cell("c"), axis.cell("d")],
            [Some(0), Some(10), Some(20), None]
        );
    }

    #[test]
    fn what_would_lie_on_top_of_one_another_is_ranked_instead() {
        let labels = ["1", "2", "3", "4", "5", "6", "1000000"];
        let axis = Axis::new(labels, false, 31);
        assert!(!axis.is_to_scale());
        assert_eq!((axis.cell("3"), axis.cell("3.5")), (Some(10), Some(13)));
    }

    #[test]
    fn ticks_are_round() {
        let ticks = |labels: [&str; 2], cells| Axis::new(labels, false, cells).ticks().trim_end().to_string();
        assert_eq!(ticks(["2020-12-01", "2023-12-01"], 37), " 2021        2022        2023");
        assert_eq!(ticks(["2021-03-30", "2021-07-02"], 40), " 2021-04     2021-05      2021-06");
        assert_eq!(ticks(["2021-03-04", "2021-03-05"], 60), "2021-03-04     06:00          12:00         18:00");
        assert_eq!(ticks(["3", "27"], 40), "           10               20");
        assert_eq!(ticks(["0", "0.4"], 40), "0.0       0.1       0.2      0.3");
        assert_eq!(ticks(["7", "7"], 20), "7");
    }

    #[test]
    fn dates_come_back_as_they_were() {
        for day in (-800_000..800_000).step_by(97) {
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), day);
        }
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(seconds("2000-02-29 01:00:00.5"), Some(951_786_000.5));
    }

    proptest! {
        #[test]
        fn every_line_has_the_cells_it_was_made_for(
            mut numbers in proptest::collection::vec(-1e12f64..1e12, 0..8),
            texts in proptest::collection::vec("[a-z0-9:. -]{0,12}", 0..5),
            is_text in any::<bool>(),
            has_open_end in any::<bool>(),
            cells in 0usize..140,
            other in "[0-9-]{0,10}",
        ) {
            numbers.sort_by(f64::total_cmp);
            let labels: Vec<String> =
                if is_text { texts } else { numbers.iter().map(|n| format!("{n:.3}")).collect() };
            let axis = Axis::new(labels.iter().map(String::as_str), has_open_end, cells);
            let cells_of = |line: &str| line.chars().count();
            prop_assert_eq!(cells_of(&axis.ticks()), cells);
            prop_assert_eq!(cells_of(&axis.pointer(Some(&other), false)), cells);
            for pair in labels.windows(2) {
                for (start, end) in [(&pair[0], Some(&pair[1])), (&pair[1], Some(&pair[0])), (&pair[0], None)] {
                    let interval = Interval { start, end: end.map(String::as_str), gap_from: Some(&pair[0]) };
                    prop_assert_eq!(cells_of(&axis.bar(&interval, &[&other], true)), cells);
                }
            }
        }
    }
}
