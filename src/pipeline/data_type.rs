//! Spark's data types as the user writes them: `BIGINT`, `ARRAY<STRING>`, `STRUCT<a: INT, b: STRING>`.
//!
//! The grammar is in `ddl.rs`. Not here: Arrow (the engine maps one to the other).

use std::fmt;

/// A data type of a column. Its `Display` is Spark's spelling, which [`crate::ddl::parse_type`] reads back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum DataType {
    Boolean,
    /// TINYINT
    Byte,
    /// SMALLINT
    Short,
    /// INT
    Integer,
    /// BIGINT
    Long,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: i8,
    },
    String,
    Binary,
    Date,
    /// Microseconds, UTC.
    Timestamp,
    /// Microseconds, without zone.
    TimestampNtz,
    Array(Box<DataType>),
    Map(Box<DataType>, Box<DataType>),
    Struct(Vec<Field>),
}

/// A named part of a schema or a struct.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Field {
    pub name: String,
    pub data_type: DataType,
    pub is_nullable: bool,
    pub comment: Option<String>,
}

impl DataType {
    /// True if AUTO CDC can order rows by values of the type: no array or map is in it.
    pub fn has_order(&self) -> bool {
        match self {
            DataType::Array(_) | DataType::Map(..) => false,
            DataType::Struct(fields) => fields.iter().all(|field| field.data_type.has_order()),
            _ => true,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Boolean => f.write_str("BOOLEAN"),
            DataType::Byte => f.write_str("TINYINT"),
            DataType::Short => f.write_str("SMALLINT"),
            DataType::Integer => f.write_str("INT"),
            DataType::Long => f.write_str("BIGINT"),
            DataType::Float => f.write_str("FLOAT"),
            DataType::Double => f.write_str("DOUBLE"),
            DataType::Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
            DataType::String => f.write_str("STRING"),
            DataType::Binary => f.write_str("BINARY"),
            DataType::Date => f.write_str("DATE"),
            DataType::Timestamp => f.write_str("TIMESTAMP"),
            DataType::TimestampNtz => f.write_str("TIMESTAMP_NTZ"),
            DataType::Array(element) => write!(f, "ARRAY<{element}>"),
            DataType::Map(key, value) => write!(f, "MAP<{key}, {value}>"),
            DataType::Struct(fields) => {
                f.write_str("STRUCT<")?;
                for (i, field) in fields.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write_field(f, field, ": ")?;
                }
                f.write_str(">")
            }
        }
    }
}

/// As a column of a column list: `id BIGINT NOT NULL COMMENT 'the key'`.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_field(f, self, " ")
    }
}

fn write_field(f: &mut fmt::Formatter<'_>, field: &Field, between: &str) -> fmt::Result {
    let is_plain = !field.name.is_empty() && field.name.chars().all(|c| c == '_' || c.is_alphanumeric());
    match is_plain {
        true => f.write_str(&field.name)?,
        false => write!(f, "`{}`", field.name.replace('`', "``"))?,
    }
    write!(f, "{between}{}", field.data_type)?;
    if !field.is_nullable {
        f.write_str(" NOT NULL")?;
    }
    if let Some(comment) = &field.comment {
        write!(f, " COMMENT '{}'", comment.replace('\\', "\\\\").replace('\'', "\\'"))?;
    }
    Ok(())
}
