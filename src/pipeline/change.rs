//! What a changed definition asks for: nothing, new metadata, new columns, or a full refresh.

use std::collections::BTreeMap;

use crate::definition::DatasetKind;

/// A dataset's definition as it was applied last, or as it would be applied now. Kept in state.db as JSON.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AppliedDataset {
    pub kind: DatasetKind,
    /// Names and Spark types, in order.
    pub columns: Vec<(String, String)>,
    pub partition_by: Vec<String>,
    pub cluster_by: Vec<String>,
    pub comment: Option<String>,
    pub properties: BTreeMap<String, String>,
}

/// One difference between two definitions, and what it needs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Change {
    /// Comment, properties or clustering: written at the next update; no rows are touched.
    Metadata { what: String },
    /// Columns are appended; rows written before have NULL there.
    NewColumns { columns: Vec<(String, String)> },
    /// Rows on disk don't fit the definition any more.
    NeedsFullRefresh { reason: String },
    /// Even a full refresh can't do it.
    Refused { reason: String, help: String },
}

/// Compares definitions. A materialized view is recomputed anyway, so nothing about its columns needs a
/// full refresh.
pub fn classify(before: &AppliedDataset, now: &AppliedDataset) -> Vec<Change> {
    if before.kind != now.kind {
        return vec![Change::Refused {
            reason: format!("it was a {} and is now a {}", before.kind.words(), now.kind.words()),
            help: "drop it first (`flowbench drop NAME --yes` once it is out of the files), or give the new one another name"
                .to_string(),
        }];
    }
    let mut changes = Vec::new();
    let is_recomputed = now.kind == DatasetKind::MaterializedView;
    let key = |name: &str| name.to_lowercase();
    let old: BTreeMap<String, &(String, String)> =
        before.columns.iter().map(|column| (key(&column.0), column)).collect();
    let new: BTreeMap<String, &(String, String)> = now.columns.iter().map(|column| (key(&column.0), column)).collect();
    if !is_recomputed {
        for (name, data_type) in &now.columns {
            if let Some((_, before)) = old.get(&key(name)).filter(|(_, before)| before != data_type) {
                changes.push(Change::NeedsFullRefresh {
                    reason: format!("column `{name}` was {before} and is now {data_type}"),
                });
            }
        }
    }
    let added: Vec<(String, String)> =
        now.columns.iter().filter(|(name, _)| !old.contains_key(&key(name))).cloned().collect();
    let removed: Vec<&str> =
        before.columns.iter().map(|(name, _)| name.as_str()).filter(|name| !new.contains_key(&key(name))).collect();
    if !added.is_empty() {
        changes.push(Change::NewColumns { columns: added });
    }
    if !removed.is_empty() {
        // The stored column stays; rows written from now on have NULL there.
        changes.push(Change::Metadata { what: format!("no flow fills {} any more", list(&removed)) });
    }
    if before.partition_by != now.partition_by {
        let reason = format!("partitioned by {}, was {}", columns(&now.partition_by), columns(&before.partition_by));
        changes.push(match is_recomputed {
            true => Change::Metadata { what: reason },
            false => Change::NeedsFullRefresh { reason },
        });
    }
    if before.cluster_by != now.cluster_by {
        let what = format!(
            "clustered by {}, was {}; only new rows are laid out so",
            columns(&now.cluster_by),
            columns(&before.cluster_by)
        );
        changes.push(Change::Metadata { what });
    }
    if before.comment != now.comment {
        changes.push(Change::Metadata { what: "comment".to_string() });
    }
    if before.properties != now.properties {
        let names: Vec<&str> = now
            .properties
            .iter()
            .filter(|(name, value)| before.properties.get(*name) != Some(value))
            .map(|(name, _)| name.as_str())
            .chain(before.properties.keys().filter(|name| !now.properties.contains_key(*name)).map(String::as_str))
            .collect();
        changes.push(Change::Metadata { what: format!("properties {}", list(&names)) });
    }
    changes
}

fn columns(names: &[String]) -> String {
    match names {
        [] => "nothing".to_string(),
        names => list(&names.iter().map(String::as_str).collect::<Vec<_>>()),
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[(&str, &str)]) -> AppliedDataset {
        AppliedDataset {
            kind: DatasetKind::StreamingTable,
            columns: columns.iter().map(|(name, data_type)| (name.to_string(), data_type.to_string())).collect(),
            partition_by: Vec::new(),
            cluster_by: Vec::new(),
            comment: None,
            properties: BTreeMap::new(),
        }
    }

    #[test]
    fn each_change_has_its_class() {
        let before = table(&[("id", "BIGINT"), ("name", "STRING")]);
        assert_eq!(classify(&before, &before), vec![]);
        let wider = table(&[("ID", "BIGINT"), ("name", "STRING"), ("vip", "BOOLEAN")]);
        assert_eq!(
            classify(&before, &wider),
            vec![Change::NewColumns { columns: vec![("vip".to_string(), "BOOLEAN".to_string())] }]
        );
        let retyped = table(&[("id", "STRING"), ("name", "STRING")]);
        assert!(matches!(classify(&before, &retyped)[..], [Change::NeedsFullRefresh { .. }]));
        let mut commented = before.clone();
        commented.comment = Some("people".to_string());
        assert!(matches!(classify(&before, &commented)[..], [Change::Metadata { .. }]));
        let mut partitioned = before.clone();
        partitioned.partition_by = vec!["id".to_string()];
        assert!(matches!(classify(&before, &partitioned)[..], [Change::NeedsFullRefresh { .. }]));
        let mut view = retyped.clone();
        view.kind = DatasetKind::MaterializedView;
        assert!(matches!(classify(&before, &view)[..], [Change::Refused { .. }]));
        let mut before_view = before.clone();
        before_view.kind = DatasetKind::MaterializedView;
        assert_eq!(classify(&before_view, &view), vec![]);
    }
}
