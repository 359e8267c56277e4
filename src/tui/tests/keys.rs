//! Any keys, any size: no panic, every popup can be left, nothing is written without a yes.

use pipeline::answer::{Answer, Problem};
use pipeline::command::Command;
use proptest::prelude::*;

use super::scene::{Scene, broken_files, files};
use crate::action::ACTIONS;
use crate::app::{Effect, Input};
use crate::key::{Code, Key, Mouse, MouseKind};

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    Key(Key),
    Mouse(MouseKind, u16, u16),
    Paste(String),
    Resize(u16, u16),
    Break,
    Mend,
    Run,
    Fail,
    Rows(usize),
    /// The engine answers what is asked of AUTO CDC tables.
    Inspect,
    /// The engine answers the newest question with a problem.
    Refuse,
}

fn keys() -> impl Strategy<Value = Key> {
    let known: Vec<Key> =
        ACTIONS.iter().flat_map(|row| row.keys).flat_map(|keys| keys.split(' ')).filter_map(Key::parse).collect();
    prop_oneof![
        6 => proptest::sample::select(known),
        1 => proptest::char::range(' ', '~').prop_map(|c| Key::plain(Code::Char(c))),
        1 => any::<char>().prop_map(|c| Key::plain(Code::Char(c))),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => keys().prop_map(Step::Key),
        4 => (0..130u16, 0..40u16, 0..3usize).prop_map(|(x, y, kind)| {
            Step::Mouse([MouseKind::Click, MouseKind::WheelUp, MouseKind::WheelDown][kind], x, y)
        }),
        1 => ".*".prop_map(Step::Paste),
        2 => (1..300u16, 1..100u16).prop_map(|(width, height)| Step::Resize(width, height)),
        1 => Just(Step::Break),
        1 => Just(Step::Mend),
        1 => Just(Step::Run),
        1 => Just(Step::Fail),
        2 => (0..400usize).prop_map(Step::Rows),
        1 => Just(Step::Refuse),
        6 => Just(Step::Inspect),
    ]
}

fn take(scene: &mut Scene, step: Step) {
    match step {
        Step::Key(key) => scene.input(Input::Key(key)),
        Step::Mouse(kind, column, row) => scene.input(Input::Mouse(Mouse { kind, column, row })),
        Step::Paste(text) => scene.input(Input::Paste(text)),
        Step::Resize(width, height) => scene.input(Input::Resize(width, height)),
        Step::Break => scene.save(&broken_files()),
        Step::Mend => scene.save(&files()),
        Step::Run => scene.run_half_way(),
        Step::Fail => scene.run_into_a_failure(),
        Step::Rows(count) => {
            let dataset =
                match scene.asked.iter().rev().find(|effect| matches!(effect, Effect::Ask(Command::Rows { .. }))) {
                    Some(Effect::Ask(Command::Rows { dataset, .. })) => dataset.clone(),
                    _ => "orders".to_string(),
                };
            scene.rows(&dataset, count);
        }
        Step::Inspect => drop(scene.inspect()),
        Step::Refuse => {
            let problem = Problem {
                code: "no".to_string(),
                message: "it can't be done".to_string(),
                help: Some("do something else".to_string()),
                unconfirmed: Vec::new(),
            };
            let answer = match scene.asked.last() {
                Some(Effect::Ask(Command::PlanUpdate { request })) => {
                    Answer::UpdatePlan { request: request.clone(), plan: Err(problem) }
                }
                Some(Effect::Ask(Command::PlanReset { flows })) => {
                    Answer::Reset { flows: flows.clone(), report: Err(problem) }
                }
                Some(Effect::Ask(Command::Rows { dataset, from, .. })) => {
                    Answer::Rows { dataset: dataset.clone(), from: *from, rows: Err(problem) }
                }
                Some(Effect::Ask(Command::Inspect { question })) => {
                    Answer::Inspected { question: question.clone(), report: Err(problem) }
                }
                _ => return,
            };
            scene.tell(answer);
        }
    }
}

/// True for commands that drop rows or checkpoints, or may repeat rows.
fn is_destructive(effect: &Effect) -> bool {
    match effect {
        Effect::Ask(Command::StartUpdate { request }) => {
            request.is_confirmed
                || !request.full_refresh.is_empty()
                || request.full_refresh_all
                || !request.rerun_once.is_empty()
        }
        Effect::Ask(Command::ResetFlows { .. } | Command::Fix { .. } | Command::Drop { .. }) => true,
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_keys_at_any_size_never_panic_and_every_popup_can_be_left(
        steps in proptest::collection::vec(steps(), 1..60),
        draws in any::<u64>(),
    ) {
        let mut scene = Scene::after_an_update(120, 36);
        for (n, step) in steps.into_iter().enumerate() {
            let size_before = scene.app.size;
            take(&mut scene, step);
            // Not after each step: keys may come faster than drawings.
            if draws >> (n % 64) & 1 == 1 || size_before != scene.app.size {
                scene.screen();
            }
        }
        for _ in 0..20 {
            scene.press("Esc");
        }
        prop_assert!(scene.app.popups.is_empty());
        prop_assert!(!scene.app.search.is_typing);
        scene.press("1");
        scene.screen();
    }

    /// The same from a view of an AUTO CDC table.
    #[test]
    fn any_keys_in_the_views_never_panic_and_each_can_be_left(
        steps in proptest::collection::vec(prop_oneof![3 => steps(), 1 => Just(Step::Inspect)], 1..60),
        draws in any::<u64>(),
        view in 0..2usize,
        sizes in 0..2usize,
    ) {
        let (width, height) = [(120, 36), (80, 24)][sizes];
        let mut scene = super::scd::begin(width, height);
        scene.press(["i", "4"][view]).inspect();
        for (n, step) in steps.into_iter().enumerate() {
            let step = match step {
                Step::Mend | Step::Break => Step::Inspect,
                step => step,
            };
            take(&mut scene, step);
            if draws >> (n % 64) & 1 == 1 {
                scene.screen();
            }
        }
        for _ in 0..20 {
            scene.press("Esc");
        }
        prop_assert!(scene.app.popups.is_empty());
        let is_left = scene.app.screen == crate::action::Screen::Graph;
        prop_assert!(is_left, "{:?} {:?}", scene.app.screen, scene.app.pane);
        scene.screen();
    }

    /// Without `y`, and without a name typed into the question, nothing is dropped or repeated, whatever else is
    /// pressed (UX-F1).
    #[test]
    fn nothing_is_dropped_or_repeated_without_a_yes(steps in proptest::collection::vec(steps(), 1..80)) {
        let mut scene = Scene::after_an_update(120, 36);
        for step in steps {
            let step = match step {
                Step::Key(Key { code: Code::Char('y'), .. }) | Step::Paste(_) => continue,
                step => step,
            };
            take(&mut scene, step);
        }
        let done: Vec<&Effect> = scene.asked.iter().filter(|effect| is_destructive(effect)).collect();
        prop_assert!(done.is_empty(), "{:?}", done);
    }

    #[test]
    fn every_size_can_be_drawn(width in 1..300u16, height in 1..100u16, keys in 0..12usize) {
        let mut scene = Scene::after_an_update(width, height);
        let keys = ["1", "2", "3", "5", "r", "x", "?", ":", "x A", "L", "F", "z"][keys];
        scene.press(keys);
        scene.screen();
    }
}

/// Found by the property above when Enter was a yes.
#[test]
fn the_edit_of_a_finding_is_written_with_y_and_with_nothing_else() {
    let is_written = |keys: &str| {
        let mut scene = Scene::after_an_update(120, 36);
        scene.save(&broken_files());
        scene.press("] d a").press(keys);
        scene.asked.iter().any(is_destructive)
    };
    for keys in ["Enter", "n", "Esc y", "a a", "q y"] {
        assert!(!is_written(keys), "{keys}");
    }
    assert!(is_written("y"));
}

#[test]
fn every_key_of_the_table_does_something_or_says_why_not() {
    for row in ACTIONS {
        for keys in row.keys {
            let mut scene = Scene::after_an_update(120, 36);
            scene.screen();
            let before = (scene.screen(), scene.asked.len(), scene.app.pane);
            scene.press(keys);
            let after = (scene.screen(), scene.asked.len(), scene.app.pane);
            let is_silent = matches!(
                row.action,
                // At the edge already, or nothing to close.
                crate::action::Action::Back
                    | crate::action::Action::ShowGraph
                    | crate::action::Action::Up
                    | crate::action::Action::PageUp
                    | crate::action::Action::Top
                    | crate::action::Action::Left
                    | crate::action::Action::Right
                    | crate::action::Action::Down
                    | crate::action::Action::PageDown
                    | crate::action::Action::Bottom
            );
            assert!(before != after || is_silent, "`{keys}` ({})", row.hint);
        }
    }
}

#[test]
fn the_cursor_moves_through_the_graph_the_list_and_the_explorer_alike() {
    use crate::app::Node;
    let chosen = |scene: &Scene| match &scene.app.chosen {
        Some(Node::Dataset(name) | Node::Flow(name) | Node::Source(name) | Node::Schema(name) | Node::File(name)) => {
            name.clone()
        }
        None => String::new(),
    };
    // The graph: along the edges and back the way one came.
    let mut scene = Scene::after_an_update(120, 36);
    scene.press("/").write("orders_raw").press("Enter");
    let mut seen = Vec::new();
    for key in ["l", "l", "j", "k", "h", "h", "h", "h"] {
        scene.press(key);
        seen.push(chosen(&scene));
    }
    assert_eq!(
        seen,
        [
            "orders",
            "orders_daily",
            "revenue",
            "orders_daily",
            "orders",
            "orders_raw",
            "orders_live",
            "/data/orders/*/*"
        ]
    );
    // The explorer and the list: down their rows.
    for (keys, size) in [("Shift-Tab", (120, 36)), ("", (80, 24))] {
        let mut scene = Scene::after_an_update(size.0, size.1);
        scene.screen();
        scene.press(keys).press("g g j");
        assert_eq!(chosen(&scene), "events", "{size:?}");
        scene.press("j");
        assert_eq!(chosen(&scene), "orders_raw", "{size:?}");
        scene.press("k k");
        assert_eq!(chosen(&scene), "default", "{size:?}");
    }
}
