//! The one table of what a person can do: keys, hints, help, palette, documents and tests come from it.

use crate::key::Key;

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    ShowGraph,
    ShowRuns,
    ShowData,
    ShowLog,
    ShowCutover,
    Inspect,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Enter,
    Back,
    NextPane,
    PreviousPane,
    NextTab,
    PreviousTab,
    Fold,
    Focus,
    WidenFocus,
    NarrowFocus,
    ListOrBoxes,
    Relayout,
    NextIssue,
    PreviousIssue,
    NextFailed,
    Find,
    NextFound,
    PreviousFound,
    Filter,
    Follow,
    KeyFilter,
    EarlierStop,
    LaterStop,
    FirstStop,
    LastStop,
    TypeTime,
    Diff,
    PickVersion,
    CompareTimes,
    Check,
    KeyEvents,
    OpenSource,
    RunMenu,
    ResetMenu,
    Validate,
    Cancel,
    Edit,
    Fix,
    Maximise,
    Help,
    Palette,
    Repaint,
    Quit,
}

/// A screen of the workbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Screen {
    Graph,
    Runs,
    Data,
    /// The history of an AUTO CDC table; shown for a table, so it has no digit.
    Scd,
    Cutover,
    Log,
}

impl Screen {
    /// All, in the order of the first line.
    pub const ALL: [Screen; 6] = [Screen::Graph, Screen::Runs, Screen::Data, Screen::Scd, Screen::Cutover, Screen::Log];

    /// The name in titles.
    pub fn title(self) -> &'static str {
        match self {
            Screen::Graph => "Graph",
            Screen::Runs => "Runs",
            Screen::Data => "Data",
            Screen::Scd => "SCD",
            Screen::Cutover => "Cutover",
            Screen::Log => "Log",
        }
    }

    /// The key that shows it.
    pub fn key(self) -> char {
        match self {
            Screen::Graph => '1',
            Screen::Runs => '2',
            Screen::Data => '3',
            Screen::Scd => 'i',
            Screen::Cutover => '4',
            Screen::Log => '5',
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub action: Action,
    /// One word for hint bars; its key is shown before it.
    pub hint: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Key presses as [`Key::parse`] names them; a blank parts the keys of a sequence.
    pub keys: &'static [&'static str],
    /// Where it does something; empty: everywhere.
    pub screens: &'static [Screen],
    /// The command line that does the same, where there is one.
    pub twin: Option<&'static str>,
}

const EVERYWHERE: &[Screen] = &[];
const GRAPH: &[Screen] = &[Screen::Graph];
const SCD: &[Screen] = &[Screen::Scd];

const fn row(action: Action, keys: &'static [&'static str], hint: &'static str, doc: &'static str) -> Row {
    Row { action, hint, doc, keys, screens: EVERYWHERE, twin: None }
}

const fn on(screens: &'static [Screen], row: Row) -> Row {
    Row { screens, ..row }
}

const fn twin(command: &'static str, row: Row) -> Row {
    Row { twin: Some(command), ..row }
}

/// Everything there is to do, in the order of help and palette.
pub const ACTIONS: &[Row] = &[
    twin(
        "flowbench run",
        row(Action::RunMenu, &["r"], "run", "Starts an update: choose what, and see what it will do before it runs"),
    ),
    twin(
        "flowbench reset",
        row(
            Action::ResetMenu,
            &["x"],
            "reset",
            "Resets checkpoints, full refreshes, drops: shows first what is kept, dropped and read again",
        ),
    ),
    twin(
        "flowbench validate",
        row(Action::Validate, &["v"], "validate", "Reads the files again and checks them against their sources"),
    ),
    row(
        Action::Cancel,
        &["Ctrl-c"],
        "stop",
        "Stops the update at the next batch boundary; without one, pressed twice, quits",
    ),
    twin(
        "flowbench scd history",
        row(Action::Inspect, &["i"], "inspect", "Shows the keys of an AUTO CDC table and the versions of each"),
    ),
    row(Action::Edit, &["e"], "edit", "Opens $VISUAL or $EDITOR at the place of what is chosen"),
    on(
        GRAPH,
        twin(
            "flowbench validate --fix",
            row(
                Action::Fix,
                &["a"],
                "apply fix",
                "Shows the edit that the finding under the cursor offers, and applies it",
            ),
        ),
    ),
    row(Action::Enter, &["Enter"], "open", "Opens what is chosen: a dataset's rows, a finding's place, a record"),
    row(Action::Back, &["Esc"], "back", "Closes a popup, ends a search, a focus or a filter"),
    row(Action::NextPane, &["Tab"], "pane", "Gives the keys to the next pane"),
    row(Action::PreviousPane, &["Shift-Tab"], "pane", "Gives the keys to the pane before"),
    on(GRAPH, row(Action::NextTab, &["."], "tab", "Shows the next tab: Issues, Preview, Schema, Flows")),
    on(GRAPH, row(Action::PreviousTab, &[","], "tab", "Shows the tab before")),
    row(Action::Maximise, &["z"], "zoom", "Gives the whole screen to the pane that has the keys, and back"),
    row(Action::Up, &["k", "Up"], "up", "Moves up"),
    row(Action::Down, &["j", "Down"], "down", "Moves down"),
    row(Action::Left, &["h", "Left"], "left", "Moves left: along an edge upstream, to the column before"),
    row(Action::Right, &["l", "Right"], "right", "Moves right: along an edge downstream, to the next column"),
    row(Action::PageUp, &["PageUp", "Ctrl-u"], "page up", "Moves up a page"),
    row(Action::PageDown, &["PageDown", "Ctrl-d"], "page down", "Moves down a page"),
    row(Action::Top, &["g g", "Home"], "top", "Moves to the first"),
    row(Action::Bottom, &["G", "End"], "bottom", "Moves to the last"),
    on(
        GRAPH,
        row(
            Action::Fold,
            &["Space"],
            "fold",
            "Folds or unfolds the schema under the cursor, in the explorer and in the graph",
        ),
    ),
    on(GRAPH, row(Action::Focus, &["F"], "focus", "Draws only what is near the chosen dataset; again: all")),
    on(GRAPH, row(Action::WidenFocus, &["+"], "wider", "Draws one step more of what is near")),
    on(GRAPH, row(Action::NarrowFocus, &["-"], "nearer", "Draws one step less of what is near")),
    on(GRAPH, row(Action::ListOrBoxes, &["L"], "list", "Draws the graph as a list, or as boxes and lines")),
    on(GRAPH, row(Action::Relayout, &["="], "tidy", "Lays the graph out anew, without regard to where things were")),
    row(Action::NextIssue, &["] d"], "next issue", "Goes to the next finding of the validation"),
    row(Action::PreviousIssue, &["[ d"], "issue before", "Goes to the finding before"),
    row(Action::NextFailed, &["] e"], "next failed", "Goes to the next dataset whose flow failed"),
    row(Action::Find, &["/"], "find", "Finds a dataset, a flow or a file by a part of its name; on the log, a word"),
    row(Action::NextFound, &["n"], "next", "Goes to the next one found"),
    row(Action::PreviousFound, &["N"], "before", "Goes to the one found before"),
    on(
        &[Screen::Log],
        twin(
            "flowbench events",
            row(Action::Filter, &["f"], "level", "Shows all events, warnings and errors, or errors only"),
        ),
    ),
    on(
        &[Screen::Log],
        twin(
            "flowbench events --follow",
            row(Action::Follow, &["w"], "follow", "Follows the newest event, or stays where it is"),
        ),
    ),
    on(
        SCD,
        twin(
            "flowbench scd keys",
            row(
                Action::KeyFilter,
                &["f"],
                "filter",
                "Lists all keys, or those with gaps, with a delete at last, with late events, with a tie",
            ),
        ),
    ),
    on(SCD, row(Action::EarlierStop, &[","], "earlier", "Moves the time to where a version began or ended before")),
    on(SCD, row(Action::LaterStop, &["."], "later", "Moves the time to where a version begins or ends next")),
    on(SCD, row(Action::FirstStop, &["<"], "cutover", "Moves the time to the first live event, else to the first")),
    on(SCD, row(Action::LastStop, &[">"], "newest", "Moves the time to the newest event")),
    on(
        SCD,
        twin(
            "flowbench scd as-of",
            row(Action::TypeTime, &["@"], "time", "Shows the table as it is at a sequence that you type"),
        ),
    ),
    on(SCD, row(Action::Diff, &["d"], "diff", "Shows what changed from the version before, or from the picked one")),
    on(
        SCD,
        row(Action::PickVersion, &["D"], "pick", "Picks the version that the next ones are compared with, and back"),
    ),
    on(
        SCD,
        twin(
            "flowbench scd diff",
            row(Action::CompareTimes, &["="], "times", "Compares the table at two times: press it at each"),
        ),
    ),
    on(
        SCD,
        twin(
            "flowbench scd check",
            row(Action::Check, &["c"], "check", "Checks the whole table: overlaps, open rows, rows against events"),
        ),
    ),
    on(SCD, row(Action::KeyEvents, &["g e"], "events", "Shows the events of the key, and what each did")),
    on(SCD, row(Action::OpenSource, &["o"], "source", "Opens the source file at the event's record")),
    twin(
        "flowbench graph",
        row(Action::ShowGraph, &["1"], "Graph", "Shows the graph, what is wrong, and the rows of what is chosen"),
    ),
    twin(
        "flowbench status",
        row(
            Action::ShowRuns,
            &["2"],
            "Runs",
            "Shows the flows of the update: states, rows, backlog, what failed and why",
        ),
    ),
    twin("flowbench show", row(Action::ShowData, &["3"], "Data", "Shows the rows of the chosen dataset")),
    twin(
        "flowbench cutover check",
        row(
            Action::ShowCutover,
            &["4"],
            "Cutover",
            "Shows for every key of an AUTO CDC table whether its live feed takes over where its seed ends",
        ),
    ),
    twin("flowbench events", row(Action::ShowLog, &["5"], "Log", "Shows the event log")),
    twin("flowbench --help", row(Action::Help, &["?", "F1"], "help", "Lists the keys; typing filters, Enter does it")),
    row(Action::Palette, &[":", "Ctrl-p"], "palette", "Finds everything by name: what to do, datasets, flows, files"),
    row(Action::Repaint, &["Ctrl-l"], "repaint", "Draws the whole screen again"),
    row(Action::Quit, &["q"], "quit", "Closes the workbench; asks if an update runs"),
];

/// The row of an action.
pub fn row_of(action: Action) -> &'static Row {
    ACTIONS.iter().find(|row| row.action == action).expect("a test sees that every action has a row")
}

/// What keys mean on a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Action(Action),
    /// The first key of a sequence.
    Begun,
    /// It does something, but on these screens.
    Elsewhere(&'static [Screen], Action),
    Nothing,
}

/// What `key` means on `screen`, after the first key of a sequence if one was pressed.
pub fn meaning(before: Option<Key>, key: Key, screen: Screen) -> Meaning {
    let mut elsewhere = None;
    let mut is_begun = false;
    for row in ACTIONS {
        for keys in row.keys {
            let keys: Vec<Option<Key>> = keys.split(' ').map(Key::parse).collect();
            let is_here = row.screens.is_empty() || row.screens.contains(&screen);
            let is_whole = match (before, &keys[..]) {
                (None, [only]) => *only == Some(key),
                (Some(first), [begin, end]) => *begin == Some(first) && *end == Some(key),
                (None, [begin, _]) => {
                    is_begun |= *begin == Some(key);
                    false
                }
                _ => false,
            };
            match (is_whole, is_here) {
                (true, true) => return Meaning::Action(row.action),
                (true, false) => elsewhere = elsewhere.or(Some((row.screens, row.action))),
                (false, _) => {}
            }
        }
    }
    match (is_begun, elsewhere) {
        (true, _) => Meaning::Begun,
        (false, Some((screens, action))) => Meaning::Elsewhere(screens, action),
        (false, None) => Meaning::Nothing,
    }
}

/// The sequences that begin with `first` on `screen`: their second keys and what they do.
pub fn continuations(first: Key, screen: Screen) -> Vec<(Key, &'static Row)> {
    let mut found = Vec::new();
    for row in ACTIONS.iter().filter(|row| row.screens.is_empty() || row.screens.contains(&screen)) {
        for keys in row.keys {
            if let Some((begin, end)) = keys.split_once(' ')
                && Key::parse(begin) == Some(first)
                && let Some(end) = Key::parse(end)
            {
                found.push((end, row));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn every_key_parses_and_means_one_thing_on_a_screen() {
        for screen in Screen::ALL {
            let mut seen: BTreeMap<&str, Action> = BTreeMap::new();
            for row in ACTIONS.iter().filter(|row| row.screens.is_empty() || row.screens.contains(&screen)) {
                for keys in row.keys {
                    assert!(keys.split(' ').all(|key| Key::parse(key).is_some()), "{keys}");
                    let before = seen.insert(keys, row.action);
                    assert_eq!(before, None, "`{keys}` on {}", screen.title());
                }
            }
            // The first key of a sequence does nothing by itself.
            let firsts: BTreeSet<&str> = seen.keys().filter_map(|keys| keys.split_once(' ')).map(|(a, _)| a).collect();
            assert!(firsts.iter().all(|first| !seen.contains_key(first)), "{firsts:?}");
        }
    }

    #[test]
    fn every_action_has_one_row_with_a_key_and_a_sentence() {
        let actions: BTreeSet<Action> = ACTIONS.iter().map(|row| row.action).collect();
        assert_eq!(actions.len(), ACTIONS.len());
        // The last one of the enum: a new action without a row is found by its number.
        assert_eq!(ACTIONS.len(), Action::Quit as usize + 1);
        for row in ACTIONS {
            assert!(!row.keys.is_empty() && !row.hint.is_empty() && row.doc.len() > 5, "{:?}", row.action);
        }
    }

    #[test]
    fn sequences_and_single_keys_are_told_apart() {
        let key = |name: &str| Key::parse(name).unwrap();
        assert_eq!(meaning(None, key("]"), Screen::Graph), Meaning::Begun);
        assert_eq!(meaning(Some(key("]")), key("d"), Screen::Graph), Meaning::Action(Action::NextIssue));
        assert_eq!(meaning(Some(key("]")), key("q"), Screen::Graph), Meaning::Nothing);
        assert_eq!(meaning(None, key("f"), Screen::Log), Meaning::Action(Action::Filter));
        assert_eq!(meaning(None, key("w"), Screen::Graph), Meaning::Elsewhere(&[Screen::Log], Action::Follow));
        assert_eq!([Screen::Graph, Screen::Scd].map(|screen| continuations(key("g"), screen).len()), [1, 2]);
    }
}
