//! Spark's type names as Arrow types, for casts and typed literals.
//!
//! Not here: the pipeline's own `DataType`, which is parsed apart from queries.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, ExactNumberInfo, StructField, TimezoneInfo,
};

/// Answers DataFusion's question which Arrow type a SQL type is.
#[derive(Debug)]
pub(super) struct SparkTypes;

impl TypePlanner for SparkTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        Ok(arrow_type(sql_type)?.map(|data_type| Arc::new(Field::new("", data_type, true))))
    }
}

/// TIMESTAMP: microseconds, an instant.
pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// TIMESTAMP_NTZ: microseconds of a wall clock.
pub(crate) fn timestamp_ntz() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// None: DataFusion's own answer is right.
fn arrow_type(sql_type: &SqlType) -> Result<Option<DataType>> {
    Ok(Some(match sql_type {
        SqlType::Timestamp(None, TimezoneInfo::None) => timestamp(),
        SqlType::TimestampNtz { .. } => timestamp_ntz(),
        SqlType::Timestamp(None, TimezoneInfo::WithoutTimeZone) => timestamp_ntz(),
        SqlType::Float(ExactNumberInfo::None) | SqlType::Real => DataType::Float32,
        SqlType::Binary(_) => DataType::Binary,
        SqlType::Decimal(ExactNumberInfo::None)
        | SqlType::Dec(ExactNumberInfo::None)
        | SqlType::Numeric(ExactNumberInfo::None) => DataType::Decimal128(10, 0),
        SqlType::Dec(ExactNumberInfo::Precision(precision)) => decimal(*precision, 0)?,
        SqlType::Dec(ExactNumberInfo::PrecisionAndScale(precision, scale)) => decimal(*precision, *scale)?,
        SqlType::Custom(name, _) => match name.to_string().to_ascii_lowercase().as_str() {
            "long" => DataType::Int64,
            "short" => DataType::Int16,
            "byte" => DataType::Int8,
            "timestamp_ntz" => timestamp_ntz(),
            "timestamp_ltz" => timestamp(),
            "void" => DataType::Null,
            "variant" => {
                return not_impl_err!("type VARIANT is not supported; keep JSON as STRING and read it with `:`");
            }
            other => return plan_err!("unknown type: `{other}`"),
        },
        SqlType::Array(ArrayElemTypeDef::AngleBracket(element)) => {
            DataType::List(Arc::new(Field::new_list_field(required(element)?, true)))
        }
        SqlType::Map(key, value) => map_of(required(key)?, required(value)?),
        SqlType::Struct(fields, _) => DataType::Struct(struct_fields(fields)?),
        _ => return Ok(None),
    }))
}

/// A type inside another, where DataFusion can't be asked.
pub(super) fn required(sql_type: &SqlType) -> Result<DataType> {
    if let Some(data_type) = arrow_type(sql_type)? {
        return Ok(data_type);
    }
    Ok(match sql_type {
        SqlType::String(_) | SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => DataType::Utf8,
        SqlType::Boolean | SqlType::Bool => DataType::Boolean,
        SqlType::TinyInt(_) => DataType::Int8,
        SqlType::SmallInt(_) => DataType::Int16,
        SqlType::Int(_) | SqlType::Integer(_) => DataType::Int32,
        SqlType::BigInt(_) => DataType::Int64,
        SqlType::Double(_) | SqlType::DoublePrecision => DataType::Float64,
        SqlType::Date => DataType::Date32,
        SqlType::Decimal(ExactNumberInfo::Precision(precision))
        | SqlType::Numeric(ExactNumberInfo::Precision(precision)) => decimal(*precision, 0)?,
        SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale))
        | SqlType::Numeric(ExactNumberInfo::PrecisionAndScale(precision, scale)) => decimal(*precision, *scale)?,
        other => return plan_err!("unknown type: `{other}`"),
    })
}

fn decimal(precision: u64, scale: i64) -> Result<DataType> {
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale)) if scale >= 0 && scale as u8 <= precision => {
            Ok(DataType::Decimal128(precision, scale))
        }
        _ => plan_err!("DECIMAL({precision},{scale}) is out of range: at most 38 digits, scale not above precision"),
    }
}

/// The map type that Arrow's readers and Delta agree on.
pub(crate) fn map_of(key: DataType, value: DataType) -> DataType {
    let entries = Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}

fn struct_fields(fields: &[StructField]) -> Result<Fields> {
    fields
        .iter()
        .enumerate()
        .map(|(i, field)| {
            let name = field.field_name.as_ref().map_or_else(|| format!("col{}", i + 1), |name| name.value.clone());
            Ok(Field::new(name, required(&field.field_type)?, true))
        })
        .collect()
}
