//! An engine that follows the files says in the end what a new one says, whatever happened in between.

use std::path::Path;

use engine::Engine;
use pipeline::diagnostic::Diagnostic;
use proptest::prelude::*;

/// The files that edits start from.
const FILES: [(&str, &str); 6] = [
    ("flowbench.toml", "[pipeline]\nname = \"saves\"\n\n[configuration]\nroot = \"data\"\nyear = \"2024\"\n"),
    (
        "transformations/a.sql",
        "CREATE OR REFRESH STREAMING TABLE raw AS\nSELECT id, name, _metadata.file_name AS file\nFROM STREAM \
         read_files('${root}/*.json', format => 'json');\n\nCREATE STREAMING TABLE both (id BIGINT, name STRING);\n",
    ),
    (
        "transformations/b.sql",
        "CREATE TEMPORARY VIEW named AS SELECT id, upper(name) AS name FROM STREAM(raw) WHERE id > 0;\n\nCREATE FLOW \
         into_both AS INSERT INTO both BY NAME SELECT id, name FROM STREAM named;\n",
    ),
    (
        "transformations/c.sql",
        "CREATE MATERIALIZED VIEW counts AS\nSELECT name, count(*) AS n, '${year}' AS year\nFROM both\nGROUP BY name;\n",
    ),
    (
        "transformations/d.toml",
        "[[materialized_view]]\nname = \"last\"\nsql = \"SELECT max(n) AS most FROM counts\"\n\n[[flow]]\nname = \
         \"old\"\ntarget = \"both\"\nonce = true\nsql_file = \"old.sql\"\n",
    ),
    ("transformations/old.sql", "SELECT id, name FROM read_files('${root}', format => 'json')\n"),
];

/// What a slip of the hand puts into a file.
const PIECES: [&str; 22] = [
    "", "id", "name", "nmae", "raw", "both", "named", "counts", "SELECT", "FROM", "STREAM ", ";", "'", "(", "year",
    "\n", "${root}", "${rot}", "count(*)", " AS x", "-- ", "[[view]]",
];

#[derive(Debug, Clone)]
enum Edit {
    /// Of the n-th file: a piece at a place, over some letters.
    Change {
        file: usize,
        at: usize,
        cut: usize,
        piece: usize,
    },
    Restore {
        file: usize,
    },
    Remove {
        file: usize,
    },
    /// A file that comes before, between or behind the others.
    Add {
        name: usize,
        copy_of: usize,
    },
}

fn edit() -> impl Strategy<Value = Edit> {
    let file = 0..FILES.len();
    prop_oneof![
        6 => (file.clone(), 0..400_usize, 0..6_usize, 0..PIECES.len())
            .prop_map(|(file, at, cut, piece)| Edit::Change { file, at, cut, piece }),
        2 => file.clone().prop_map(|file| Edit::Restore { file }),
        1 => (1..FILES.len()).prop_map(|file| Edit::Remove { file }),
        1 => (0..3_usize, 1..FILES.len()).prop_map(|(name, copy_of)| Edit::Add { name, copy_of }),
    ]
}

fn apply(root: &Path, edit: &Edit) {
    let path = |file: usize| root.join(FILES[file].0);
    match edit {
        Edit::Change { file, at, cut, piece } => {
            let Ok(mut text) = std::fs::read_to_string(path(*file)) else { return };
            let start = at % (text.len() + 1);
            let end = (start + cut).min(text.len());
            text.replace_range(start..end, PIECES[*piece]);
            std::fs::write(path(*file), text).unwrap();
        }
        Edit::Restore { file } => std::fs::write(path(*file), FILES[*file].1).unwrap(),
        Edit::Remove { file } => drop(std::fs::remove_file(path(*file))),
        Edit::Add { name, copy_of } => {
            let name = ["transformations/_first.sql", "transformations/bb.sql", "transformations/z.sql"][*name];
            std::fs::write(root.join(name), FILES[*copy_of].1).unwrap();
        }
    }
}

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for sub in ["transformations", "data"] {
        std::fs::create_dir(folder.path().join(sub)).unwrap();
    }
    std::fs::write(folder.path().join("data/one.json"), "{\"id\":1,\"name\":\"a\"}\n").unwrap();
    for (path, text) in FILES {
        std::fs::write(folder.path().join(path), text).unwrap();
    }
    folder
}

async fn diagnostics(engine: &Engine) -> Vec<Diagnostic> {
    engine.analyse().await.expect("the analysis comes to its end").diagnostics
}

proptest! {
    #![proptest_config(crate::properties::cases(12))]

    #[test]
    fn any_order_of_saves_ends_in_what_a_clean_run_says(edits in proptest::collection::vec(edit(), 1..10)) {
        let folder = workspace();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut engine = Engine::open(folder.path(), &[]).unwrap();
            assert_eq!(diagnostics(&engine).await, [], "the workspace is sound to begin with");
            for (n, edit) in edits.iter().enumerate() {
                apply(folder.path(), edit);
                engine = engine.reload().unwrap();
                let followed = diagnostics(&engine).await;
                // A clean run costs much more than a followed one; every third step is enough.
                if n % 3 == 2 || n + 1 == edits.len() {
                    let clean = diagnostics(&Engine::open(folder.path(), &[]).unwrap()).await;
                    assert_eq!(followed, clean, "after {:?}", &edits[..=n]);
                }
            }
        });
    }
}
