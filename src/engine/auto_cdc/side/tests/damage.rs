//! Damaged and missing files.

use std::path::PathBuf;

use roaring::RoaringBitmap;

use super::*;
use crate::error::Result;

/// A table with two runs and a file of moves.
fn sample(dir: &Path) -> SideTable {
    let table = create(dir, Retention::All);
    for batch_id in 1..=2 {
        let file = table.allocate_files(1);
        let mut members: Vec<Member> =
            (0..30).map(|number| member(number, batch_id as u16, batch_id, &[number as u8; 400])).collect();
        for (row, member) in members.iter_mut().enumerate() {
            member.location = Some(Location { file, row: row as u32 });
        }
        table.commit(stage(&table, &sorted(members), &[(file, format!("part-{file}"))]), |_| Ok(())).unwrap();
    }
    let deleted = RoaringBitmap::from_iter([3, 4, 9]);
    let file = table.allocate_files(1);
    let piece = MovePiece { first_row: 0, file, path: "part-9".into(), base_row: 0, deleted };
    let staged = table.stage_moves(&[FileMove { file: 0, pieces: vec![piece] }]).unwrap();
    table.commit(staged, |_| Ok(())).unwrap();
    table
}

fn read_everything(dir: &Path) -> Result<(Vec<Member>, Vec<Vec<Member>>)> {
    let view = View::open(dir)?;
    let wanted: Vec<(Vec<u8>, Vec<u8>)> = sorted((0..31).map(|number| member(number, 0, 0, b"")).collect())
        .into_iter()
        .map(|m| (m.key, vec![]))
        .collect();
    Ok((scan_all(&view)?, lookup(&view, &wanted)?))
}

fn paths(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn any_damaged_byte_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    drop(sample(dir.path()));
    let whole = read_everything(dir.path()).unwrap();
    assert_eq!((whole.0.len(), whole.1.len()), (60, 31));
    assert_eq!(paths(dir.path()).len(), 4);
    for path in paths(dir.path()) {
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, &damaged).unwrap();
            let error = read_everything(dir.path()).expect_err("a damaged byte was not seen");
            assert_eq!(error.code(), "side-table-corrupted", "{}: byte {at}: {error}", path.display());
        }
        std::fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(read_everything(dir.path()).unwrap(), whole);
}

#[test]
fn a_cut_or_missing_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    drop(sample(dir.path()));
    for path in paths(dir.path()) {
        let bytes = std::fs::read(&path).unwrap();
        for length in (0..bytes.len()).step_by(7) {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(read_everything(dir.path()).unwrap_err().code(), "side-table-corrupted", "{}", path.display());
        }
        std::fs::write(&path, [&bytes[..], b"\n"].concat()).unwrap();
        assert_eq!(read_everything(dir.path()).unwrap_err().code(), "side-table-corrupted", "{}", path.display());
        std::fs::remove_file(&path).unwrap();
        let code = if path.ends_with(MANIFEST) { "side-table-missing" } else { "side-table-corrupted" };
        assert_eq!(read_everything(dir.path()).unwrap_err().code(), code, "{}", path.display());
        assert_eq!(SideTable::open(dir.path()).unwrap_err().code(), code);
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(read_everything(dir.path()).is_ok());
}

#[test]
fn a_run_in_the_place_of_another_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    drop(sample(dir.path()));
    let runs: Vec<PathBuf> =
        paths(dir.path()).into_iter().filter(|path| path.to_string_lossy().contains("run-")).collect();
    std::fs::copy(&runs[0], &runs[1]).unwrap();
    assert_eq!(read_everything(dir.path()).unwrap_err().code(), "side-table-corrupted");
}

#[test]
fn a_table_is_not_made_over_another_one() {
    let dir = tempfile::tempdir().unwrap();
    drop(sample(dir.path()));
    let new = NewSideTable { retention: Retention::All, spec: serde_json::Value::Null, layout: Layout::default() };
    assert_eq!(SideTable::create(dir.path(), new).unwrap_err().code(), "side-table-exists");
    assert_eq!(View::open(&dir.path().join("gen-1")).unwrap_err().code(), "side-table-missing");
}
