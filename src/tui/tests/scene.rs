//! A small pipeline, and what an engine would tell of it.

use std::sync::Arc;

use pipeline::answer::{Answer, Stage, Verdict};
use pipeline::data_type::{DataType, Field};
use pipeline::event::{Details, Event, Failure, FlowMetrics, Level, State};
use pipeline::load::load;
use pipeline::plan::UpdateRequest;
use pipeline::report::{Column, DatasetStatus, FlowStatus, Rows, Status, TableStatus, UpdateReport};
use pipeline::text::SourceFile;
use pipeline::workspace::Workspace;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::app::{App, Effect, Input, Options};
use crate::key::Key;
use crate::screen;
use crate::theme::Theme;

/// The time at which every scene begins: 2026-03-02 16:40:00 UTC.
pub const START_US: i64 = 1_772_469_600_000_000;

const SETTINGS: &str = "[pipeline]\nname = \"shop\"\n";

const BRONZE: &str = "\
CREATE OR REFRESH STREAMING TABLE events COMMENT 'as they come' AS
SELECT * FROM STREAM read_files('/data/events', format => 'json');

CREATE OR REFRESH STREAMING TABLE orders_raw;

CREATE FLOW orders_live DEPENDS ON orders_backfill_2024 AS INSERT INTO orders_raw BY NAME
SELECT * FROM STREAM read_files('/data/orders/*/*', format => 'json');

CREATE FLOW orders_backfill_2024 AS INSERT INTO ONCE orders_raw BY NAME
SELECT * FROM read_files('/data/legacy/year=2024/*', format => 'json');
";

const SILVER: &str = "\
CREATE OR REFRESH STREAMING TABLE orders AS
SELECT id, customer, amount FROM STREAM(orders_raw) WHERE amount > 0;
";

const GOLD: &str = "\
CREATE OR REFRESH MATERIALIZED VIEW revenue AS
SELECT customer, sum(amount) AS revenue FROM orders GROUP BY customer;

CREATE OR REFRESH MATERIALIZED VIEW orders_daily AS SELECT count(*) AS n FROM orders;
";

/// A workbench under test, and what it asked for.
pub struct Scene {
    pub app: App,
    pub asked: Vec<Effect>,
    /// How many of these were looked at by who answers them.
    pub answered: usize,
    revision: u64,
    sequence: i64,
    now_us: i64,
}

impl Scene {
    /// An empty workbench of a size.
    pub fn new(width: u16, height: u16) -> Scene {
        let theme = Theme { has_colours: false, is_ascii: false };
        let app = App::new(Options { theme, utc_offset_s: 0 });
        let mut scene = Scene { app, asked: Vec::new(), answered: 0, revision: 0, sequence: 0, now_us: START_US };
        scene.input(Input::Resize(width, height));
        scene
    }

    /// A workbench that shows the pipeline, valid and never run.
    pub fn opened(width: u16, height: u16) -> Scene {
        let mut scene = Scene::new(width, height);
        scene.save(&files());
        scene.tell(Answer::Status(Box::new(never_run())));
        scene
    }

    /// The pipeline after an update.
    pub fn after_an_update(width: u16, height: u16) -> Scene {
        let mut scene = Scene::opened(width, height);
        scene.run_to_the_end();
        scene.tell(Answer::Status(Box::new(complete())));
        scene
    }

    pub fn input(&mut self, input: Input) {
        self.now_us += 1_000;
        let effects = self.app.update(self.now_us, input);
        self.asked.extend(effects);
    }

    pub fn tell(&mut self, answer: Answer) {
        self.input(Input::Answer(Box::new(answer)));
    }

    pub fn later(&mut self, seconds: i64) {
        self.now_us += seconds * 1_000_000;
        self.input(Input::Tick);
    }

    /// Presses keys by their names, parted by blanks.
    pub fn press(&mut self, keys: &str) -> &mut Scene {
        for name in keys.split_whitespace() {
            self.input(Input::Key(Key::parse(name).unwrap_or_else(|| panic!("`{name}` is no key"))));
        }
        self
    }

    /// Types a text.
    pub fn write(&mut self, text: &str) -> &mut Scene {
        for c in text.chars() {
            self.input(Input::Key(Key::plain(crate::key::Code::Char(c))));
        }
        self
    }

    /// Saves files: both stages of the verdict come in.
    pub fn save(&mut self, files: &[SourceFile]) {
        self.revision += 1;
        let workspace = Workspace {
            folder_name: "shop".to_string(),
            files: files.to_vec(),
            unreadable: Vec::new(),
            overrides: Vec::new(),
        };
        let pipeline = Arc::new(load(workspace));
        let columns = pipeline.graph.datasets.iter().map(|dataset| columns_of(&dataset.label)).collect();
        let verdict = |stage: Stage| Verdict {
            revision: self.revision,
            stage,
            diagnostics: Arc::new(pipeline.diagnostics.clone()),
            columns: Arc::new(if stage == Stage::Analysis { columns } else { Vec::new() }),
            took_ms: 41,
            pipeline: pipeline.clone(),
        };
        let verdict = verdict(Stage::Analysis);
        self.tell(Answer::Verdict(Verdict { stage: Stage::Structure, ..verdict.clone() }));
        self.tell(Answer::Verdict(verdict));
    }

    pub fn happened(&mut self, level: Level, flow: Option<(&str, &str)>, message: &str, details: Details) {
        self.sequence += 1;
        let event = Event {
            time_us: self.now_us,
            level,
            update: Some(1),
            dataset: flow.map(|(_, dataset)| dataset.to_string()),
            flow: flow.map(|(flow, _)| flow.to_string()),
            batch: None,
            message: message.to_string(),
            error: None,
            details,
        };
        self.tell(Answer::Happened { sequence: Some(self.sequence), event });
    }

    pub fn flow(&mut self, flow: &str, dataset: &str, status: State, rows: u64) {
        let metrics =
            FlowMetrics { batches: rows.div_ceil(1_000), rows_in: rows, rows_out: rows, ..FlowMetrics::default() };
        self.happened(
            Level::Info,
            Some((flow, dataset)),
            &format!("flow `{flow}` is {status}"),
            Details::FlowProgress { status, metrics },
        );
    }

    /// An update that this screen started, half way.
    pub fn run_half_way(&mut self) {
        self.tell(Answer::Started { request: UpdateRequest::default() });
        self.happened(
            Level::Info,
            None,
            "update 1: refresh all",
            Details::CreateUpdate { request: UpdateRequest::default() },
        );
        self.happened(Level::Info, None, "running flows", Details::UpdateProgress { state: State::Running });
        for (flow, dataset) in FLOWS {
            self.flow(flow, dataset, State::Queued, 0);
        }
        self.flow("events", "events", State::Running, 0);
        self.flow("orders_live", "orders_raw", State::Running, 0);
        self.flow("orders_backfill_2024", "orders_raw", State::Running, 0);
        self.later(1);
        self.flow("events", "events", State::Running, 2_000);
        self.flow("orders_backfill_2024", "orders_raw", State::Completed, 71_000);
        self.later(1);
        self.flow("events", "events", State::Running, 5_400);
    }

    /// The same update, to its end.
    pub fn run_to_the_end(&mut self) {
        self.run_half_way();
        self.flow("events", "events", State::Completed, 9_000);
        self.flow("orders_live", "orders_raw", State::Completed, 10_004);
        self.flow("orders", "orders", State::Completed, 80_100);
        self.flow("revenue", "revenue", State::Completed, 311);
        self.flow("orders_daily", "orders_daily", State::Completed, 1);
        self.ended(State::Completed);
    }

    /// The same update, but one flow fails.
    pub fn run_into_a_failure(&mut self) {
        self.run_half_way();
        let error = Failure {
            code: "source-unreadable".to_string(),
            message: "cannot read `/data/orders/03/02.json`: permission denied".to_string(),
            help: Some("make it readable, then: flowbench run --refresh-failed".to_string()),
            is_fatal: false,
        };
        self.sequence += 1;
        let event = Event {
            time_us: self.now_us,
            level: Level::Error,
            update: Some(1),
            dataset: Some("orders_raw".to_string()),
            flow: Some("orders_live".to_string()),
            batch: Some(2),
            message: "flow `orders_live` is FAILED".to_string(),
            error: Some(error),
            details: Details::FlowProgress { status: State::Failed, metrics: FlowMetrics::default() },
        };
        self.tell(Answer::Happened { sequence: Some(self.sequence), event });
        self.flow("events", "events", State::Completed, 9_000);
        for (flow, dataset) in [("orders", "orders"), ("revenue", "revenue"), ("orders_daily", "orders_daily")] {
            self.flow(flow, dataset, State::Skipped, 0);
        }
        self.ended(State::Failed);
    }

    fn ended(&mut self, state: State) {
        self.happened(Level::Info, None, &format!("update 1 is {state}"), Details::UpdateProgress { state });
        let report = UpdateReport { number: 1, state, flows: Vec::new(), notices: Vec::new(), duration_ms: 2_004 };
        self.tell(Answer::Ended { request: UpdateRequest::default(), outcome: Ok(report) });
    }

    /// The rows that the preview asked for last.
    pub fn rows(&mut self, dataset: &str, count: usize) {
        let column = |name: &str, data_type: &str, is_numeric: bool| Column {
            name: name.to_string(),
            data_type: data_type.to_string(),
            is_nullable: true,
            is_numeric,
            comment: None,
        };
        let rows = (0..count).map(|n| {
            let name = ["Ana Souza", "Li Wei", "Noor Khan", "Jürgen Groß", "東京 太郎"][n % 5];
            let customer = if n % 7 == 3 { None } else { Some(name.to_string()) };
            vec![
                Some((n + 1).to_string()),
                customer,
                Some(format!("{}.50", 10 + n * 3)),
                Some(format!("note {n}\nsecond line")),
            ]
        });
        let rows = Rows {
            columns: vec![
                column("id", "BIGINT", true),
                column("customer", "STRING", false),
                column("amount", "DECIMAL(10,2)", true),
                column("note", "STRING", false),
            ],
            rows: rows.collect(),
            is_truncated: false,
        };
        self.tell(Answer::Rows { dataset: dataset.to_string(), from: 0, rows: Ok(rows) });
    }

    /// The screen as text.
    pub fn screen(&mut self) -> String {
        let (width, height) = self.app.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        // The first drawing tells how many rows each pane has, which the next input takes in.
        terminal.draw(|frame| screen::draw(&mut self.app, frame.area(), frame.buffer_mut())).unwrap();
        self.input(Input::Tick);
        let drawn = terminal.draw(|frame| screen::draw(&mut self.app, frame.area(), frame.buffer_mut())).unwrap();
        let mut text = String::new();
        for y in 0..height {
            let mut line = String::new();
            let mut skip = 0;
            for x in 0..width {
                let symbol = drawn.buffer[(x, y)].symbol();
                // The cell behind a wide character is its second half.
                if skip == 0 {
                    line.push_str(symbol);
                    skip = crate::widget::text::width(symbol).max(1);
                }
                skip -= 1;
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

const FLOWS: [(&str, &str); 6] = [
    ("events", "events"),
    ("orders_live", "orders_raw"),
    ("orders_backfill_2024", "orders_raw"),
    ("orders", "orders"),
    ("revenue", "revenue"),
    ("orders_daily", "orders_daily"),
];

/// The files of the pipeline.
pub fn files() -> Vec<SourceFile> {
    [
        ("flowbench.toml", SETTINGS),
        ("transformations/bronze.sql", BRONZE),
        ("transformations/gold.sql", GOLD),
        ("transformations/silver.sql", SILVER),
    ]
    .map(|(path, text)| SourceFile { path: path.to_string(), text: text.to_string() })
    .to_vec()
}

/// The files with the table's name in silver.sql mistyped.
pub fn broken_files() -> Vec<SourceFile> {
    let mut files = files();
    files[3].text = files[3].text.replace("orders_raw", "order_raw");
    files
}

/// A pipeline of many tables in three schemas.
pub fn large(tables: usize) -> Vec<SourceFile> {
    let mut sql = String::new();
    for n in 0..tables {
        sql.push_str(&format!(
            "CREATE STREAMING TABLE bronze.raw_{n} AS SELECT * FROM STREAM read_files('/data/{n}', format => 'json');\n\
             CREATE STREAMING TABLE silver.clean_{n} AS SELECT * FROM STREAM(bronze.raw_{n});\n\
             CREATE MATERIALIZED VIEW gold.daily_{n} AS SELECT count(*) AS n FROM silver.clean_{n};\n"
        ));
    }
    vec![
        SourceFile { path: "flowbench.toml".to_string(), text: SETTINGS.to_string() },
        SourceFile { path: "transformations/all.sql".to_string(), text: sql },
    ]
}

fn columns_of(label: &str) -> Option<Vec<Field>> {
    let field = |name: &str, data_type: DataType, comment: Option<&str>| Field {
        name: name.to_string(),
        data_type,
        is_nullable: name != "id",
        comment: comment.map(str::to_string),
    };
    (label == "orders").then(|| {
        vec![
            field("id", DataType::Long, Some("of the shop")),
            field("customer", DataType::String, None),
            field("amount", DataType::Double, None),
        ]
    })
}

fn dataset(name: &str, kind: &str, rows: Option<u64>) -> DatasetStatus {
    DatasetStatus {
        name: name.to_string(),
        kind: kind.to_string(),
        comment: None,
        is_active: true,
        table: rows.map(|rows| TableStatus {
            folder: format!("/w/.flowbench/tables/default/{name}"),
            version: 3,
            rows: Some(rows),
            bytes: rows * 40,
            files: 2,
        }),
    }
}

fn status(rows: impl Fn(&str) -> Option<u64>, state: State) -> Status {
    use pipeline::graph::FlowKind;
    let table = |name: &str| dataset(name, "streaming table", rows(name));
    let view = |name: &str| dataset(name, "materialized view", rows(name));
    let kind = |name: &str| match name {
        "orders_backfill_2024" => FlowKind::Once,
        "revenue" | "orders_daily" => FlowKind::Complete,
        _ => FlowKind::Append,
    };
    Status {
        name: "shop".to_string(),
        folder: "/w".to_string(),
        datasets: vec![table("events"), table("orders_raw"), table("orders"), view("revenue"), view("orders_daily")],
        flows: FLOWS
            .iter()
            .map(|(name, dataset)| FlowStatus {
                name: (*name).to_string(),
                dataset: (*dataset).to_string(),
                kind: kind(name),
                state: if kind(name) == FlowKind::Once { State::Idle } else { state },
                is_done: state == State::Completed && kind(name) == FlowKind::Once,
                comment: None,
                depends_on: Vec::new(),
                last_run_us: None,
                metrics: FlowMetrics::default(),
                error: None,
            })
            .collect(),
        update: None,
        running_pid: None,
        errors: 0,
        warnings: 0,
    }
}

/// Nothing has run.
pub fn never_run() -> Status {
    status(|_| None, State::Idle)
}

/// An update has run to its end; one dataset is no longer in the files.
pub fn complete() -> Status {
    let mut status = status(
        |name| match name {
            "events" => Some(9_000),
            "orders_raw" => Some(81_004),
            "orders" => Some(80_100),
            "revenue" => Some(311),
            _ => Some(1),
        },
        State::Completed,
    );
    let mut gone = dataset("customers_old", "streaming table", Some(84_000));
    gone.is_active = false;
    status.datasets.push(gone);
    status
}
