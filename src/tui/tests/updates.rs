//! Updates that end otherwise than their events tell: the process was killed, the record came first, nothing ran.

use pipeline::answer::Answer;
use pipeline::event::{Details, FlowMetrics, Level, State};
use pipeline::plan::UpdateRequest;
use pipeline::report::{FlowOutcome, UpdateSummary};

use super::scene::{START_US, Scene, complete, files};
use crate::app::Node;

/// An update of another process, half way.
fn elsewhere() -> Scene {
    let mut scene = Scene::opened(120, 36);
    let request = UpdateRequest::default();
    scene.happened(Level::Info, None, "update 1: refresh all", Details::CreateUpdate { request });
    scene.happened(Level::Info, None, "running flows", Details::UpdateProgress { state: State::Running });
    scene.flow("events", "events", State::Running, 10);
    scene.flow("orders", "orders", State::Queued, 0);
    scene
}

/// What state.db says of update 1.
fn on_record(scene: &mut Scene, state: State, flows: &[(&str, State)]) {
    let mut status = complete();
    let outcome = |(flow, state): &(&str, State)| FlowOutcome {
        flow: (*flow).to_string(),
        dataset: (*flow).to_string(),
        state: *state,
        metrics: FlowMetrics::default(),
        error: None,
    };
    status.update = Some(UpdateSummary {
        number: 1,
        state,
        cause: "USER_ACTION".to_string(),
        request: "refresh all".to_string(),
        started_us: START_US,
        ended_us: Some(START_US + 4_000_000),
        flows: flows.iter().map(outcome).collect(),
        rows_out: 0,
        error: None,
    });
    scene.tell(Answer::Status(Box::new(status)));
}

#[test]
fn flows_of_a_killed_process_do_not_run_for_ever() {
    let mut scene = elsewhere();
    on_record(&mut scene, State::Failed, &[("events", State::Failed), ("orders", State::Skipped)]);
    assert!(!scene.app.known.is_running());
    assert_eq!(scene.app.known.flow_state("events"), State::Failed);
    assert_eq!(scene.app.known.flow_state("orders"), State::Skipped);
    let time = |scene: &Scene| scene.app.known.update.as_ref().unwrap().flows["events"].duration_ms(scene.app.now_us);
    let before = time(&scene);
    scene.later(30);
    assert_eq!(time(&scene), before);
    let screen = scene.screen();
    assert!(!screen.contains('▶') && screen.contains("FAILED"), "{screen}");
}

#[test]
fn the_record_may_come_before_the_last_events() {
    let mut scene = elsewhere();
    on_record(&mut scene, State::Completed, &[("events", State::Completed), ("orders", State::Completed)]);
    assert_eq!(scene.app.known.flow_state("orders"), State::Completed);
    scene.flow("orders", "orders", State::Completed, 7);
    assert_eq!(scene.app.known.flow_state("orders"), State::Completed);
    assert_eq!(scene.app.known.update.as_ref().unwrap().flows["orders"].metrics.rows_out, 7);
}

#[test]
fn an_update_that_failed_before_its_flows_ran_shows_none_as_completed() {
    let mut scene = Scene::after_an_update(120, 36);
    scene.app.known.update = Some(crate::app::update::Update::seen(2, START_US + 60_000_000));
    scene.app.known.update.as_mut().unwrap().ended(State::Failed, START_US + 61_000_000);
    scene.press("2");
    let screen = scene.screen();
    let table = screen.split("Event log").next().unwrap();
    assert!(!table.contains("COMPLETED") && table.contains("IDLE"), "{screen}");
}

#[test]
fn a_flow_that_has_ended_adds_nothing_to_the_rate() {
    let mut scene = Scene::opened(120, 36);
    scene.run_half_way();
    let screen = scene.screen();
    // `events` runs at 2.7k a second; the backfill that is over wrote 71,000 rows in one.
    assert!(screen.lines().next().unwrap().contains("2.7k rows/s"), "{screen}");
}

#[test]
fn datasets_of_the_last_good_files_are_not_inactive() {
    let mut scene = Scene::after_an_update(120, 36);
    let mut status = complete();
    status.datasets.iter_mut().for_each(|dataset| dataset.is_active = false);
    // All but the settings are gone, and those are broken.
    let mut settings = vec![files().remove(0)];
    settings[0].text.push_str("[pipeline\n");
    scene.save(&settings);
    scene.tell(Answer::Status(Box::new(status)));
    let rows = scene.app.explorer_rows();
    let orders = rows.iter().filter(|row| row.node == Some(Node::Dataset("orders".to_string())));
    assert_eq!(orders.count(), 1);
}
