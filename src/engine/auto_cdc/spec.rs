//! What a target was built with, as its side table records it, and what of it may no longer change.

use pipeline::auto_cdc::ScdType;
use pipeline::data_type::{DataType, Field};
use serde::{Deserialize, Serialize};

use crate::error::Error;

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
    /// Spark's name of it.
    pub condition: &'static str,
    pub what: String,
    pub recorded: String,
    pub now: String,
}

impl TargetSpec {
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
        let mut compare = |condition, what: &str, recorded: String, now: String| {
            if recorded != now {
                drifts.push(Drift { condition, what: what.to_string(), recorded, now });
            }
        };
        compare(
            "AUTOCDC_INVALID_STATE.SCD_TYPE_DRIFT",
            "the SCD type",
            self.scd_type.words().to_string(),
            now.scd_type.words().to_string(),
        );
        compare("AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT", "the keys", keys(&self.keys), keys(&now.keys));
        compare(
            "AUTOCDC_INVALID_STATE.SEQUENCING_TYPE_DRIFT",
            "the type of the sequence",
            self.sequence.to_string(),
            now.sequence.to_string(),
        );
        let has = |names: &[String], name: &String| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        // A column that is new may be tracked: it is NULL in all that is stored, so nothing stored becomes another.
        let moved: Vec<&String> = [(&self.tracked, &now.untracked), (&self.untracked, &now.tracked)]
            .into_iter()
            .flat_map(|(before, after)| before.iter().filter(|name| has(after, name)))
            .collect();
        if self.scd_type == now.scd_type && !moved.is_empty() {
            drifts.push(Drift {
                condition: "AUTOCDC_INVALID_STATE.TRACK_HISTORY_DRIFT",
                what: "the columns whose history is tracked".to_string(),
                recorded: names(&self.tracked),
                now: names(&now.tracked),
            });
        }
        drifts
    }
}

/// The error of a flow that breaks promises of its target.
pub fn drifted(target: &str, drifts: &[Drift]) -> Error {
    let what: Vec<String> = drifts
        .iter()
        .map(|drift| format!("{} were {}, now {} [{}]", drift.what, drift.recorded, drift.now, drift.condition))
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
            untracked: ["name", "city"].iter().filter(|name| !tracked.contains(name)).map(|n| n.to_string()).collect(),
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
                .map(|drift| drift.condition.rsplit('.').next().expect("a last part"))
                .collect();
            assert_eq!(drifts.join(", "), expected, "{name}");
        }
    }
}
