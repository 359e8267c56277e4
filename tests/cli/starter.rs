//! The workspace that `init` makes, from validation to its rows.

use super::expect;

#[test]
fn the_starter_runs_and_shows_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("my pipeline");
    expect(folder.path(), 0, &["init", "my pipeline"]);
    let (_, err) = expect(folder.path(), 2, &["init", "my pipeline"]);
    assert!(err.contains("already"), "{err}");

    let (out, err) = expect(&workspace, 0, &["validate"]);
    assert!(out.is_empty() && err.starts_with("valid my pipeline: 3 datasets, 3 flows"), "{out}{err}");
    let (out, _) = expect(&workspace, 0, &["run", "--plan"]);
    assert!(out.contains("orders_raw"), "{out}");
    assert!(!workspace.join(".flowbench").exists(), "a plan writes nothing");

    let (out, err) = expect(&workspace, 0, &["run"]);
    assert!(out.is_empty() && err.contains("update 1 COMPLETED"), "{out}{err}");
    let (out, err) = expect(&workspace, 0, &["show", "orders_raw", "--where", "order_id = 4"]);
    assert!(out.contains("Noor") && err == "1 row\n", "{out}{err}");
    let (out, _) = expect(&workspace, 0, &["sql", "SELECT count(*) AS n FROM orders", "--format", "csv"]);
    assert_eq!(out, "n\n4\n");
    let (out, _) =
        expect(&workspace, 0, &["sql", "SELECT customer FROM orders ORDER BY order_id LIMIT 1", "--format", "jsonl"]);
    assert_eq!(out, "{\"customer\":\"Ana\"}\n");
    let (_, err) = expect(&workspace, 2, &["sql", "SELECT nme FROM orders"]);
    assert!(err.contains("<sql>:1:8"), "{err}");

    // From a folder below, the workspace is found; a second run has nothing to do.
    let (out, err) = expect(&workspace.join("data"), 0, &["run", "--json"]);
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (result, events) = lines.split_last().unwrap();
    assert!(events.iter().all(|event| event["type"] == "event" && event["format"] == 1), "{out}");
    assert_eq!((&result["type"], &result["result"]["state"]), (&"result".into(), &"COMPLETED".into()), "{err}");

    for arguments in
        [&["status"] as &[&str], &[], &["updates"], &["events"], &["graph"], &["describe", "orders"], &["doctor"]]
    {
        let (out, _) = expect(&workspace, 0, arguments);
        assert!(!out.is_empty(), "{arguments:?}");
    }
    for format in ["text", "dot", "mermaid", "json"] {
        let (out, _) = expect(&workspace, 0, &["graph", "--format", format]);
        assert!(out.contains("revenue_by_customer"), "{format}: {out}");
    }
    let (_, err) = expect(&workspace, 4, &["reset", "orders_raw"]);
    assert!(err.contains("--yes"), "{err}");
    let (_, err) = expect(&workspace, 4, &["run", "--full-refresh", "orders_raw"]);
    assert!(err.contains("--with-downstream"), "{err}");
    let (_, err) = expect(&workspace, 2, &["run", "--refresh", "order"]);
    assert!(err.contains("did you mean `orders`?"), "{err}");
}

#[test]
fn broken_files_are_shown_with_their_place_and_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    expect(folder.path(), 0, &["init", "."]);
    let broken = "CREATE OR REFRESH MATERIALIZED VIEW broken\nAS SELECT nme FROM ordrs;\n";
    std::fs::write(folder.path().join("transformations/broken.sql"), broken).unwrap();
    for command in ["validate", "run"] {
        let (out, err) = expect(folder.path(), 3, &[command]);
        assert!(out.is_empty(), "{out}");
        assert!(err.contains("error[unknown-dataset]") && err.contains("transformations/broken.sql:2:20"), "{err}");
        assert!(err.contains("1 error"), "{err}");
    }
    assert!(!folder.path().join(".flowbench/tables").exists());
    let (out, _) = expect(folder.path(), 3, &["validate", "--format", "json"]);
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    let first = &result["result"]["diagnostics"][0];
    assert_eq!(
        (&first["file"], &first["line"], &first["column"]),
        (&"transformations/broken.sql".into(), &2.into(), &20.into())
    );
}

#[test]
fn a_copied_example_keeps_its_walk_through_without_the_ways_of_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    for (name, lines) in [
        ("customers_scd2_migration", &["flowbench cutover check customers_history", "| c13 | 2024-07-01 |"] as &[_]),
        ("customers_scd1_snapshot", &["    flowbench run --flow customers_incremental_cdc", "| c04 | free on"]),
        ("registration", &["\n    flowbench run\n", "What to look at"]),
    ] {
        expect(folder.path(), 0, &["init", name, "--sample", name]);
        let readme = std::fs::read_to_string(folder.path().join(name).join("README.md")).unwrap();
        assert!(readme.starts_with(&format!("# {name}: ")), "{readme}");
        for line in lines {
            assert!(readme.contains(line), "{line}: {readme}");
        }
        assert!(!readme.contains("workspaces/") && readme.contains("A copy of an example"), "{readme}");
    }
}
