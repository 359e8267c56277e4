//! Any split of the input into runs and batches gives one table; so do runs that are stopped in between and
//! tables that are built anew.

use std::path::Path;

use engine::{Engine, Stop};
use pipeline::event::{Details, Event, State};
use pipeline::plan::UpdateRequest;
use proptest::prelude::*;

use super::{InputFile, cases, input_files, oracle, tables, workspace};

/// What happens after some files have arrived.
#[derive(Debug, Clone)]
enum Step {
    Run,
    /// A run that is asked to stop when it has committed so many batches.
    StopAfter(usize),
    FullRefresh,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![3 => Just(Step::Run), 2 => (0..4_usize).prop_map(Step::StopAfter), 1 => Just(Step::FullRefresh)]
}

/// Options that decide how the input is cut into batches.
fn options() -> impl Strategy<Value = String> {
    (1..5_usize, proptest::option::weighted(0.3, 1..200_u64)).prop_map(|(files, bytes)| match bytes {
        Some(bytes) => format!("maxFilesPerTrigger => {files}, maxBytesPerTrigger => '{bytes}b'"),
        None => format!("maxFilesPerTrigger => {files}"),
    })
}

async fn run(folder: &Path, step: &Step) {
    let engine = Engine::open(folder, &[]).unwrap();
    let (sink, mut events) = tokio::sync::mpsc::unbounded_channel::<Event>();
    let stop = Stop::new();
    let request = UpdateRequest {
        full_refresh_all: matches!(step, Step::FullRefresh),
        is_confirmed: true,
        ..UpdateRequest::default()
    };
    let watched = stop.clone();
    let limit = match step {
        Step::StopAfter(batches) => *batches,
        Step::Run | Step::FullRefresh => usize::MAX,
    };
    if limit == 0 {
        stop.request();
    }
    let watch = async move {
        let mut batches = 0;
        while let Some(event) = events.recv().await {
            batches += usize::from(matches!(event.details, Details::BatchProgress { .. }));
            if batches >= limit {
                watched.request();
            }
        }
    };
    let (report, ()) = tokio::join!(engine.run(request, sink, stop), watch);
    match report {
        Ok(report) if limit == usize::MAX => assert_eq!(report.state, State::Completed, "{report:?}"),
        Ok(report) => assert!(matches!(report.state, State::Completed | State::Canceled), "{report:?}"),
        Err(error) if error.code() == "canceled" => {}
        // The first files hold no row, so that there is no column to build from.
        Err(error) => assert_eq!(error.code(), "source-empty", "{error}"),
    }
}

fn check(files: &[InputFile], arrivals: &[(usize, Step)], options: &str) {
    let folder = tempfile::tempdir().unwrap();
    workspace(folder.path(), options);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut waiting = files.iter();
        for (count, step) in arrivals {
            waiting.by_ref().take(*count).for_each(|file| file.write(&folder.path().join("data")));
            run(folder.path(), step).await;
        }
        waiting.for_each(|file| file.write(&folder.path().join("data")));
        run(folder.path(), &Step::Run).await;
        assert_eq!(tables(folder.path()).await, oracle(files));
        // Nothing is left to do.
        run(folder.path(), &Step::Run).await;
        assert_eq!(tables(folder.path()).await, oracle(files));
    });
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn any_split_into_runs_and_batches_gives_the_same_tables(
        files in input_files(1..=10),
        arrivals in proptest::collection::vec((0..5_usize, step()), 0..5),
        options in options(),
    ) {
        check(&files, &arrivals, &options);
    }
}
