//! The columns of a dataset: as declared, as stored, as its flows give them; and rows brought to them BY NAME.
//!
//! Widening is the only implicit cast: INT fits into BIGINT, BIGINT doesn't fit into INT or STRING.

use std::sync::Arc;

use arrow::datatypes::{Field as ArrowField, Schema, SchemaRef};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use pipeline::data_type::{DataType, Field};

use crate::data_type::{can_widen, field_to_arrow, from_arrow, merge_types, position, to_arrow};

/// What a dataset's table holds, or will hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    pub fields: Vec<Field>,
    /// Given in the definition: flows may not add to them.
    pub is_declared: bool,
    /// Values of `DEFAULT` for columns that a flow doesn't give; by position in `fields`.
    pub defaults: Vec<Option<ScalarValue>>,
}

impl Columns {
    /// Columns that flows may add to.
    pub fn grown(fields: Vec<Field>) -> Columns {
        let defaults = vec![None; fields.len()];
        Columns { fields, is_declared: false, defaults }
    }

    /// Names and types of the columns that `before` doesn't have; those of both come first, in its order.
    pub fn added_to(&self, before: &Columns) -> Vec<(String, String)> {
        let added = self.fields.iter().skip(before.fields.len());
        added.map(|field| (field.name.clone(), field.data_type.to_string())).collect()
    }

    /// As an Arrow schema.
    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.fields.iter().map(field_to_arrow).collect::<Vec<ArrowField>>()))
    }
}

/// Why rows don't fit a dataset's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// The declared columns have no such column.
    Undeclared { column: String },
    /// The type can't be widened to the column's.
    Type { column: String, from: String, to: String },
    /// A type that no table can hold.
    Unstorable { column: String, data_type: String },
    /// Two columns of one name.
    Duplicate { column: String },
    /// A column of the source with a name that AUTO CDC keeps for its own.
    Reserved { column: String },
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Misfit::Undeclared { column } => write!(f, "column `{column}` is not declared in the table"),
            Misfit::Type { column, from, to } => write!(f, "column `{column}` is {from} here and {to} in the table"),
            Misfit::Unstorable { column, data_type } => {
                write!(f, "column `{column}` has a type that tables can't hold: {data_type}")
            }
            Misfit::Duplicate { column } => write!(f, "the query gives two columns named `{column}`"),
            Misfit::Reserved { column } => {
                write!(f, "the source has a column `{column}`, a name that AUTO CDC keeps for its own")
            }
        }
    }
}

/// The columns that a query gives, in types that a table can hold.
pub fn output_fields(schema: &Schema) -> Result<Vec<Field>, Vec<Misfit>> {
    let (mut fields, mut misfits) = (Vec::<Field>::new(), Vec::new());
    for field in schema.fields() {
        if position(&fields, field.name()).is_some() {
            misfits.push(Misfit::Duplicate { column: field.name().clone() });
            continue;
        }
        match from_arrow(field.data_type()) {
            Some(data_type) => {
                fields.push(Field { name: field.name().clone(), data_type, is_nullable: true, comment: None });
            }
            None => misfits
                .push(Misfit::Unstorable { column: field.name().clone(), data_type: field.data_type().to_string() }),
        }
    }
    match misfits.is_empty() {
        true => Ok(fields),
        false => Err(misfits),
    }
}

/// Returns the columns of `target` with what `given` adds to them.
///
/// # Errors
/// Every column of `given` that doesn't fit.
pub fn grow(target: &Columns, given: &[Field]) -> Result<Columns, Vec<Misfit>> {
    let (mut grown, mut misfits) = (target.clone(), Vec::new());
    for field in given {
        match position(&target.fields, &field.name) {
            Some(at) => {
                let column = &mut grown.fields[at];
                match merge_types(&column.data_type, &field.data_type) {
                    Some(merged) if merged == column.data_type => {}
                    // A struct may get new fields; the types that are there stay.
                    Some(merged) if !target.is_declared && only_adds_fields(&column.data_type, &merged) => {
                        column.data_type = merged;
                    }
                    _ => misfits.push(Misfit::Type {
                        column: column.name.clone(),
                        from: field.data_type.to_string(),
                        to: column.data_type.to_string(),
                    }),
                }
            }
            None if target.is_declared => misfits.push(Misfit::Undeclared { column: field.name.clone() }),
            None => {
                grown.fields.push(Field { is_nullable: true, ..field.clone() });
                grown.defaults.push(None);
            }
        }
    }
    match misfits.is_empty() {
        true => Ok(grown),
        false => Err(misfits),
    }
}

/// Returns the columns of `target` with those types widened that are wider in `given`; None if there is none, or if
/// they are declared.
pub fn widen(target: &Columns, given: &[Field]) -> Option<Columns> {
    let mut widened = target.clone();
    for field in given {
        let Some(at) = position(&target.fields, &field.name) else { continue };
        let column = &mut widened.fields[at];
        let merged = merge_types(&column.data_type, &field.data_type);
        if let Some(merged) = merged.filter(|merged| only_widens(&column.data_type, merged)) {
            column.data_type = merged;
        }
    }
    (!target.is_declared && widened != *target).then_some(widened)
}

/// True if `after` is `before` with fields added to structs in it.
fn only_adds_fields(before: &DataType, after: &DataType) -> bool {
    is_grown(before, after, &|before, after| before == after)
}

/// True if `after` is `before` with wider types and with fields added to structs in it.
fn only_widens(before: &DataType, after: &DataType) -> bool {
    is_grown(before, after, &|before, after| before == after || can_widen(before, after))
}

fn is_grown(before: &DataType, after: &DataType, leaf: &dyn Fn(&DataType, &DataType) -> bool) -> bool {
    use DataType::{Array, Map, Struct};
    match (before, after) {
        (Struct(before), Struct(after)) => before.iter().all(|field| {
            position(after, &field.name).is_some_and(|at| is_grown(&field.data_type, &after[at].data_type, leaf))
        }),
        (Array(before), Array(after)) => is_grown(before, after, leaf),
        (Map(k1, v1), Map(k2, v2)) => is_grown(k1, k2, leaf) && is_grown(v1, v2, leaf),
        (before, after) => leaf(before, after),
    }
}

/// Puts a projection on `plan` that gives exactly `columns`, by name without regard to case: missing ones
/// are their default or NULL, narrower types are widened.
pub fn by_name(plan: LogicalPlan, columns: &Columns) -> Result<LogicalPlan, DataFusionError> {
    let schema = plan.schema().clone();
    let mut expressions = Vec::with_capacity(columns.fields.len());
    for (field, default) in columns.fields.iter().zip(&columns.defaults) {
        let data_type = to_arrow(&field.data_type);
        let found = schema.iter().find(|(_, given)| given.name().eq_ignore_ascii_case(&field.name));
        let expression = match found {
            Some((qualifier, given)) => {
                let column = Expr::Column(Column::new(qualifier.cloned(), given.name()));
                match *given.data_type() == data_type {
                    true => column,
                    false => cast(column, data_type),
                }
            }
            None => match default {
                Some(value) => cast(lit(value.clone()), data_type),
                None => cast(lit(ScalarValue::Null), data_type),
            },
        };
        expressions.push(expression.alias(&field.name));
    }
    LogicalPlanBuilder::from(plan).project(expressions)?.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::ddl::parse_fields;

    fn columns(ddl: &str, is_declared: bool) -> Columns {
        let mut columns = Columns::grown(parse_fields(ddl).unwrap());
        columns.is_declared = is_declared;
        columns
    }

    #[test]
    fn columns_grow_by_what_flows_add_and_never_change() {
        let cases = [
            // target, declared, given, outcome
            ("a BIGINT", false, "A INT", "a BIGINT"),
            ("a BIGINT", false, "a BIGINT, b STRING", "a BIGINT, b STRING"),
            ("a BIGINT", false, "a STRING", "column `a` is STRING here and BIGINT in the table"),
            ("a INT", false, "a BIGINT", "column `a` is BIGINT here and INT in the table"),
            ("a BIGINT", true, "b STRING", "column `b` is not declared in the table"),
            ("s STRUCT<x: INT>", false, "s STRUCT<x: INT, y: STRING>", "s STRUCT<x: INT, y: STRING>"),
        ];
        for (target, is_declared, given, expected) in cases {
            let outcome = match grow(&columns(target, is_declared), &parse_fields(given).unwrap()) {
                Ok(grown) => grown
                    .fields
                    .iter()
                    .map(|field| format!("{} {}", field.name, field.data_type))
                    .collect::<Vec<_>>()
                    .join(", "),
                Err(misfits) => misfits.iter().map(Misfit::to_string).collect::<Vec<_>>().join("; "),
            };
            assert_eq!(outcome, expected, "{target} + {given}");
        }
    }
}
