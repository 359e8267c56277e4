//! Arithmetic with Spark's meaning: overflow, division, rounding.
//!
//! Not here: what DataFusion and datafusion-spark do as Spark does.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum, Float64Array, Int64Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, exec_datafusion_err};

use super::casts::type_name;
use super::function::{Call, Definition, Param, Returns};

const TWO_DOUBLES: &[Param] = &[Param::Double, Param::Double];

const TWO: &[Param] = &[Param::Any, Param::Any];

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("__add", TWO, Returns::From(wider), |call| checked(call, add), "a + b", "Of whole numbers"),
    Definition::new("__subtract", TWO, Returns::From(wider), |call| checked(call, sub), "a - b", "Of whole numbers"),
    Definition::new("__multiply", TWO, Returns::From(wider), |call| checked(call, mul), "a * b", "Of whole numbers"),
    Definition::new(
        "divide",
        TWO_DOUBLES,
        Returns::Double,
        |call| divide(call, false),
        "divide(a, b)",
        "a / b as doubles; an error if b is 0",
    ),
    Definition::new(
        "try_divide",
        TWO_DOUBLES,
        Returns::Double,
        |call| divide(call, true),
        "try_divide(a, b)",
        "a / b as doubles; NULL if b is 0",
    ),
    Definition::new(
        "div",
        &[Param::Long, Param::Long],
        Returns::Long,
        div,
        "a DIV b",
        "The whole part of the division; an error if b is 0",
    ),
    Definition::new(
        "bround",
        &[Param::Double, Param::Long],
        Returns::Double,
        bround,
        "bround(x [, digits])",
        "Rounded; a half goes to the even digit",
    )
    .optional(1),
    Definition::new(
        "format_number",
        &[Param::Double, Param::Long],
        Returns::Text,
        format_number,
        "format_number(x, digits)",
        "`#,###.##` with so many digits after the point",
    ),
];

/// The type of an operation on two whole numbers; unsigned ones are of our own making and small.
fn wider(args: &[DataType]) -> Result<DataType> {
    let width = |data_type: &DataType| match data_type {
        DataType::Int8 => 0,
        DataType::Int16 | DataType::UInt8 => 1,
        DataType::Int32 | DataType::UInt16 => 2,
        _ => 3,
    };
    let widest = args.iter().map(width).max().unwrap_or(3);
    Ok([DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64][widest].clone())
}

type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

/// Arrow's kernels of whole numbers fail where the result doesn't fit.
fn checked(call: &Call, kernel: Kernel) -> Result<ArrayRef> {
    let (left, right) = (cast(&call.args[0], call.returns)?, cast(&call.args[1], call.returns)?);
    kernel(&left, &right).map_err(|error| match error {
        ArrowError::ArithmeticOverflow(what) => exec_datafusion_err!(
            "{} overflow: {} (ARITHMETIC_OVERFLOW); cast a side to a wider type",
            type_name(call.returns),
            what.trim_start_matches("Overflow happened on: ")
        ),
        other => other.into(),
    })
}

fn by_zero() -> datafusion::error::DataFusionError {
    exec_datafusion_err!("division by zero (DIVIDE_BY_ZERO); `try_divide` gives NULL instead")
}

fn divide(call: &Call, is_lenient: bool) -> Result<ArrayRef> {
    let (left, right) = (call.args[0].as_primitive::<Float64Type>(), call.args[1].as_primitive::<Float64Type>());
    call.rows::<Float64Array, _>(|row| {
        if left.is_null(row) || right.is_null(row) {
            return Ok(None);
        }
        match right.value(row) {
            0.0 if is_lenient => Ok(None),
            0.0 => Err(by_zero()),
            divisor => Ok(Some(left.value(row) / divisor)),
        }
    })
}

fn div(call: &Call) -> Result<ArrayRef> {
    call.rows::<Int64Array, _>(|row| match (call.long(0, row), call.long(1, row)) {
        (Some(_), Some(0)) => Err(by_zero()),
        (Some(left), Some(right)) => left
            .checked_div(right)
            .map(Some)
            .ok_or_else(|| exec_datafusion_err!("BIGINT overflow (ARITHMETIC_OVERFLOW)")),
        _ => Ok(None),
    })
}

fn bround(call: &Call) -> Result<ArrayRef> {
    let numbers = call.args[0].as_primitive::<Float64Type>();
    call.rows::<Float64Array, _>(|row| {
        let digits = if call.has(1) { call.long(1, row) } else { Some(0) };
        let Some(digits) = digits.filter(|_| numbers.is_valid(row)) else { return Ok(None) };
        let scale = 10f64.powi(digits.clamp(-300, 300) as i32);
        Ok(Some((numbers.value(row) * scale).round_ties_even() / scale))
    })
}

fn format_number(call: &Call) -> Result<ArrayRef> {
    let numbers = call.args[0].as_primitive::<Float64Type>();
    call.rows::<StringArray, _>(|row| {
        let Some(digits) = call.long(1, row).filter(|_| numbers.is_valid(row)) else { return Ok(None) };
        if digits < 0 {
            return Ok(None);
        }
        let digits = digits.min(300) as usize;
        // Java's DecimalFormat rounds halves to even.
        let scale = 10f64.powi(digits as i32);
        let value = numbers.value(row);
        let scaled = (value * scale).round_ties_even() / scale;
        let text = format!("{:.digits$}", scaled.abs());
        let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
        let mut out = String::new();
        if scaled < 0.0 {
            out.push('-');
        }
        for (i, digit) in whole.chars().enumerate() {
            if i > 0 && (whole.len() - i) % 3 == 0 {
                out.push(',');
            }
            out.push(digit);
        }
        if let Some(fraction) = fraction {
            out.push('.');
            out.push_str(fraction);
        }
        Ok(Some(out))
    })
}
