//! Spark's data types as the user writes them: `BIGINT`, `ARRAY<STRING>`, `STRUCT<a: INT, b: STRING>`.
//!
//! Not here: Arrow (the engine maps one to the other).

/// A data type of a column.
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
