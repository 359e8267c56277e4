//! What a target was built with, as its side table records it, and what of it may no longer change.

use std::path::Path;

use pipeline::auto_cdc::{ChangeFlow, END_AT, START_AT, ScdType};
use pipeline::data_type::{DataType, Field};
use serde::{Deserialize, Serialize};

use super::side::Manifest;
use crate::error::{Error, Result};

/// The promises that stored members depend on. Everything else of a flow may change between updates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    pub scd_type: ScdType,
    /// In the order of the first flow that wrote the target.
    pub keys: Vec<Field>,
    pub sequence: DataType,
    /// The columns whose history SCD type 2 tracks, by name; empty for type 1.
    pub tracked: Vec<String>,
    /// The other columns, keys apart.
    pub untracked: Vec<String>,
}

/// A promise that a flow's definition breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    pub of: Promise,
    pub recorded: String,
    pub now: String,
}

/// What a target's flows may not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    ScdType,
    Keys,
    Sequence,
    Tracked,
}

impl Promise {
    /// The words for people.
    pub fn words(self) -> &'static str {
        match self {
            Promise::ScdType => "the SCD type",
            Promise::Keys => "the keys",
            Promise::Sequence => "the type of the sequence",
            Promise::Tracked => "the columns whose history is tracked",
        }
    }

    /// Spark's name of a change of it.
    pub fn condition(self) -> &'static str {
        match self {
            Promise::ScdType => "AUTOCDC_INVALID_STATE.SCD_TYPE_DRIFT",
            Promise::Keys => "AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT",
            Promise::Sequence => "AUTOCDC_INVALID_STATE.SEQUENCING_TYPE_DRIFT",
            Promise::Tracked => "AUTOCDC_INVALID_STATE.TRACK_HISTORY_DRIFT",
        }
    }
}

/// True for `__START_AT` and `__END_AT`.
pub fn is_interval(column: &str) -> bool {
    [START_AT, END_AT].iter().any(|name| name.eq_ignore_ascii_case(column))
}

impl TargetSpec {
    /// What a flow makes of a target that has the columns `table`. What is tracked is a matter of the target: a column
    /// that only another flow gives is NULL in this one's rows.
    pub fn of(change: &ChangeFlow, table: &[Field], sequence: DataType) -> TargetSpec {
        let in_table = |name: &str| table.iter().find(|field| field.name.eq_ignore_ascii_case(name)).cloned();
        let values = table.iter().map(|field| &field.name).filter(|name| !is_interval(name) && !change.is_key(name));
        let (tracked, untracked) = match change.scd_type() {
            ScdType::One => (Vec::new(), Vec::new()),
            ScdType::Two => values.cloned().partition(|name| change.tracks(name)),
        };
        TargetSpec {
            scd_type: change.scd_type(),
            keys: change.keys.iter().filter_map(|key| in_table(&key.value)).collect(),
            sequence,
            tracked,
            untracked,
        }
    }

    /// What the target of a manifest was built with; None: no batch was applied yet. Error: `side-table-corrupted`.
    pub fn in_manifest(manifest: &Manifest, side_folder: &Path) -> Result<Option<TargetSpec>> {
        // A first batch that was refused leaves a side table behind, which promises nothing.
        if manifest.version() == 0 {
            return Ok(None);
        }
        serde_json::from_value(manifest.spec.clone()).map(Some).map_err(|error| {
            Error::user(
                "side-table-corrupted",
                format!("the side table `{}` doesn't tell what its target is: {error}", side_folder.display()),
                "build the table anew: flowbench run --full-refresh",
            )
        })
    }

    /// With the columns that `now` has beside these.
    pub fn grown(mut self, now: &TargetSpec) -> TargetSpec {
        let is_known = |spec: &TargetSpec, name: &String| {
            spec.tracked.iter().chain(&spec.untracked).any(|known| known.eq_ignore_ascii_case(name))
        };
        for name in &now.tracked {
            if !is_known(&self, name) {
                self.tracked.push(name.clone());
            }
        }
        for name in &now.untracked {
            if !is_known(&self, name) {
                self.untracked.push(name.clone());
            }
        }
        self
    }

    /// What is different in `now` that may not be. The order of keys and of tracked columns, the case of names and new
    /// columns are free.
    pub fn drifts(&self, now: &TargetSpec) -> Vec<Drift> {
        let mut drifts = Vec::new();
        let mut compare = |of, recorded: String, now: String| {
            if recorded != now {
                drifts.push(Drift { of, recorded, now });
            }
        };
        compare(Promise::ScdType, self.scd_type.words().to_string(), now.scd_type.words().to_string());
        compare(Promise::Keys, keys(&self.keys), keys(&now.keys));
        compare(Promise::Sequence, self.sequence.to_string(), now.sequence.to_string());
        let has = |names: &[String], name: &String| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        // A column that is new may be tracked: it is NULL in all that is stored, so nothing stored becomes another.
        let moved: Vec<&String> = [(&self.tracked, &now.untracked), (&self.untracked, &now.tracked)]
            .into_iter()
            .flat_map(|(before, after)| before.iter().filter(|name| has(after, name)))
            .collect();
        if self.scd_type == now.scd_type && !moved.is_empty() {
            drifts.push(Drift { of: Promise::Tracked, recorded: names(&self.tracked), now: names(&now.tracked) });
        }
        drifts
    }
}

/// The error of a flow that breaks promises of its target.
pub fn drifted(target: &str, drifts: &[Drift]) -> Error {
    let what: Vec<String> = drifts
        .iter()
        .map(|drift| format!("{}: {}, now {} [{}]", drift.of.words(), drift.recorded, drift.now, drift.of.condition()))
        .collect();
    Error::user(
        "auto-cdc-drift",
        format!("table `{target}` was built otherwise than its flows say now: {}", what.join("; ")),
        format!("put the definition back; or build the table anew: flowbench run --full-refresh {target}"),
    )
}

fn keys(keys: &[Field]) -> String {
    let mut keys: Vec<String> =
        keys.iter().map(|key| format!("{} {}", key.name.to_lowercase(), key.data_type)).collect();
    keys.sort();
    keys.join(", ")
}

fn names(names: &[String]) -> String {
    let mut names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    names.sort();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(scd_type: ScdType, keys: &str, sequence: &str, tracked: &[&str]) -> TargetSpec {
        TargetSpec {
            scd_type,
            keys: pipeline::ddl::parse_fields(keys).expect("fields"),
            sequence: pipeline::ddl::parse_fields(&format!("s {sequence}")).expect("a field")[0].data_type.clone(),
            tracked: tracked.iter().map(|name| (*name).to_string()).collect(),
            untracked: ["name", "city"]
                .iter()
                .filter(|name| !tracked.iter().any(|tracked| tracked.eq_ignore_ascii_case(name)))
                .map(|name| name.to_string())
                .collect(),
        }
    }

    #[test]
    fn promises_are_kept_or_broken_by_name() {
        let recorded = spec(ScdType::Two, "id BIGINT, region STRING", "TIMESTAMP", &["name", "city"]);
        let cases = [
            ("the same", spec(ScdType::Two, "id BIGINT, region STRING", "TIMESTAMP", &["name", "city"]), ""),
            ("order and case", spec(ScdType::Two, "REGION STRING, id BIGINT", "TIMESTAMP", &["City", "name"]), ""),
            ("a key less", spec(ScdType::Two, "id BIGINT", "TIMESTAMP", &["name", "city"]), "KEY_SCHEMA_DRIFT"),
            (
                "another type",
                spec(ScdType::Two, "id INT, region STRING", "TIMESTAMP", &["name", "city"]),
                "KEY_SCHEMA_DRIFT",
            ),
            (
                "a sequence",
                spec(ScdType::Two, "id BIGINT, region STRING", "BIGINT", &["name", "city"]),
                "SEQUENCING_TYPE_DRIFT",
            ),
            ("a column", spec(ScdType::Two, "id BIGINT, region STRING", "TIMESTAMP", &["name"]), "TRACK_HISTORY_DRIFT"),
            (
                "a new column",
                spec(ScdType::Two, "id BIGINT, region STRING", "TIMESTAMP", &["name", "city", "tier"]),
                "",
            ),
            ("type 1", spec(ScdType::One, "id BIGINT, region STRING", "TIMESTAMP", &[]), "SCD_TYPE_DRIFT"),
        ];
        for (name, now, expected) in cases {
            let drifts: Vec<&str> = recorded
                .drifts(&now)
                .iter()
                .map(|drift| drift.of.condition().rsplit('.').next().expect("a last part"))
                .collect();
            assert_eq!(drifts.join(", "), expected, "{name}");
        }
    }
}
