//! The side table against a model, damaged, and killed between any two steps; and bytes that must not change.

mod bytes;
mod crash;
mod damage;
mod model;

use std::path::Path;

use super::*;
use crate::auto_cdc::encode::Layout;
use pipeline::data_type::{DataType, Field};

fn create(dir: &Path, retention: Retention) -> SideTable {
    let fields = |data_type| vec![Field { name: "a".into(), data_type, is_nullable: true, comment: None }];
    let layout = Layout::new(&fields(DataType::Struct(fields(DataType::Decimal { precision: 9, scale: 2 })))).unwrap();
    SideTable::create(dir, NewSideTable { retention, spec: serde_json::json!({"scd": 2}), layout }).unwrap()
}

/// A key as a string is encoded.
fn key(number: u32) -> Vec<u8> {
    format!("key {number}\0\0").into_bytes()
}

fn member(key_number: u32, sequence: u16, batch_id: u64, values: &[u8]) -> Member {
    Member {
        key: key(key_number),
        sequence: sequence.to_be_bytes().to_vec(),
        kind: Kind::Upsert,
        rank: Rank { class: 2, flow: 1, position: [batch_id, 0, 5] },
        batch_id,
        authored: None,
        run_start: None,
        location: None,
        last_seeded: None,
        first_live: None,
        values: values.to_vec(),
    }
}

fn sorted(mut members: Vec<Member>) -> Vec<Member> {
    members.sort_by(|a, b| member::compare((&a.key, &a.sequence), (&b.key, &b.sequence)));
    members
}

fn stage(table: &SideTable, members: &[Member], files: &[(u32, String)]) -> Option<Staged> {
    table.write_run(members.iter().map(Member::borrow), members.len(), || Ok(files.to_vec())).unwrap()
}

fn scan_all(view: &View) -> crate::error::Result<Vec<Member>> {
    scan(view, &KeyRange::all())
}

fn scan(view: &View, range: &KeyRange) -> crate::error::Result<Vec<Member>> {
    let mut scan = view.scan(range)?;
    let mut all = Vec::new();
    while let Some(members) = scan.next()? {
        assert!(members.iter().all(|member| member.key == members[0].key));
        all.extend(members.iter().map(MemberRef::to_member));
    }
    Ok(all)
}

fn lookup(view: &View, wanted: &[(Vec<u8>, Vec<u8>)]) -> crate::error::Result<Vec<Vec<Member>>> {
    let wanted: Vec<Wanted> = wanted.iter().map(|(key, first_sequence)| Wanted { key, first_sequence }).collect();
    let mut found = Vec::new();
    view.lookup(&wanted, |number, members| {
        assert_eq!(number, found.len());
        found.push(members.iter().map(MemberRef::to_member).collect());
        Ok(())
    })?;
    Ok(found)
}
