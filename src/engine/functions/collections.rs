//! Arrays and maps: items by position or key, sizes, sorting, and what `explode` needs.
//!
//! Not here: what DataFusion and datafusion-spark do as Spark does.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, ListArray, StringArray, UInt32Array, new_null_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{SortOptions, cast, sort_to_indices, take};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};

use super::function::{Call, Definition, Param, Returns, list_of};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new(
        "array_item",
        &[Param::Array, Param::Long],
        Returns::From(element_type),
        |call| items(call, Counting::FromZero, false),
        "array[position]",
        "The element at a position from 0; an error out of bounds",
    ),
    Definition::new(
        "get",
        &[Param::Array, Param::Long],
        Returns::From(element_type),
        |call| items(call, Counting::FromZero, true),
        "get(array, position)",
        "The element at a position from 0; NULL out of bounds",
    ),
    Definition::new(
        "element_at",
        &[Param::Any, Param::Any],
        Returns::From(element_type),
        |call| element_at(call, false),
        "element_at(array | map, position | key)",
        "The element at a position from 1, from the end if negative; an error out of bounds. Of a map: the key's value",
    ),
    Definition::new(
        "try_element_at",
        &[Param::Any, Param::Any],
        Returns::From(element_type),
        |call| element_at(call, true),
        "try_element_at(array | map, position | key)",
        "As `element_at`; NULL out of bounds",
    ),
    Definition::new(
        "size",
        &[Param::Any],
        Returns::Int,
        size,
        "size(array | map)",
        "The number of elements; NULL for NULL",
    )
    .aliases(&["cardinality", "array_size"]),
    Definition::new(
        "sort_array",
        &[Param::Array, Param::Any],
        Returns::From(first_type),
        |call| {
            let is_descending = |row| call.has(1) && call.args[1].as_boolean_opt().is_some_and(|asc| !asc.value(row));
            sort(call, |row| SortOptions { descending: is_descending(row), nulls_first: !is_descending(row) })
        },
        "sort_array(array [, ascending])",
        "The array sorted; NULL is the least",
    )
    .optional(1),
    Definition::new(
        "array_sort",
        &[Param::Array],
        Returns::From(first_type),
        |call| sort(call, |_| SortOptions { descending: false, nulls_first: false }),
        "array_sort(array)",
        "The array sorted, NULL last",
    ),
    Definition::new(
        "reverse",
        &[Param::Any],
        Returns::From(reversed_type),
        reverse,
        "reverse(array | text)",
        "The elements or characters in opposite order",
    ),
    Definition::new(
        "map_contains_key",
        &[Param::Map, Param::Any],
        Returns::Boolean,
        |call| {
            let found = key_places(call)?;
            let found: BooleanArray = (0..call.rows)
                .map(|row| (!call.args[0].is_null(row) && !call.args[1].is_null(row)).then(|| found[row].is_some()))
                .collect();
            Ok(Arc::new(found))
        },
        "map_contains_key(map, key)",
        "True if the map has the key",
    ),
    Definition::new(
        "array_to_explode",
        &[Param::Any],
        Returns::From(explodable_type),
        |call| cast_to(&call.args[0], call.returns),
        "array_to_explode(array)",
        "The argument of `explode`, which must be an array",
    ),
    Definition::new(
        "array_or_null",
        &[Param::Array],
        Returns::From(first_type),
        array_or_null,
        "array_or_null(array)",
        "The array, or one NULL if it is empty or NULL: what `explode_outer` explodes",
    ),
    Definition::new(
        "array_positions_from_zero",
        &[Param::Array],
        Returns::From(|_| Ok(list_of(DataType::Int32))),
        positions,
        "array_positions_from_zero(array)",
        "0, 1, … for each element: the first column of `posexplode`",
    ),
];

#[derive(Clone, Copy, PartialEq)]
enum Counting {
    FromZero,
    /// And from the end, if negative.
    FromOne,
}

fn first_type(args: &[DataType]) -> Result<DataType> {
    Ok(args[0].clone())
}

fn element_type(args: &[DataType]) -> Result<DataType> {
    match &args[0] {
        DataType::List(field) => Ok(field.data_type().clone()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => Ok(fields[1].data_type().clone()),
            _ => plan_err!("a map without key and value"),
        },
        DataType::Null => Ok(DataType::Null),
        other => plan_err!("expected an array or a map, found {}", super::type_name(other)),
    }
}

fn explodable_type(args: &[DataType]) -> Result<DataType> {
    match &args[0] {
        DataType::List(_) => Ok(args[0].clone()),
        DataType::LargeList(field) | DataType::FixedSizeList(field, _) => Ok(DataType::List(field.clone())),
        DataType::Null => Ok(list_of(DataType::Null)),
        DataType::Map(..) => plan_err!("a map explodes into two columns: write `explode(map) AS (key, value)`"),
        other => plan_err!("only arrays and maps explode, not {}", super::type_name(other)),
    }
}

fn cast_to(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to { Ok(array.clone()) } else { Ok(cast(array, to)?) }
}

/// Takes from each row's list the element at the position in argument 1.
fn items(call: &Call, counting: Counting, is_lenient: bool) -> Result<ArrayRef> {
    let Some(list) = call.args[0].as_list_opt::<i32>() else {
        return Ok(new_null_array(call.returns, call.rows));
    };
    let positions = cast(&call.args[1], &DataType::Int64)?;
    let positions = positions.as_primitive::<Int64Type>();
    let indices = (0..call.rows).map(|row| {
        if list.is_null(row) || positions.is_null(row) {
            return Ok(None);
        }
        let (position, length) = (positions.value(row), i64::from(list.value_length(row)));
        let index = match counting {
            Counting::FromZero => position,
            Counting::FromOne if position > 0 => position - 1,
            Counting::FromOne if position < 0 => length + position,
            Counting::FromOne => return exec_err!("positions count from 1 or -1, not 0 (INVALID_INDEX_OF_ZERO)"),
        };
        if !(0..length).contains(&index) {
            if is_lenient {
                return Ok(None);
            }
            let instead = if counting == Counting::FromZero { "get" } else { "try_element_at" };
            return exec_err!(
                "position {position} is outside of an array of {length} elements (INVALID_ARRAY_INDEX); `{instead}` gives NULL instead"
            );
        }
        Ok(Some((i64::from(list.value_offsets()[row]) + index) as u32))
    });
    let indices = indices.collect::<Result<UInt32Array>>()?;
    Ok(take(list.values(), &indices, None)?)
}

fn element_at(call: &Call, is_lenient: bool) -> Result<ArrayRef> {
    if !matches!(call.args[0].data_type(), DataType::Map(..)) {
        return items(call, Counting::FromOne, is_lenient);
    }
    let indices = UInt32Array::from(key_places(call)?);
    Ok(take(call.args[0].as_map().values(), &indices, None)?)
}

/// The place of each row's key (argument 1) among the entries of all maps.
fn key_places(call: &Call) -> Result<Vec<Option<u32>>> {
    let map = call.args[0].as_map();
    let keys = cast(&call.args[1], map.keys().data_type())?;
    let place = |row: usize| -> Result<Option<u32>> {
        if map.is_null(row) || keys.is_null(row) {
            return Ok(None);
        }
        let wanted = ScalarValue::try_from_array(&keys, row)?;
        for i in map.value_offsets()[row]..map.value_offsets()[row + 1] {
            if ScalarValue::try_from_array(map.keys(), i as usize)? == wanted {
                return Ok(Some(i as u32));
            }
        }
        Ok(None)
    };
    (0..call.rows).map(place).collect()
}

fn size(call: &Call) -> Result<ArrayRef> {
    let array = &call.args[0];
    if array.data_type() == &DataType::Null {
        return Ok(new_null_array(&DataType::Int32, call.rows));
    }
    let lengths: Int32Array = match array.data_type() {
        DataType::Map(..) => {
            let map = array.as_map();
            (0..call.rows).map(|row| map.is_valid(row).then(|| map.value_length(row))).collect()
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (0..call.rows).map(|row| list.is_valid(row).then(|| list.value_length(row))).collect()
        }
        other => return exec_err!("`size` takes an array or a map, not {}", super::type_name(other)),
    };
    Ok(Arc::new(lengths))
}

fn sort(call: &Call, options: impl Fn(usize) -> SortOptions) -> Result<ArrayRef> {
    let list = call.args[0].as_list::<i32>();
    let mut indices: Vec<u32> = Vec::new();
    let mut lengths = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let start = list.value_offsets()[row] as u32;
        if list.is_null(row) {
            lengths.push(0);
            continue;
        }
        let sorted = sort_to_indices(&list.value(row), Some(options(row)), None)?;
        lengths.push(sorted.len());
        indices.extend(sorted.values().iter().map(|i| start + i));
    }
    let values = take(list.values(), &UInt32Array::from(indices), None)?;
    Ok(Arc::new(ListArray::try_new(
        element_field(list),
        OffsetBuffer::from_lengths(lengths),
        values,
        list.nulls().cloned(),
    )?))
}

/// Anything but an array is reversed as text.
fn reversed_type(args: &[DataType]) -> Result<DataType> {
    Ok(if matches!(args[0], DataType::List(_)) { args[0].clone() } else { DataType::Utf8 })
}

fn reverse(call: &Call) -> Result<ArrayRef> {
    let Some(list) = call.args[0].as_list_opt::<i32>() else {
        let texts = cast(&call.args[0], &DataType::Utf8)?;
        let texts = texts.as_string::<i32>().iter();
        let reversed = texts.map(|text| text.map(|text| text.chars().rev().collect::<String>()));
        return Ok(Arc::new(reversed.collect::<StringArray>()));
    };
    let (mut indices, mut lengths) = (Vec::new(), Vec::with_capacity(call.rows));
    for row in 0..call.rows {
        let before = indices.len();
        if list.is_valid(row) {
            indices.extend((list.value_offsets()[row] as u32..list.value_offsets()[row + 1] as u32).rev());
        }
        lengths.push(indices.len() - before);
    }
    let values = take(list.values(), &UInt32Array::from(indices), None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(element_field(list), offsets, values, list.nulls().cloned())?))
}

fn element_field(list: &ListArray) -> Arc<Field> {
    match list.data_type() {
        DataType::List(field) => field.clone(),
        other => Arc::new(Field::new_list_field(other.clone(), true)),
    }
}

fn array_or_null(call: &Call) -> Result<ArrayRef> {
    let list = call.args[0].as_list::<i32>();
    let mut indices: Vec<Option<u32>> = Vec::new();
    let mut lengths = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let (start, end) = (list.value_offsets()[row] as u32, list.value_offsets()[row + 1] as u32);
        let before = indices.len();
        if list.is_null(row) || start == end {
            indices.push(None);
        } else {
            indices.extend((start..end).map(Some));
        }
        lengths.push(indices.len() - before);
    }
    let values = take(list.values(), &UInt32Array::from(indices), None)?;
    Ok(Arc::new(ListArray::try_new(element_field(list), OffsetBuffer::from_lengths(lengths), values, None)?))
}

fn positions(call: &Call) -> Result<ArrayRef> {
    let list = call.args[0].as_list::<i32>();
    let mut values: Vec<i32> = Vec::new();
    let mut lengths = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let length = if list.is_null(row) { 0 } else { list.value_length(row) };
        values.extend(0..length);
        lengths.push(length as usize);
    }
    let field = Arc::new(Field::new_list_field(DataType::Int32, true));
    let values = Arc::new(Int32Array::from(values));
    Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, list.nulls().cloned())?))
}
