//! The columns of a source and what each is for. Kept as JSON in state.db, so that a flow reads every batch alike.
//!
//! Not here: how it is found (`infer`).

use arrow::datatypes::{FieldRef, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The columns of a source: those of the files, those of the paths, and the one for what doesn't fit.
///
/// Columns found later are appended at the end, so the roles go by name and not by position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceSchema {
    #[serde(with = "columns")]
    pub schema: SchemaRef,
    /// Names of the columns that come from `key=value` folders.
    pub partition: Vec<String>,
    /// The column that takes what doesn't fit, as JSON text; none if rescue is off.
    pub rescued: Option<String>,
    /// The column that takes records that can't be read at all; `rescued` does without it.
    pub corrupt: Option<String>,
}

/// What a column of a source is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Data,
    Partition,
    Rescued,
    Corrupt,
}

impl SourceSchema {
    /// The text for state.db.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a schema holds nothing that JSON can't")
    }

    /// Reads what [`SourceSchema::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<SourceSchema> {
        serde_json::from_str(text).map_err(|error| Error::Internal(format!("cannot read a remembered schema: {error}")))
    }

    /// Returns what the column is for.
    pub fn role(&self, name: &str) -> Role {
        let is = |other: &String| other.eq_ignore_ascii_case(name);
        match () {
            () if self.rescued.as_ref().is_some_and(is) => Role::Rescued,
            () if self.corrupt.as_ref().is_some_and(is) => Role::Corrupt,
            () if self.partition.iter().any(is) => Role::Partition,
            () => Role::Data,
        }
    }

    /// Returns the columns that are read from the files' contents.
    pub fn data_columns(&self) -> impl Iterator<Item = &FieldRef> {
        self.schema.fields().iter().filter(|field| self.role(field.name()) == Role::Data)
    }
}

/// An Arrow schema as Spark's columns: the types are ours, so nothing is lost on the way.
mod columns {
    use arrow::datatypes::SchemaRef;
    use pipeline::data_type::Field;
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::data_type::{schema_from_arrow, schema_to_arrow};

    pub fn serialize<S: Serializer>(schema: &SchemaRef, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = schema_from_arrow(schema).map_err(|name| S::Error::custom(format!("type of `{name}`")))?;
        columns.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SchemaRef, D::Error> {
        let columns: Vec<Field> = Vec::deserialize(deserializer).map_err(D::Error::custom)?;
        Ok(schema_to_arrow(&columns))
    }
}
