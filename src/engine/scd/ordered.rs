//! Keys, sequences and rows as ordered bytes within queries: functions of DataFusion over our codecs, so that it sorts
//! and aggregates them whatever their types, and spills what doesn't fit into memory.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryBuilder, RecordBatch, RecordBatchOptions};
use arrow::buffer::NullBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{ColumnarValue, Expr, Volatility, create_udf};

use crate::auto_cdc::encode::{ByteRows, KeyCodec, RowCodec};
use crate::error::{Error, Result};

/// The bytes of a key or a sequence; NULL if one of the columns is. `columns` are the arguments with their types.
pub(super) fn key_bytes(codec: &KeyCodec, columns: Vec<(Expr, ArrowType)>) -> Expr {
    let codec = codec.clone();
    bytes("flowbench_key", columns, move |batch| codec.encode(batch.columns()))
}

/// The bytes of a row: columns by name.
pub(super) fn row_bytes(codec: &RowCodec, columns: Vec<(String, Expr, ArrowType)>) -> Expr {
    let codec = codec.clone();
    let (names, columns): (Vec<String>, Vec<_>) =
        columns.into_iter().map(|(name, column, data_type)| (name, (column, data_type))).unzip();
    let encode = move |batch: &RecordBatch| {
        let fields = names.iter().zip(batch.schema_ref().fields());
        let fields = fields.map(|(name, field)| field.as_ref().clone().with_name(name));
        codec.encode(&record_batch(
            Schema::new(fields.collect::<Vec<_>>()),
            batch.columns().to_vec(),
            batch.num_rows(),
        )?)
    };
    call("flowbench_row", columns, move |batch| {
        let rows = encode(batch)?;
        let mut array = BinaryBuilder::with_capacity(batch.num_rows(), rows.byte_len());
        rows.iter().for_each(|row| array.append_value(row));
        Ok(Arc::new(array.finish()))
    })
}

fn bytes(
    name: &str,
    columns: Vec<(Expr, ArrowType)>,
    encode: impl Fn(&RecordBatch) -> Result<ByteRows> + Send + Sync + 'static,
) -> Expr {
    call(name, columns, move |batch| {
        let nulls = batch.columns().iter().fold(None, |nulls: Option<NullBuffer>, column| {
            NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
        let mut array = BinaryBuilder::with_capacity(batch.num_rows(), batch.num_rows() * 16);
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            None => encode(batch)?.iter().for_each(|row| array.append_value(row)),
            Some(nulls) => {
                let present = arrow::array::BooleanArray::new(nulls.inner().clone(), None);
                let rows = filter_record_batch(batch, &present).map_err(|error| Error::Internal(error.to_string()))?;
                let rows = encode(&rows)?;
                let mut rows = rows.iter();
                for row in 0..batch.num_rows() {
                    match nulls.is_valid(row) {
                        true => array.append_option(rows.next()),
                        false => array.append_null(),
                    }
                }
            }
        }
        Ok(Arc::new(array.finish()))
    })
}

fn call(
    name: &str,
    columns: Vec<(Expr, ArrowType)>,
    body: impl Fn(&RecordBatch) -> Result<ArrayRef> + Send + Sync + 'static,
) -> Expr {
    let (arguments, types): (Vec<Expr>, Vec<ArrowType>) = columns.into_iter().unzip();
    let fields = types.iter().enumerate().map(|(at, data_type)| Field::new(at.to_string(), data_type.clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let body = move |arguments: &[ColumnarValue]| {
        let columns = ColumnarValue::values_to_arrays(arguments)?;
        let rows = columns.first().map_or(1, |column| column.len());
        let array = record_batch(schema.clone(), columns, rows).and_then(|batch| body(&batch));
        array.map(ColumnarValue::Array).map_err(|error| DataFusionError::External(Box::new(error)))
    };
    create_udf(name, types, ArrowType::Binary, Volatility::Immutable, Arc::new(body)).call(arguments)
}

fn record_batch(schema: Schema, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
        .map_err(|error| Error::Internal(error.to_string()))
}
