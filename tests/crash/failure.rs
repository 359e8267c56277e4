//! Each step fails with an error instead of dying: the flow is tried again and succeeds; without retries it is
//! FAILED, what reads it is SKIPPED, and the next run goes on.

use super::kill::{after_second_run, points};
use super::{PIPELINE, Workspace, assert_same, for_each_case};

fn second_input(settings: &str) -> Workspace {
    let workspace = Workspace::of(settings, PIPELINE);
    workspace.feed_first();
    workspace.expect(0, &["run"]);
    workspace.feed_second();
    workspace
}

#[test]
fn a_step_that_fails_once_is_retried_in_the_same_update() {
    let expected = after_second_run();
    let mut cases = points(&[("live", 2), ("silver", 1), ("gold", 1), ("wide", 1)]);
    cases.push("schema-stored@wide".to_string());
    for_each_case("failed once and retried", &cases, Clone::clone, |point| {
        let workspace = second_input("");
        let said = workspace.expect_at(&format!("{point}=error"), 0, &["run"]);
        assert!(said.contains("is tried again"), "{said}");
        assert_same(&workspace.tables(), &expected, &said);
        workspace.check_settled();
    });
}

#[test]
fn a_step_that_fails_for_good_fails_its_flow_and_the_next_run_goes_on() {
    let expected = after_second_run();
    let mut cases = points(&[("live", 2), ("silver", 1), ("gold", 1), ("wide", 1)]);
    cases.push("schema-stored@wide".to_string());
    for_each_case("failed for good", &cases, Clone::clone, |point| {
        let workspace = second_input("[limits]\nretries = 0\n");
        let said = workspace.expect_at(&format!("{point}=error"), 1, &["run"]);
        let name = point.split(['@', ':']).next().unwrap();
        assert!(said.contains(&format!("fail point `{name}`")), "{said}");
        assert_eq!(workspace.updates()[0].1, "FAILED");
        if point.contains("@live") {
            assert!(said.contains("SKIPPED"), "{said}");
        }
        workspace.expect(0, &["run"]);
        assert_same(&workspace.tables(), &expected, &said);
        workspace.check_settled();
    });
}

#[test]
fn maintenance_that_fails_spoils_nothing() {
    let workspace = second_input("");
    let said = workspace.expect_at("maintenance=error", 0, &["run"]);
    assert!(said.contains("fail point `maintenance`"), "{said}");
    assert_same(&workspace.tables(), &after_second_run(), "");
}
