//! One scalar function as a value: its parameters, the type of its result, how it is computed from arrays.
//!
//! Not here: any function.

use std::hash::{Hash, Hasher};

use chrono_tz::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::casts::type_name;

/// What a parameter takes; other types are cast to it, as Spark does implicitly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Param {
    /// STRING; numbers, dates and truth values become text.
    Text,
    /// BIGINT; text is read as a number.
    Long,
    Double,
    /// DATE, TIMESTAMP, TIMESTAMP_NTZ or text: see `moments`.
    Moment,
    Array,
    Map,
    /// Anything, unchanged.
    Any,
}

/// A function of ours.
pub(super) struct Definition {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub params: &'static [Param],
    /// How many of `params`, from the end, may be left out.
    pub optional: usize,
    pub returns: Returns,
    pub compute: fn(&Call) -> Result<ArrayRef>,
    /// `date_add(date, days)`.
    pub signature: &'static str,
    pub description: &'static str,
}

impl Definition {
    /// A function of `params`, all of them required.
    pub const fn new(
        name: &'static str,
        params: &'static [Param],
        returns: Returns,
        compute: fn(&Call) -> Result<ArrayRef>,
        signature: &'static str,
        description: &'static str,
    ) -> Definition {
        let aliases = &[];
        Definition { name, aliases, params, optional: 0, returns, compute, signature, description }
    }

    /// Also called by these names.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Definition {
        self.aliases = aliases;
        self
    }

    /// The last `count` parameters may be left out.
    pub const fn optional(mut self, count: usize) -> Definition {
        self.optional = count;
        self
    }
}

/// The type of a result.
#[derive(Clone, Copy)]
pub(super) enum Returns {
    Text,
    Int,
    Long,
    Double,
    Boolean,
    Date,
    Timestamp,
    TimestampNtz,
    TextArray,
    /// From the arguments' types.
    From(fn(&[DataType]) -> Result<DataType>),
}

/// One call over a batch: all arguments are arrays of the same length.
pub(super) struct Call<'a> {
    pub args: Vec<ArrayRef>,
    pub rows: usize,
    pub zone: Tz,
    pub returns: &'a DataType,
}

impl Call<'_> {
    /// A text argument.
    pub fn text(&self, i: usize) -> &StringArray {
        self.args[i].as_string::<i32>()
    }

    /// A number of a row; None for NULL.
    pub fn long(&self, i: usize, row: usize) -> Option<i64> {
        let array = self.args[i].as_primitive::<Int64Type>();
        array.is_valid(row).then(|| array.value(row))
    }

    /// True if the argument was given.
    pub fn has(&self, i: usize) -> bool {
        self.args.len() > i
    }

    /// The result of each row.
    pub fn rows<A, T>(&self, mut row: impl FnMut(usize) -> Result<Option<T>>) -> Result<ArrayRef>
    where
        A: FromIterator<Option<T>> + Array + 'static,
    {
        let values = (0..self.rows).map(&mut row).collect::<Result<A>>()?;
        Ok(std::sync::Arc::new(values))
    }

    /// The text of a row; None for NULL.
    pub fn str(&self, i: usize, row: usize) -> Option<&str> {
        let array = self.text(i);
        array.is_valid(row).then(|| array.value(row))
    }
}

/// A [`Definition`] as DataFusion sees it.
pub(super) struct Function {
    definition: &'static Definition,
    signature: Signature,
    aliases: Vec<String>,
    documentation: Documentation,
}

impl Function {
    pub fn new(definition: &'static Definition) -> Function {
        let section = DocSection { include: true, label: "Spark", description: None };
        Function {
            definition,
            signature: Signature::user_defined(Volatility::Immutable),
            aliases: definition.aliases.iter().map(|alias| alias.to_string()).collect(),
            documentation: Documentation::builder(section, definition.description, definition.signature).build(),
        }
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("name", &self.definition.name).finish()
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.documentation)
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        use crate::session::{timestamp, timestamp_ntz};
        Ok(match self.definition.returns {
            Returns::Text => DataType::Utf8,
            Returns::Int => DataType::Int32,
            Returns::Long => DataType::Int64,
            Returns::Double => DataType::Float64,
            Returns::Boolean => DataType::Boolean,
            Returns::Date => DataType::Date32,
            Returns::Timestamp => timestamp(),
            Returns::TimestampNtz => timestamp_ntz(),
            Returns::TextArray => list_of(DataType::Utf8),
            Returns::From(returns) => returns(args)?,
        })
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        let Definition { name, params, optional, signature, .. } = self.definition;
        let (least, most) = (params.len() - optional, params.len());
        if args.len() < least || args.len() > most {
            return plan_err!("function '{name}' takes other arguments: `{signature}`");
        }
        args.iter()
            .enumerate()
            .map(|(i, arg)| {
                let param = params[i.min(params.len().saturating_sub(1))];
                coerce(param, arg).ok_or_else(|| {
                    let message = format!(
                        "function '{name}' cannot take {} as its argument {}: `{signature}`",
                        type_name(arg),
                        i + 1
                    );
                    datafusion::error::DataFusionError::Plan(message)
                })
            })
            .collect()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if are_constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let call = Call {
            args: arrays,
            rows,
            zone: zone(args.config_options.execution.time_zone.as_deref())?,
            returns: args.return_field.data_type(),
        };
        let result = (self.definition.compute)(&call)?;
        if are_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// The session's time zone; UTC if none is set.
pub(super) fn zone(name: Option<&str>) -> Result<Tz> {
    match name {
        None | Some("UTC") | Some("+00:00") => Ok(Tz::UTC),
        Some(name) => name.parse().map_err(|_| exec_datafusion_err!("unknown time zone: `{name}`")),
    }
}

/// ARRAY of a type, as Arrow and Delta write it.
pub(super) fn list_of(element: DataType) -> DataType {
    DataType::List(std::sync::Arc::new(datafusion::arrow::datatypes::Field::new_list_field(element, true)))
}

/// The type that an argument is cast to; None if it can't be.
fn coerce(param: Param, arg: &DataType) -> Option<DataType> {
    let is_text = arg.is_string() || arg.is_null();
    let is_number = arg.is_numeric();
    Some(match param {
        Param::Any => match arg {
            DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
            other => other.clone(),
        },
        Param::Text if is_text || is_number || matches!(arg, DataType::Boolean | DataType::Date32) => DataType::Utf8,
        Param::Text if arg.is_binary() || matches!(arg, DataType::Timestamp(..)) => DataType::Utf8,
        Param::Long if is_text || is_number => DataType::Int64,
        Param::Double if is_text || is_number => DataType::Float64,
        Param::Moment => match arg {
            DataType::Date32 => DataType::Date32,
            DataType::Date64 => DataType::Date32,
            DataType::Timestamp(_, Some(_)) => crate::session::timestamp(),
            DataType::Timestamp(_, None) => crate::session::timestamp_ntz(),
            _ if is_text => DataType::Utf8,
            _ => return None,
        },
        Param::Array => match arg {
            DataType::List(_) => arg.clone(),
            DataType::LargeList(field) | DataType::ListView(field) | DataType::FixedSizeList(field, _) => {
                DataType::List(field.clone())
            }
            DataType::Null => list_of(DataType::Null),
            _ => return None,
        },
        Param::Map if matches!(arg, DataType::Map(..)) => arg.clone(),
        _ => return None,
    })
}
