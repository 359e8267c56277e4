//! Which leaves a row has, and in which order. A layout only ever grows at its end: a row that was written when it was
//! shorter has NULL in the leaves that came later, and a column that is no longer fed keeps its leaves.

use pipeline::data_type::{DataType, Field};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The ordered leaves of the rows of a table. Columns of struct type have a leaf for whether the struct is there,
/// followed by those of their fields; everything else, arrays and maps included, is one leaf.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    leaves: Vec<Leaf>,
}

/// A part of a row that has a value, or NULL, of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaf {
    /// The column's name, then those of struct fields.
    pub path: Vec<String>,
    pub kind: LeafKind,
}

/// What a leaf's bytes say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeafKind {
    /// That the struct at this path is there: no bytes, or NULL.
    Struct,
    Value(DataType),
}

impl Layout {
    /// A layout of these columns.
    pub fn new(columns: &[Field]) -> Result<Layout> {
        let mut layout = Layout::default();
        layout.extend(columns)?;
        Ok(layout)
    }

    /// Appends the leaves of columns that it lacks; says whether anything is new. Names are compared without case and
    /// keep their first spelling. Error: `column-type-changed`.
    pub fn extend(&mut self, columns: &[Field]) -> Result<bool> {
        let mut grown = self.clone();
        for column in columns {
            grown.extend_by(&mut Vec::new(), column)?;
        }
        let is_new = grown != *self;
        *self = grown;
        Ok(is_new)
    }

    /// The leaves in order.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Number of leaves.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Whether there are no leaves.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// The numbers of the leaves of a column; none if it isn't known.
    pub fn leaves_of(&self, column: &str) -> Vec<usize> {
        let of_column = |leaf: &Leaf| same_name(&leaf.path[0], column);
        (0..self.leaves.len()).filter(|&number| of_column(&self.leaves[number])).collect()
    }

    /// The number of the leaf at a path.
    pub(super) fn position(&self, path: &[String]) -> Option<usize> {
        self.leaves
            .iter()
            .position(|leaf| leaf.path.len() == path.len() && leaf.path.iter().zip(path).all(|(a, b)| same_name(a, b)))
    }

    fn extend_by(&mut self, parents: &mut Vec<String>, field: &Field) -> Result<()> {
        parents.push(field.name.clone());
        let kind = match &field.data_type {
            DataType::Struct(_) => LeafKind::Struct,
            other => LeafKind::Value(plain(other)),
        };
        match self.position(parents) {
            None => self.leaves.push(Leaf { path: parents.clone(), kind }),
            Some(number) => {
                let known = &mut self.leaves[number].kind;
                let fits = match (&mut *known, &kind) {
                    (LeafKind::Struct, LeafKind::Struct) => true,
                    (LeafKind::Value(old), LeafKind::Value(new)) => grow(old, new),
                    _ => false,
                };
                if !fits {
                    return Err(type_changed(parents, known, &kind));
                }
            }
        }
        if let DataType::Struct(fields) = &field.data_type {
            for field in fields {
                self.extend_by(parents, field)?;
            }
        }
        parents.pop();
        Ok(())
    }
}

/// Names of columns and fields are the user's: case doesn't tell them apart.
pub(super) fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || !(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase()
}

/// Nullability and comments don't change bytes, so a layout doesn't know them.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Array(element) => DataType::Array(Box::new(plain(element))),
        DataType::Map(key, value) => DataType::Map(Box::new(plain(key)), Box::new(plain(value))),
        DataType::Struct(fields) => {
            let plain_field = |field: &Field| Field {
                name: field.name.clone(),
                data_type: plain(&field.data_type),
                is_nullable: true,
                comment: None,
            };
            DataType::Struct(fields.iter().map(plain_field).collect())
        }
        other => other.clone(),
    }
}

/// Appends what `new` has more in structs within arrays and maps; false: the types differ otherwise.
fn grow(old: &mut DataType, new: &DataType) -> bool {
    match (old, new) {
        (DataType::Array(old), DataType::Array(new)) => grow(old, new),
        (DataType::Map(old_key, old), DataType::Map(new_key, new)) => grow(old_key, new_key) && grow(old, new),
        (DataType::Struct(old), DataType::Struct(new)) => {
            new.iter().all(|field| match old.iter_mut().find(|known| same_name(&known.name, &field.name)) {
                Some(known) => grow(&mut known.data_type, &field.data_type),
                None => {
                    old.push(field.clone());
                    true
                }
            })
        }
        (old, new) => old == new,
    }
}

fn type_changed(path: &[String], old: &LeafKind, new: &LeafKind) -> Error {
    let name = |kind: &LeafKind| match kind {
        LeafKind::Struct => "STRUCT".to_string(),
        LeafKind::Value(data_type) => data_type.to_string(),
    };
    Error::user(
        "column-type-changed",
        format!("column `{}` changed its type: {} before, {} now", path.join("."), name(old), name(new)),
        format!("cast it to {} in the flow's query, or run a full refresh of the table", name(old)),
    )
}
