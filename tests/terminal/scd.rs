//! AUTO CDC tables in the workbench: keys, versions, the table at a time, the check, the cutover, on real tables.

use super::{Example, SIZES, flowbench, open, wait_valid};

#[test]
fn the_history_of_a_key_and_the_cutover_of_its_table_are_looked_at() {
    let example = Example::run("customers_scd2_migration");
    for size in SIZES {
        let terminal = open(&example.root, size);
        // A row of the legacy table was closed without a delete event: one warning.
        terminal.wait("a checked workspace", |text| text.lines().next().is_some_and(|head| head.contains("⚠1")));
        terminal.keys("/");
        terminal.type_text("customers_history");
        terminal.keys("Enter i");
        terminal.wait_for("c12");
        terminal.keys("/");
        terminal.type_text("c11");
        terminal.wait_for(" 1 key ");
        terminal.keys("Enter Enter");
        terminal.wait_for("customer_id=c11 · ");
        terminal.wait_for("first live 2025-03-01");
        terminal.wait_for("made by");
        terminal.wait_for("update 1");
        terminal.keys("g e");
        terminal.wait_for("the live feed takes over");
        // The table as it was at a time.
        terminal.keys("@ Ctrl-u");
        terminal.type_text("2024-12-31 00:00:00");
        terminal.keys("Enter");
        terminal.wait_for("customers_history at 2024-12-31 00:00:00 · ");
        terminal.keys("c");
        terminal.wait_for("versions of a key don't overlap");
        terminal.wait_gone("violated");
        // Out, and to the cutover: one key of each fault.
        terminal.keys("4");
        terminal.wait_for("1 stale, 1 tie");
        terminal.keys("j j j j Enter");
        terminal.wait_for("Keys · stale");
        terminal.wait_for("↺ c12");
        terminal.keys("Enter");
        terminal.wait_for("h l key");
        terminal.wait_for("customer_id=c12 · ");
        terminal.keys("Esc");
        terminal.wait_gone("h l key");
        terminal.keys("Esc");
        terminal.wait_for("Issues");
        terminal.keys("q");
        assert_eq!(terminal.restored(), 0);
    }
}

#[test]
fn an_open_history_shows_what_an_update_brings() {
    let example = Example::new("customers_scd2_migration");
    flowbench(&example.root, &["run", "--flow", "customers_cdc_bronze"]);
    let terminal = open(&example.root, (120, 36));
    wait_valid(&terminal);
    terminal.keys("4");
    // Neither the seed nor the live flow has run: their sources are compared.
    terminal.wait_for("not run yet");
    terminal.wait_for("1 stale, 1 tie");
    terminal.keys("i");
    terminal.wait_for("nothing is stored");
    flowbench(&example.root, &["run"]);
    terminal.wait_for("c11");
    terminal.wait_gone("nothing is stored");
    terminal.keys("q");
    assert_eq!(terminal.restored(), 0);
}
