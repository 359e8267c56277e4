//! Bytes on disk that must not change: tables live longer than a version of the program.

use super::*;
use crate::auto_cdc::silence::Silence;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_of_a_member_do_not_change() {
    let plain = member(1, 258, 3, b"values");
    let full = Member {
        kind: Kind::Delete,
        authored: Some(vec![0b101]),
        run_start: Some(vec![1, 1]),
        location: Some(Location { file: 300, row: 2 }),
        last_seeded: Some(vec![1, 2]),
        first_live: Some(vec![9]),
        values: vec![],
        ..plain.clone()
    };
    for (member, expected) in [
        (&plain, "17 07 02 6b65792031 0000 0102 20 01 030005 03 76616c756573"),
        (&full, "1e 07 02 6b65792031 0000 0102 ef ac02 02 01 030005 03 0105 020101 020102 0109"),
    ] {
        let mut bytes = Vec::new();
        member.borrow().put(&mut bytes);
        assert_eq!(hex(&bytes), expected.replace(' ', ""));
        let head = member::Head::parse(&bytes, 0).unwrap();
        assert_eq!(MemberRef::parse(&bytes, &head).unwrap().to_member(), *member);
        assert_eq!(head.location(&bytes), Some(member.location));
        for end in 0..bytes.len() {
            assert_eq!(member::Head::parse(&bytes[..end], 0), None);
        }
    }
}

#[test]
fn the_files_of_a_table_do_not_change() {
    let dir = tempfile::tempdir().unwrap();
    let table = create(dir.path(), Retention::Newest);
    let mut shown = member(1, 258, 3, b"values");
    let file = table.allocate_files(1);
    shown.location = Some(Location { file, row: 2 });
    let edit = |manifest: &mut Manifest| {
        let silence = Silence::NullsExcept(vec!["a".into()]);
        let flow = Flow { id: "f1".into(), generation: 1, name: "live".into(), class: 2, silence };
        assert_eq!((manifest.flow_number(&flow), manifest.flow_number(&flow)), (0, 0));
        manifest.txns.insert("f1:1".into(), 3);
        let raised_by = FloorBatch { flow: 1, batch: 7 };
        manifest.floors.push(Floor { sequence: vec![0, 255], is_inclusive: true, raised_by });
        manifest.pending = Some(serde_json::json!({"version": 7}));
        manifest.made_over = Some(6);
        Ok(())
    };
    table.commit(stage(&table, &[shown], &[(file, "part-0.parquet".into())]), edit).unwrap();
    let run = std::fs::read(dir.path().join("run-00000000.side")).unwrap();
    assert_eq!(hex(&run), RUN.replace(char::is_whitespace, ""));
    assert_eq!(std::fs::read_to_string(dir.path().join(MANIFEST)).unwrap(), MANIFEST_TEXT);
    let again = View::open(dir.path()).unwrap();
    assert_eq!(again.manifest(), table.view().manifest());
}

/// A table that the version before wrote is one of this version when it is opened; others are refused.
#[test]
fn a_format_that_is_known_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let write = |format: u32| {
        let text = MANIFEST_TEXT.replace(r#""format": 3"#, &format!(r#""format": {format}"#));
        let text = text.split("xxh3").next().unwrap();
        let checksum = twox_hash::XxHash3_64::oneshot(text.as_bytes());
        std::fs::write(dir.path().join(MANIFEST), format!("{text}xxh3 {checksum:016x}\n")).unwrap();
        Manifest::read(dir.path())
    };
    assert_eq!(write(2).unwrap(), write(3).unwrap());
    for format in [1, 4] {
        assert_eq!(write(format).unwrap_err().code(), "side-table-format");
    }
}

const RUN: &str = "
    4642534944450001
    1a000080
    1907026b6579203100000102220002010300050376616c756573
    f98039374cd24bd7
    0100000008000000000000002e00000000000000000000000000000020000000
    000200000000040000010000000004000000002000001000000008007b227275
    6e223a302c226d656d62657273223a312c226b657973223a312c2266696c6573223a7b2230223a22706172742d302e70
    617271756574227d7d
    2e000000000000004a000000000000006a00000000000000a700000000000000
    1d087c40b33d7aa74c8d119ff70553bf469c7b4491b165c0
    0000000000000000
    c1406532d4e1bbac
";

const MANIFEST_TEXT: &str = r#"{
  "format": 3,
  "version": 1,
  "retention": "newest",
  "spec": {
    "scd": 2
  },
  "layout": {
    "leaves": [
      {
        "path": [
          "a"
        ],
        "kind": "struct"
      },
      {
        "path": [
          "a",
          "a"
        ],
        "kind": {
          "value": {
            "Decimal": {
              "precision": 9,
              "scale": 2
            }
          }
        }
      }
    ]
  },
  "flows": [
    {
      "id": "f1",
      "generation": 1,
      "name": "live",
      "class": 2,
      "silence": {
        "nulls_except": [
          "a"
        ]
      }
    }
  ],
  "txns": {
    "f1:1": 3
  },
  "floors": [
    {
      "sequence": "00ff",
      "is_inclusive": true,
      "raised_by": {
        "flow": 1,
        "batch": 7
      }
    }
  ],
  "pending": {
    "version": 7
  },
  "made_over": 6,
  "counters": {},
  "next_file": 1,
  "next_id": 1,
  "runs": [
    {
      "id": 0,
      "bytes": 239,
      "members": 1,
      "keys": 1,
      "first_key": "6b657920310000",
      "last_key": "6b657920310000",
      "checksum": "acbbe1d4326540c1"
    }
  ],
  "moves": [],
  "retired": []
}
xxh3 47787fbdc183e6af
"#;
