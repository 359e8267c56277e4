//! Which columns of a flow's query are keys and which are values, in the types that the target has them; and what of
//! that the target's side table records.

use datafusion::common::{Column, DataFusionError};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use pipeline::auto_cdc::{ChangeFlow, DELETE_COLUMN, END_AT, START_AT, ScdType, is_internal};
use pipeline::data_type::{DataType, Field};

use super::position::POSITION;
use super::spec::{TargetSpec, is_interval};
use crate::columns::{Columns, Misfit, grow, output_fields};
use crate::data_type::{from_arrow, position, to_arrow};

/// The columns of one flow in its target.
#[derive(Debug, Clone)]
pub struct FlowColumns {
    /// All of the target's, those that the flow adds included.
    pub table: Columns,
    /// Names and types of those that the flow adds.
    pub added: Vec<(String, String)>,
    /// As the target has them.
    pub keys: Vec<Field>,
    /// What the flow gives beside the keys, as the target has it.
    pub values: Vec<Field>,
    /// Columns of the query that the flow doesn't give the target.
    pub left_out: Vec<String>,
    pub spec: TargetSpec,
}

impl FlowColumns {
    /// The columns of a flow whose query gives `schema`, with a sequence of type `sequence`, into a target that has
    /// `table`.
    ///
    /// # Errors
    /// Every column that doesn't fit the target.
    pub fn of(
        change: &ChangeFlow,
        schema: &arrow::datatypes::Schema,
        sequence: DataType,
        table: &Columns,
    ) -> Result<FlowColumns, Vec<Misfit>> {
        let given: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        reserved(change, &given)?;
        let kept = change.kept_columns(&given);
        let kept_schema = schema.project(&kept).expect("the indices are the schema's own");
        let mut fields = output_fields(&kept_schema)?;
        if change.scd_type() == ScdType::Two {
            fields.extend(interval(&sequence));
        }
        let before = table;
        let table = grow(before, &fields)?;
        // Of a table of type 1 these are columns as any: it may be a copy of one of type 2.
        let is_own = |name: &str| change.scd_type() == ScdType::Two && is_interval(name);
        let in_table = |name: &str| position(&table.fields, name).map(|at| table.fields[at].clone());
        let values: Vec<Field> = fields
            .iter()
            .filter(|field| !change.is_key(&field.name) && !is_own(&field.name))
            .filter_map(|field| in_table(&field.name))
            .collect();
        let is_left_out = |at: &usize| !kept.contains(at);
        let left_out = (0..given.len()).filter(is_left_out).map(|at| given[at].to_string()).collect();
        let spec = TargetSpec::of(change, &table.fields, sequence);
        Ok(FlowColumns { keys: spec.keys.clone(), added: table.added_to(before), table, values, left_out, spec })
    }

    /// The query with keys and values in the target's types, and what is told apart by name: sequence, conditions,
    /// positions.
    pub fn project(&self, query: LogicalPlan, more: &[&str]) -> Result<LogicalPlan, DataFusionError> {
        let schema = query.schema().clone();
        let mut expressions = Vec::new();
        for (qualifier, field) in schema.iter() {
            let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            let wanted =
                self.keys.iter().chain(&self.values).find(|wanted| wanted.name.eq_ignore_ascii_case(field.name()));
            match wanted {
                Some(wanted) => {
                    let data_type = to_arrow(&wanted.data_type);
                    let column = if *field.data_type() == data_type { column } else { cast(column, data_type) };
                    expressions.push(column.alias(&wanted.name));
                }
                None if is_internal(field.name())
                    || more.iter().any(|more| more.eq_ignore_ascii_case(field.name())) =>
                {
                    expressions.push(column.alias(field.name()));
                }
                None => {}
            }
        }
        LogicalPlanBuilder::from(query).project(expressions)?.build()
    }
}

/// Refuses columns of the source whose names are AUTO CDC's: they would be taken for conditions, sequences or bounds.
fn reserved(change: &ChangeFlow, given: &[&str]) -> Result<(), Vec<Misfit>> {
    let is_table_feed = change.reads_table_feed(given);
    let is_added = |name: &str| name == POSITION || change.adds(name) || (is_table_feed && name == DELETE_COLUMN);
    let is_once = |name: &str| given.iter().filter(|other| **other == name).count() == 1;
    let misfits: Vec<Misfit> = given
        .iter()
        .filter(|name| change.reserves(name) && !(is_added(name) && is_once(name)))
        .map(|name| Misfit::Reserved { column: name.to_string() })
        .collect();
    match misfits.is_empty() {
        true => Ok(()),
        false => Err(misfits),
    }
}

/// `__START_AT` and `__END_AT`.
pub fn interval(sequence: &DataType) -> [Field; 2] {
    [START_AT, END_AT].map(|name| Field {
        name: name.to_string(),
        data_type: sequence.clone(),
        is_nullable: true,
        comment: None,
    })
}

/// The type of a column of a query; None if there is none, or no table can hold it.
pub fn type_of(query: &LogicalPlan, column: &str) -> Option<DataType> {
    let mut fields = query.schema().fields().iter();
    from_arrow(fields.find(|field| field.name() == column)?.data_type())
}
