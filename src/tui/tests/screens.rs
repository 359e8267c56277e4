//! Each state of the screen as text, at 80×24 and 120×36. The expectations lie in tests/screens and are written
//! with `INSTA_UPDATE=always`.

use std::sync::Arc;

use pipeline::answer::{Answer, Problem};
use pipeline::diagnostic::Diagnostic;
use pipeline::plan::{Notice, UpdateRequest};
use pipeline::report::{FlowBacklog, FlowReset, PlanReport, ResetReport};

use super::scene::{Scene, broken_files, files, large};

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 36)];

/// Compares the screen of a scene at each size.
pub fn see(name: &str, begin: fn(u16, u16) -> Scene, act: impl Fn(&mut Scene)) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../tests/screens");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (width, height) in SIZES {
            let mut scene = begin(width, height);
            // As on a real screen: drawn once before the first key.
            scene.screen();
            act(&mut scene);
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), scene.screen());
        }
    });
}

#[test]
fn first_frame_from_the_names_of_the_files() {
    see("first_frame", Scene::new, |scene| {
        let paths = files().into_iter().map(|file| file.path).collect();
        scene.tell(Answer::Files { paths });
    });
}

#[test]
fn a_valid_pipeline_that_never_ran() {
    see("never_run", Scene::opened, |_| {});
}

#[test]
fn an_update_half_way() {
    see("running", Scene::opened, |scene| scene.run_half_way());
    see("runs_running", Scene::opened, |scene| {
        scene.run_half_way();
        scene.press("2 j");
    });
}

#[test]
fn an_update_that_completed() {
    see("completed", Scene::after_an_update, |_| {});
    see("log", Scene::after_an_update, |scene| {
        scene.press("5");
    });
}

#[test]
fn the_lines_of_a_fix_stay_lines_and_other_texts_have_one() {
    let mut scene = Scene::after_an_update(120, 36);
    let mut verdict = scene.app.known.verdict.clone().unwrap();
    verdict.revision += 1;
    let found = Diagnostic::warning("legacy-rows-stay-open", None, "rows stay\nopen").reason("no event\nends them");
    verdict.diagnostics = Arc::new(vec![found.help("a view that the flow reads:\nCREATE VIEW v AS\nSELECT 1")]);
    scene.tell(Answer::Verdict(verdict));
    let screen = scene.screen();
    for text in ["rows stay open ", "no event ends them ", "→ a view that the flow reads: ", "  CREATE VIEW v AS "] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
}

#[test]
fn a_log_without_an_event_of_its_filter_says_so() {
    let mut scene = Scene::after_an_update(120, 36);
    scene.press("5 f f");
    let screen = scene.screen();
    assert!(screen.contains("no event is an error; f shows all events") && !screen.contains("nothing has"), "{screen}");
    scene.press("f");
    assert!(!scene.screen().contains("no event"));
}

#[test]
fn an_update_that_failed() {
    see("failed", Scene::opened, |scene| {
        scene.run_into_a_failure();
        scene.press("] e");
    });
    see("runs_failed", Scene::opened, |scene| {
        scene.run_into_a_failure();
        scene.press("2");
    });
    see("log_errors", Scene::opened, |scene| {
        scene.run_into_a_failure();
        scene.press("5 f f");
    });
    see("event", Scene::opened, |scene| {
        scene.run_into_a_failure();
        scene.press("5 f f Enter");
    });
}

#[test]
fn a_broken_file_leaves_the_last_good_graph() {
    see("broken", Scene::after_an_update, |scene| scene.save(&broken_files()));
    see("broken_issue", Scene::after_an_update, |scene| {
        scene.save(&broken_files());
        scene.press("] d");
    });
    see("fix", Scene::after_an_update, |scene| {
        scene.save(&broken_files());
        scene.press("] d a");
    });
    see("mended", Scene::after_an_update, |scene| {
        scene.save(&broken_files());
        scene.save(&files());
    });
    see("broken_from_the_start", Scene::new, |scene| scene.save(&broken_files()));
}

#[test]
fn a_workspace_that_cannot_be_read() {
    see("unreadable", Scene::new, |scene| {
        scene.tell(Answer::Unreadable(Problem {
            code: "not-utf-8".to_string(),
            message: "`/w/flowbench.toml` is not UTF-8 text".to_string(),
            help: Some("save it as UTF-8".to_string()),
            unconfirmed: Vec::new(),
        }));
    });
}

#[test]
fn rows_of_a_dataset() {
    let choose = |scene: &mut Scene| {
        scene.press("/").write("orders").press("Enter Enter");
        scene.screen();
        scene.rows("orders", 60);
    };
    see("preview", Scene::after_an_update, |scene| {
        choose(scene);
        scene.press("j j j");
    });
    see("record", Scene::after_an_update, |scene| {
        choose(scene);
        scene.press("j Enter");
    });
    see("data", Scene::after_an_update, |scene| {
        choose(scene);
        scene.press("3 PageDown l");
    });
    see("preview_of_nothing", Scene::opened, |scene| {
        scene.press("/").write("orders").press("Enter Enter");
        scene.screen();
        scene.tell(Answer::Rows {
            dataset: "orders".to_string(),
            from: 0,
            rows: Err(Problem {
                code: "nothing-stored".to_string(),
                message: "nothing is stored of `orders` yet".to_string(),
                help: Some("start an update: flowbench run".to_string()),
                unconfirmed: Vec::new(),
            }),
        });
    });
}

#[test]
fn columns_and_flows_of_a_dataset() {
    see("schema", Scene::after_an_update, |scene| {
        scene.press("/").write("orders").press("Enter . .");
    });
    see("flows", Scene::after_an_update, |scene| {
        scene.press(". . . Tab");
    });
}

fn plan() -> PlanReport {
    PlanReport {
        lines: vec![
            "run           events: appends to events what is new".to_string(),
            "run           orders_live: appends to orders_raw what is new".to_string(),
            "idle          orders_backfill_2024: done; not run again".to_string(),
        ],
        changes: Vec::new(),
        backlog: vec![FlowBacklog { flow: "events".to_string(), files: 12, bytes: 18 << 20, versions: 0 }],
        notices: vec![Notice {
            code: "flow-edited",
            message: "the query of flow `orders` changed: it holds for new input, rows already in `orders` stay"
                .to_string(),
            help: "to apply it to all rows: flowbench run --full-refresh orders".to_string(),
        }],
    }
}

#[test]
fn the_run_menu_says_what_an_update_would_do() {
    see("run_menu", Scene::after_an_update, |scene| {
        scene.press("r");
        let request = UpdateRequest { is_confirmed: true, ..UpdateRequest::default() };
        scene.tell(Answer::UpdatePlan { request, plan: Ok(plan()) });
    });
    see("run_menu_invalid", Scene::after_an_update, |scene| {
        scene.save(&broken_files());
        scene.press("r");
    });
}

fn reset_report() -> ResetReport {
    ResetReport {
        flows: vec![FlowReset {
            flow: "orders_live".to_string(),
            dataset: "orders_raw".to_string(),
            rows_kept: Some(81_004),
            files_again: 31,
            bytes_again: 4 << 20,
            rows_again: 10_004,
            changes_nothing: false,
            start: None,
        }],
        is_done: false,
    }
}

#[test]
fn resets_say_what_is_kept_and_read_again() {
    see("reset_menu", Scene::after_an_update, |scene| {
        scene.press("/").write("orders_live").press("Enter x");
        scene.tell(Answer::Reset { flows: vec!["orders_live".to_string()], report: Ok(reset_report()) });
    });
    see("reset_confirm", Scene::after_an_update, |scene| {
        scene.press("/").write("orders_live").press("Enter x c");
        scene.tell(Answer::Reset { flows: vec!["orders_live".to_string()], report: Ok(reset_report()) });
        scene.write("orders_li");
    });
    see("full_refresh_confirm", Scene::after_an_update, |scene| {
        scene.press("/").write("orders_raw").press("Enter x F");
        let request = UpdateRequest {
            full_refresh: vec!["orders_raw".to_string()],
            is_confirmed: true,
            ..UpdateRequest::default()
        };
        let refusal = Problem {
            code: "refused".to_string(),
            message: "refused".to_string(),
            help: None,
            unconfirmed: vec![Notice {
                code: "streams-read-the-table",
                message: "`orders_raw` would be built anew under streams that read it: `orders`".to_string(),
                help: "add --with-downstream to build these anew too".to_string(),
            }],
        };
        scene.tell(Answer::UpdatePlan { request, plan: Err(refusal) });
    });
    see("full_refresh_all_confirm", Scene::after_an_update, |scene| {
        scene.press("x A");
    });
    see("drop_confirm", Scene::after_an_update, |scene| {
        scene.press("Tab Tab G");
        while scene.app.chosen != Some(crate::app::Node::Dataset("customers_old".to_string())) {
            scene.press("k");
        }
        scene.press("x D");
    });
}

#[test]
fn help_palette_and_search() {
    see("help", Scene::after_an_update, |scene| {
        scene.press("?");
    });
    see("help_filtered", Scene::after_an_update, |scene| {
        scene.press("?").write("batch");
    });
    see("palette", Scene::after_an_update, |scene| {
        scene.press(":").write("ord");
    });
    see("search", Scene::after_an_update, |scene| {
        scene.press("/").write("rev");
    });
    see("sequence", Scene::after_an_update, |scene| {
        scene.press("]");
    });
}

#[test]
fn leaving_while_an_update_runs_is_asked() {
    see("quit", Scene::opened, |scene| {
        scene.run_half_way();
        scene.press("q");
    });
    see("stopping", Scene::opened, |scene| {
        scene.run_half_way();
        scene.press("Ctrl-c");
    });
}

#[test]
fn a_large_pipeline_begins_folded_and_is_focused() {
    let begin = |width, height| {
        let mut scene = Scene::new(width, height);
        scene.save(&large(40));
        scene
    };
    see("large", begin, |_| {});
    see("large_focus", begin, |scene| {
        scene.press("/").write("clean_7").press("Enter F");
    });
    see("large_search", begin, |scene| {
        scene.press("/").write("daily_33").press("Enter");
    });
}

#[test]
fn boxes_in_a_small_terminal_and_a_list_in_a_large_one() {
    see("other_way", Scene::after_an_update, |scene| {
        scene.press("L");
    });
    see("maximised", Scene::after_an_update, |scene| {
        scene.press("z");
    });
}

#[test]
fn ascii_only() {
    see("ascii", Scene::after_an_update, |scene| {
        scene.app.options.theme.is_ascii = true;
        scene.save(&broken_files());
    });
    let mut scene = Scene::after_an_update(120, 36);
    scene.app.options.theme.is_ascii = true;
    for keys in ["1", "L", "L", "2", "3", "5", "1 r", "Esc x", "Esc ?", "Esc :", "Esc"] {
        scene.press(keys);
        let screen = scene.screen();
        let odd: String = screen.chars().filter(|c| !c.is_ascii() && !"…×·▏".contains(*c)).collect();
        assert_eq!(odd, "", "{screen}");
    }
}
