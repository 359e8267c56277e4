//! A pipeline with AUTO CDC tables, an engine that answers questions about them from a few keys, and the views.

use pipeline::answer::{Answer, Problem};
use pipeline::auto_cdc::ScdType;
use pipeline::command::Command;
use pipeline::event::{ChangeMetrics, Details, FlowMetrics, Level, State};
use pipeline::report::{Column, Rows};
use pipeline::scd::{
    AsOf, CheckExample, ColumnChanges, CutoverCheck, CutoverFlow, DiffRange, Effect as Did, EventKind, EventPlace,
    Evidence, FirstChange, FirstChangeCounts, Invariant, InvariantCount, KeyCounts, KeyCutover, KeyEvent, KeyFlags,
    KeyHistory, KeyPage, KeyPart, KeySummary, RowChange, RowDiff, ScdCheck, ScdDiff, ScdQuestion, ScdReport, Verdict,
    VerdictCount, Version, key_words,
};
use pipeline::text::SourceFile;

use super::scene::Scene;
use crate::action::Screen;
use crate::app::{Effect, Input, Pane};

const FILES: &str = "\
CREATE STREAMING TABLE customer_events AS SELECT * FROM STREAM read_files('/data/customers', format => 'json',
  schema => 'id BIGINT, name STRING, city STRING, tier STRING, updated_at TIMESTAMP');

CREATE STREAMING TABLE customers;

CREATE TEMPORARY VIEW legacy AS SELECT * FROM read_files('/data/legacy', format => 'json',
  schema => 'id BIGINT, name STRING, city STRING, tier STRING, updated_at TIMESTAMP');

CREATE FLOW bf_customers AS AUTO CDC ONCE INTO customers FROM legacy KEYS (id)
  SEQUENCE BY updated_at COLUMNS * EXCEPT (updated_at) STORED AS SCD TYPE 2;

CREATE FLOW customers_live AS AUTO CDC INTO customers FROM STREAM(customer_events) KEYS (id)
  SEQUENCE BY updated_at COLUMNS * EXCEPT (updated_at) STORED AS SCD TYPE 2;

CREATE STREAMING TABLE latest;

CREATE FLOW latest_live AS AUTO CDC INTO latest FROM STREAM(customer_events) KEYS (id) SEQUENCE BY updated_at;
";

pub fn files() -> Vec<SourceFile> {
    [("flowbench.toml", "[pipeline]\nname = \"shop\"\n"), ("transformations/customers.sql", FILES)]
        .map(|(path, text)| SourceFile { path: path.to_string(), text: text.to_string() })
        .to_vec()
}

/// The pipeline after an update, its table `customers` chosen.
pub fn begin(width: u16, height: u16) -> Scene {
    let mut scene = Scene::new(width, height);
    scene.save(&files());
    let diagnostics = scene.app.known.diagnostics().to_vec();
    assert!(diagnostics.iter().all(|found| !found.is_error()), "{diagnostics:?}");
    scene.choose_dataset("customers");
    scene
}

fn key(id: u64) -> Vec<KeyPart> {
    vec![KeyPart { column: "id".to_string(), value: id.to_string() }]
}

/// Events of a key: sequence, flow, operation, city, tier.
type Told = (&'static str, bool, EventKind, &'static str, &'static str);

const SEVEN: &[Told] = &[
    ("2021-03-04 09:12:00", true, EventKind::Upsert, "Natal", "std"),
    ("2022-11-20 18:00:00", true, EventKind::Upsert, "Olinda", "std"),
    ("2023-06-01 07:30:00", true, EventKind::Upsert, "Olinda", "gold"),
    ("2025-02-01 10:00:00", false, EventKind::Upsert, "Recife", "gold"),
];

const GAP: &[Told] = &[
    ("2021-05-01 00:00:00", true, EventKind::Upsert, "Lyon", "std"),
    ("2022-02-01 00:00:00", true, EventKind::Delete, "", ""),
    ("2024-01-01 00:00:00", false, EventKind::Upsert, "Lyon", "gold"),
];

const GONE: &[Told] = &[
    ("2021-05-01 00:00:00", true, EventKind::Upsert, "Pune", "std"),
    ("2022-02-01 00:00:00", false, EventKind::Delete, "", ""),
];

const ONE: &[Told] = &[("2025-01-15 00:00:00", true, EventKind::Upsert, "Dalian", "std")];

fn told(id: u64) -> &'static [Told] {
    match id % 5 {
        2 => SEVEN,
        1 => GAP,
        3 => GONE,
        _ => ONE,
    }
}

fn column(name: &str) -> Column {
    Column {
        name: name.to_string(),
        data_type: "STRING".to_string(),
        is_nullable: true,
        is_numeric: name == "id",
        comment: None,
    }
}

fn flags(id: u64) -> KeyFlags {
    let told = told(id);
    KeyFlags {
        is_deleted: told.last().is_some_and(|last| last.2 == EventKind::Delete),
        has_gaps: told == GAP,
        is_late: id == 88,
        has_tie: false,
    }
}

pub fn history(table: &str, of: &[KeyPart]) -> KeyHistory {
    let id: u64 = of[0].value.parse().unwrap();
    let mut versions: Vec<Version> = Vec::new();
    let mut events = Vec::new();
    for (at, (sequence, is_seed, kind, city, tier)) in told(id).iter().enumerate() {
        let row = vec![Some("Ana Souza".to_string()), Some((*city).to_string()), Some((*tier).to_string())];
        let is_after_gap = versions.last().is_some_and(|last| !last.is_open);
        if let Some(last) = versions.last_mut().filter(|last| last.is_open) {
            last.end = Some((*sequence).to_string());
            last.is_open = false;
        }
        if *kind == EventKind::Upsert {
            versions.push(Version {
                number: versions.len() + 1,
                start: (*sequence).to_string(),
                end: None,
                is_open: true,
                values: row.clone(),
                first_event: at,
                last_event: at,
                is_after_gap,
            });
        }
        events.push(KeyEvent {
            sequence: (*sequence).to_string(),
            kind: *kind,
            effect: if *kind == EventKind::Upsert { Did::Opens } else { Did::Deletes },
            version: Some(versions.len()),
            flow: if *is_seed { "bf_customers" } else { "customers_live" }.to_string(),
            is_seed: *is_seed,
            batch: at as u64,
            update: Some(1),
            place: EventPlace {
                source: Some(
                    if *is_seed { "/data/legacy/cust_2022.json" } else { "/data/customers/b.csv.gz" }.to_string(),
                ),
                version: None,
                file: 1,
                record: Some(800 + at as u64),
            },
            is_late: id == 88,
            values: if *kind == EventKind::Upsert { row } else { Vec::new() },
        });
    }
    let sequence = |is_seed: bool| events.iter().filter(move |event: &&KeyEvent| event.is_seed == is_seed);
    KeyHistory {
        table: table.to_string(),
        scd_type: ScdType::Two,
        key: of.to_vec(),
        columns: ["name", "city", "tier"].map(column).to_vec(),
        tracked: vec![0, 1, 2],
        sequence_type: "TIMESTAMP".to_string(),
        versions,
        keeps_all_events: true,
        flags: flags(id),
        last_seeded: sequence(true).next_back().map(|event| event.sequence.clone()),
        first_live: sequence(false).next().map(|event| event.sequence.clone()),
        events,
    }
}

fn verdict(id: u64) -> Verdict {
    match id {
        12 => Verdict::Stale,
        _ => match told(id) {
            told if told == SEVEN || told == GAP || told == GONE => Verdict::Contiguous,
            _ => Verdict::SeedOnly,
        },
    }
}

/// What an engine that has the keys 7 to 130 would say.
pub fn report(question: &ScdQuestion) -> Result<Box<ScdReport>, Problem> {
    let problem = |message: &str| Problem {
        code: "bad-value".to_string(),
        message: message.to_string(),
        help: Some("give a TIMESTAMP, as 2024-01-31 12:00:00".to_string()),
        unconfirmed: Vec::new(),
    };
    let holds =
        |search: &Option<String>, id: u64| search.as_ref().is_none_or(|part| key_words(&key(id)).contains(part));
    let from = |after: &Option<String>| after.as_ref().map_or(7, |after| after.parse::<u64>().unwrap() + 1);
    Ok(Box::new(match question {
        ScdQuestion::Keys { table, request } => {
            let fits = |id: &u64| holds(&request.search, *id) && request.only.is_none_or(|only| flags(*id).fit(only));
            let ids: Vec<u64> = (from(&request.after)..=130).filter(fits).take(request.limit).collect();
            let keys = ids.iter().map(|id| {
                let history = history(table, &key(*id));
                KeySummary {
                    key: key(*id),
                    versions: history.versions.len(),
                    events: history.events.len(),
                    newest: history.events.last().unwrap().sequence.clone(),
                    flags: history.flags,
                }
            });
            ScdReport::Keys(KeyPage {
                table: table.clone(),
                scd_type: ScdType::Two,
                key_columns: vec!["id".to_string()],
                keys: keys.collect(),
                next: ids.last().filter(|_| ids.len() == request.limit).map(u64::to_string),
            })
        }
        ScdQuestion::History { table, key } => ScdReport::History(history(table, key)),
        ScdQuestion::AsOf { table, sequence, .. } => {
            if !sequence.starts_with('2') {
                return Err(problem(&format!("`{sequence}` is no TIMESTAMP")));
            }
            let row = |id: u64| {
                let history = history(table, &key(id));
                let version = history.versions.iter().find(|version| {
                    version.start <= *sequence && version.end.as_ref().is_none_or(|end| end > sequence)
                })?;
                Some([vec![Some(id.to_string())], version.values.clone()].concat())
            };
            let rows: Vec<Vec<Option<String>>> = (7..60).filter_map(row).collect();
            ScdReport::AsOf(AsOf {
                table: table.clone(),
                sequence: sequence.clone(),
                row_count: rows.len() as u64,
                rows: Rows { columns: ["id", "name", "city", "tier"].map(column).to_vec(), rows, is_truncated: false },
            })
        }
        ScdQuestion::Diff { table, range, .. } => {
            let cells = |values: [&str; 3]| Some(values.map(|value| Some(value.to_string())).to_vec());
            ScdReport::Diff(ScdDiff {
                table: table.clone(),
                scd_type: ScdType::Two,
                range: range.clone(),
                columns: ["name", "city", "tier"].map(column).to_vec(),
                added: 1,
                removed: 0,
                changed: 1,
                by_column: vec![ColumnChanges { column: "tier".to_string(), rows: 1 }],
                rows: vec![
                    RowDiff::of(key(7), cells(["Ana Souza", "Olinda", "std"]), cells(["Ana Souza", "Olinda", "gold"]))
                        .unwrap(),
                    RowDiff {
                        key: key(16),
                        change: RowChange::Added,
                        before: None,
                        after: cells(["Ana Souza", "Lyon", "gold"]),
                        changed: Vec::new(),
                    },
                ],
                is_truncated: false,
            })
        }
        ScdQuestion::Check { table } => {
            let invariants = Invariant::of(ScdType::Two).iter().map(|invariant| InvariantCount {
                invariant: *invariant,
                violations: u64::from(*invariant == Invariant::NoOverlap),
                examples: match invariant {
                    Invariant::NoOverlap => {
                        vec![CheckExample { key: key(88), what: "2 versions hold at 2023-01-01".to_string() }]
                    }
                    _ => Vec::new(),
                },
            });
            ScdReport::Check(ScdCheck {
                table: table.clone(),
                scd_type: ScdType::Two,
                counts: KeyCounts {
                    keys: 84_015,
                    rows: 120_004,
                    open_rows: 83_900,
                    events: 180_321,
                    deleted: 115,
                    with_gaps: 4,
                    late: 12,
                    ties: 0,
                },
                invariants: invariants.collect(),
            })
        }
        ScdQuestion::Cutover { table, request } => {
            let row = |id: u64| {
                let history = history(table, &key(id));
                KeyCutover {
                    key: key(id),
                    verdict: verdict(id),
                    last_seeded: history.last_seeded,
                    first_change: history.first_live.as_ref().map(|_| FirstChange::OneVersion),
                    first_live: history.first_live,
                }
            };
            let fits =
                |id: &u64| holds(&request.search, *id) && request.verdict.is_none_or(|only| verdict(*id) == only);
            let ids: Vec<u64> = (from(&request.after)..=130).filter(fits).take(request.limit).collect();
            let verdicts = Verdict::ALL.into_iter().map(|of| {
                let keys: Vec<u64> = (7..=130).filter(|id| verdict(*id) == of).collect();
                VerdictCount {
                    verdict: of,
                    keys: keys.len() as u64,
                    examples: keys.into_iter().take(1).map(row).collect(),
                }
            });
            ScdReport::Cutover(CutoverCheck {
                target: table.clone(),
                scd_type: ScdType::Two,
                sequence_type: "TIMESTAMP".to_string(),
                seed_flows: vec![CutoverFlow { name: "bf_customers".to_string(), evidence: Evidence::Applied }],
                live_flows: vec![CutoverFlow { name: "customers_live".to_string(), evidence: Evidence::Applied }],
                key_count: 124,
                verdicts: verdicts.collect(),
                first_changes: Some(FirstChangeCounts { one_version: 73, repeats: 0, deletes: 1, wrong: 0 }),
                keys: ids.iter().map(|id| row(*id)).collect(),
                next: ids.last().filter(|_| ids.len() == request.limit).map(u64::to_string),
            })
        }
    }))
}

impl Scene {
    fn choose_dataset(&mut self, label: &str) {
        self.app.choose(crate::app::Node::Dataset(label.to_string()));
    }

    /// Answers the questions that are out, and those that follow from the answers, as an engine would.
    pub fn inspect(&mut self) -> &mut Scene {
        let mut answered = self.answered;
        while let Some(effect) = self.asked.get(answered).cloned() {
            answered += 1;
            if let Effect::Ask(Command::Inspect { question }) = effect {
                let report = report(&question);
                self.tell(Answer::Inspected { question, report });
            }
        }
        self.answered = answered;
        self
    }

    /// Presses keys, each answered and drawn.
    fn do_keys(&mut self, keys: &str) -> &mut Scene {
        for key in keys.split_whitespace() {
            self.press(key);
            self.inspect();
            self.screen();
            self.inspect();
        }
        self
    }
}

use super::screens::see;

#[test]
fn badges_tell_tables_and_flows_of_auto_cdc() {
    see("scd_graph", begin, |_| {});
    see("scd_graph_other_way", begin, |scene| {
        scene.press("L");
    });
    see("scd_runs", begin, |scene| {
        let metrics = FlowMetrics {
            batches: 9,
            rows_in: 1_112,
            rows_out: 1_012,
            changes: ChangeMetrics { upserted: 1_009, deleted: 3, late: 2, ties: 1, ..ChangeMetrics::default() },
            ..FlowMetrics::default()
        };
        let details = Details::FlowProgress { status: State::Running, metrics };
        scene.happened(Level::Info, Some(("customers_live", "customers")), "batch 9 committed", details);
        scene.press("2 j j");
    });
}

#[test]
fn keys_versions_and_what_changed() {
    see("scd_loading", begin, |scene| {
        scene.press("i");
    });
    see("scd_keys", begin, |scene| {
        scene.do_keys("i");
    });
    see("scd_versions", begin, |scene| {
        scene.do_keys("i Enter k");
    });
    see("scd_events", begin, |scene| {
        scene.do_keys("i g e j");
    });
    see("scd_picked", begin, |scene| {
        scene.do_keys("i Enter g g D G d");
    });
    see("scd_gap", begin, |scene| {
        scene.do_keys("i f Enter ,");
    });
    see("scd_deleted", begin, |scene| {
        scene.do_keys("i f f Enter g e");
    });
    see("scd_search", begin, |scene| {
        scene.do_keys("i /");
        scene.write("12");
        scene.inspect();
        scene.screen();
        scene.inspect();
    });
}

#[test]
fn the_table_at_a_time_and_at_two() {
    see("scd_time_typed", begin, |scene| {
        // What is typed replaces the time that is offered.
        scene.do_keys("i @").write("2022-01-01");
        scene.do_keys("Enter j");
    });
    see("scd_time_wrong", begin, |scene| {
        scene.do_keys("i @").write("soon");
        scene.do_keys("Enter");
    });
    see("scd_time_popup", begin, |scene| {
        scene.do_keys("i @");
    });
    see("scd_times", begin, |scene| {
        scene.do_keys("i Enter k k = j =");
    });
}

#[test]
fn a_time_that_was_refused_is_not_compared() {
    let mut scene = begin(120, 36);
    scene.do_keys("i @").write("soon");
    scene.do_keys("Enter =");
    assert_eq!(scene.app.scd.pinned, None);
    assert!(scene.screen().contains("`soon` is no TIMESTAMP: give a TIMESTAMP"), "{}", scene.screen());
    scene.do_keys("@").write("2022-01-01");
    scene.do_keys("Enter =");
    assert_eq!(scene.app.scd.pinned.as_deref(), Some("2022-01-01"));
    // As the second time neither.
    scene.do_keys("@").write("later");
    scene.do_keys("Enter =");
    assert!(scene.screen().contains("`later` is no TIMESTAMP"), "{}", scene.screen());
    assert_ne!(scene.app.scd.detail, crate::app::scd::Detail::Times);
}

/// Answers what is asked, histories as `edit` makes them.
fn tell_histories(scene: &mut Scene, edit: impl Fn(&mut KeyHistory)) {
    while let Some(Effect::Ask(Command::Inspect { question })) = scene.asked.get(scene.answered).cloned() {
        scene.answered += 1;
        let mut report = report(&question);
        if let Ok(report) = &mut report
            && let ScdReport::History(history) = &mut **report
        {
            edit(history);
        }
        scene.tell(Answer::Inspected { question, report });
        scene.screen();
    }
}

#[test]
fn the_row_of_scd_type_1_has_a_sequence_and_no_interval() {
    let mut scene = begin(120, 36);
    scene.choose_dataset("latest");
    scene.press("i");
    tell_histories(&mut scene, |history| {
        history.scd_type = ScdType::One;
        history.versions.drain(..history.versions.len() - 1);
    });
    let screen = scene.screen();
    assert!(!screen.contains("_AT") && screen.contains("  sequence "), "{screen}");
}

#[test]
fn the_check_of_a_table() {
    see("scd_check", begin, |scene| {
        scene.do_keys("i c j j");
    });
    let mut scene = begin(120, 36);
    scene.do_keys("i c j j Enter");
    assert_eq!(scene.app.scd.key, Some(key(88)));
    assert!(scene.screen().contains("id=88 · "), "{}", scene.screen());
}

#[test]
fn the_cutover_and_a_key_of_it() {
    see("cutover_loading", begin, |scene| {
        scene.press("4");
    });
    see("cutover", begin, |scene| {
        scene.do_keys("4");
    });
    see("cutover_keys", begin, |scene| {
        scene.do_keys("4 j j j j Enter");
    });
    see("cutover_key", begin, |scene| {
        scene.do_keys("4 Enter Tab");
    });
    see("cutover_to_history", begin, |scene| {
        scene.do_keys("4 j Enter j Enter");
    });
    see("cutover_problem", begin, |scene| {
        scene.press("4");
        let problem = Problem {
            code: "no-feeds".to_string(),
            message: "all flows of `customers` read snapshots: there is no feed to compare".to_string(),
            help: Some("a cutover has a seed and a live feed".to_string()),
            unconfirmed: Vec::new(),
        };
        let Some(Effect::Ask(Command::Inspect { question })) = scene.asked.last().cloned() else { panic!() };
        scene.tell(Answer::Inspected { question, report: Err(problem) });
    });
}

#[test]
fn both_sequences_of_a_key_are_whole_where_there_is_room() {
    let mut scene = begin(130, 40);
    scene.do_keys("4");
    let screen = scene.screen();
    for whole in ["2023-06-01 07:30:00 → 2025-02-01 10:00:00", "equal: delete wins, else the live one  │"] {
        assert!(screen.contains(whole), "{whole}: {screen}");
    }
}

#[test]
fn a_key_that_a_snapshot_lacks_shows_the_snapshot_behind_what_it_made_void() {
    let mut scene = begin(120, 36);
    scene.press("i");
    tell_histories(&mut scene, |history| {
        history.scd_type = ScdType::One;
        history.versions.clear();
        history.events.truncate(2);
        (history.events[0].effect, history.events[0].version) = (Did::Voided, None);
        let absence = &mut history.events[1];
        (absence.kind, absence.effect, absence.version) = (EventKind::Absence, Did::Deletes, None);
        absence.values.clear();
        let source = Some("state/2025.json".to_string());
        absence.place = EventPlace { source, version: None, file: 1, record: None };
    });
    scene.press("g");
    scene.press("e");
    let screen = scene.screen();
    for words in ["made void", " A  ", "deletes the row"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
}

#[test]
fn a_view_is_left_the_way_one_came() {
    let mut scene = begin(120, 36);
    scene.do_keys("2 i");
    assert_eq!((scene.app.screen, scene.app.pane), (Screen::Scd, Pane::Keys));
    scene.do_keys("Enter Enter Esc");
    assert_eq!((scene.app.screen, scene.app.pane), (Screen::Scd, Pane::Keys));
    scene.do_keys("Esc");
    assert_eq!(scene.app.screen, Screen::Runs);
    scene.do_keys("4 Enter Enter");
    assert_eq!((scene.app.screen, scene.app.pane), (Screen::Scd, Pane::Versions));
    scene.do_keys("Esc");
    assert_eq!(scene.app.screen, Screen::Cutover);
    scene.do_keys("Esc");
    assert_eq!(scene.app.screen, Screen::Runs);
}

#[test]
fn a_key_of_another_verdict_is_not_opened_while_its_keys_are_fetched() {
    let mut scene = begin(120, 36);
    scene.do_keys("4");
    scene.press("j j j j Enter Enter");
    assert_eq!(scene.app.screen, Screen::Cutover);
    scene.inspect();
    scene.press("Enter");
    assert_eq!(scene.app.scd.key, Some(key(12)));
}

#[test]
fn an_open_view_asks_again_when_a_batch_is_committed_and_not_before() {
    let mut scene = begin(120, 36);
    scene.do_keys("i Enter");
    let asked = scene.asked.len();
    scene.later(60);
    scene.screen();
    assert_eq!(scene.asked.len(), asked);
    let mut status = super::scene::complete();
    status.datasets[0].name = "customers".to_string();
    scene.tell(Answer::Status(Box::new(status)));
    scene.inspect();
    let again: Vec<&Effect> = scene.asked[asked..].iter().collect();
    let is_of = |part: &str| again.iter().any(|effect| format!("{effect:?}").contains(part));
    assert!(is_of("Keys {") && is_of("History {") && is_of("AsOf {"), "{again:?}");
    assert!(!is_of("Check {"), "{again:?}");
    let asked = scene.asked.len();
    scene.later(60);
    assert_eq!(scene.asked.len(), asked);
    assert!(!scene.app.is_moving());
}

#[test]
fn tables_without_auto_cdc_say_so() {
    let mut scene = begin(120, 36);
    scene.choose_dataset("customer_events");
    scene.press("i");
    assert_eq!(scene.app.screen, Screen::Graph);
    let message = scene.app.message.clone().unwrap().text;
    assert_eq!(
        message,
        "`customer_events` has no flow of AUTO CDC, so it keeps no history of keys; choose one that has, as customers"
    );
    let mut scene = Scene::after_an_update(120, 36);
    scene.press("4");
    assert!(scene.app.message.clone().unwrap().text.contains("no flow is of AUTO CDC"));
    // SCD type 1 has no past to look at.
    let mut scene = begin(120, 36);
    scene.choose_dataset("latest");
    scene.do_keys("i @");
    assert!(scene.app.popups.is_empty());
    assert!(scene.asked.iter().all(|effect| !format!("{effect:?}").contains("AsOf {")));
}

#[test]
fn the_source_of_an_event_is_opened_at_its_record() {
    let mut scene = begin(120, 36);
    scene.do_keys("i Enter g g");
    scene.press("o");
    let edit = Effect::Edit { path: "/data/legacy/cust_2022.json".to_string(), line: 800, column: 1 };
    assert_eq!(scene.asked.last(), Some(&edit));
    // A compressed file is nothing for an editor.
    scene.do_keys("G");
    scene.press("o");
    assert_ne!(scene.asked.last(), None);
    assert!(
        scene.app.message.clone().unwrap().text.contains("/data/customers/b.csv.gz:803"),
        "{:?}",
        scene.app.message
    );
}

#[test]
fn the_command_line_twin_of_a_key_is_told() {
    let mut scene = begin(120, 36);
    scene.do_keys("i");
    let message = scene.app.message.clone().unwrap();
    assert_eq!(message.twin.as_deref(), Some("flowbench scd history customers --key 7"));
    let range = DiffRange::Times { from: "2021-01-01 00:00:00".to_string(), to: "3".to_string() };
    let question = ScdQuestion::Diff { table: "customers".to_string(), range, limit: 1 };
    assert_eq!(crate::app::twin::question(&question), "flowbench scd diff customers '2021-01-01 00:00:00' 3");
}

#[test]
fn the_views_are_ascii_where_only_that_is_drawn() {
    let mut scene = begin(120, 36);
    scene.app.options.theme.is_ascii = true;
    for keys in ["i", "Enter", "g e", "c", "f Enter", "Esc Esc Esc Esc 4", "Enter", "Tab", "1", "2"] {
        scene.do_keys(keys);
        let screen = scene.screen();
        let odd: String = screen.chars().filter(|c| !c.is_ascii()).collect();
        assert_eq!(odd, "", "{screen}");
    }
}

#[test]
fn a_click_chooses_a_key_a_version_and_a_verdict() {
    let mut scene = begin(120, 36);
    scene.do_keys("i");
    let screen = scene.screen();
    let row = screen.lines().position(|line| line.contains("│ 12 ")).unwrap() as u16;
    scene.input(Input::Mouse(crate::key::Mouse { kind: crate::key::MouseKind::Click, column: 4, row }));
    scene.inspect();
    assert_eq!(scene.app.scd.history().map(|history| history.key.clone()), Some(key(12)));
}
