//! Columns that the folders of a path spell: `year=2024/month=01` (behaviours B-33).
//!
//! Every `key=value` folder counts, also those above the glob, so that `year=2024/*/*` and `*/*/*` give the same
//! columns. Not here: which column wins where a file has one of the same name (`scan`: the path's).

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use percent_encoding::percent_decode_str;
use pipeline::data_type::{DataType, Field};
use pipeline::read_files::ReadFiles;

use super::list::{FileEntry, segments};
use crate::data_type::{position, widest_type};

/// What Hive and Spark write for NULL.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Returns the columns that a path spells, outermost first, a `None` value being NULL; of two folders of one name
/// the inner one counts.
pub fn values(path: &str) -> Vec<(String, Option<String>)> {
    let mut values: Vec<(String, Option<String>)> = Vec::new();
    let mut folders = segments(path);
    folders.next_back();
    for folder in folders {
        let Some((key, value)) = folder.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            continue;
        };
        let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (key, value) = (decode(key), (value != HIVE_NULL).then(|| decode(value)));
        match values.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&key)) {
            Some(known) => known.1 = value,
            None => values.push((key, value)),
        }
    }
    values
}

/// Tells whether `name` may be a partition column of this source.
pub fn is_wanted(spec: &ReadFiles, name: &str) -> bool {
    match &spec.partition_columns {
        Some(columns) => columns.iter().any(|column| column.eq_ignore_ascii_case(name)),
        None => !spec.recursive_file_lookup,
    }
}

/// Returns the partition columns of these files with the types that hold all their values.
pub fn infer(spec: &ReadFiles, files: &[FileEntry]) -> Vec<Field> {
    let mut columns: Vec<(String, Option<DataType>)> =
        spec.partition_columns.iter().flatten().map(|name| (name.clone(), None)).collect();
    // Files of one folder spell the same; thousands of them usually follow one another.
    let mut last_folder = "";
    for file in files {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if folder == last_folder {
            continue;
        }
        last_folder = folder;
        for (key, value) in values(&file.path) {
            if !is_wanted(spec, &key) {
                continue;
            }
            let data_type = value.as_deref().map(|value| value_type(value, spec.infer_column_types));
            match columns.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&key)) {
                Some((_, known)) => *known = merge(known.take(), data_type),
                None => columns.push((key, data_type)),
            }
        }
    }
    let field = |(name, data_type): (String, Option<DataType>)| Field {
        name,
        data_type: data_type.unwrap_or(DataType::String),
        is_nullable: true,
        comment: None,
    };
    columns.into_iter().map(field).collect()
}

fn merge(a: Option<DataType>, b: Option<DataType>) -> Option<DataType> {
    match (a, b) {
        (Some(a), Some(b)) => Some(widest_type(&a, &b)),
        (a, b) => a.or(b),
    }
}

/// As Spark: INT, BIGINT, DOUBLE, DATE, else STRING; leading zeros don't matter.
fn value_type(value: &str, infers: bool) -> DataType {
    let is_number = || value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    match value {
        _ if !infers => DataType::String,
        _ if value.parse::<i32>().is_ok() => DataType::Integer,
        _ if value.parse::<i64>().is_ok() => DataType::Long,
        _ if is_number() && value.parse::<f64>().is_ok() => DataType::Double,
        _ if is_date(value) => DataType::Date,
        _ => DataType::String,
    }
}

fn is_date(value: &str) -> bool {
    value.len() == 10 && chrono::NaiveDate::parse_from_str(value, "%Y-%m-%d").is_ok()
}

/// Returns a path's value as a value of the column's type; `None` if it isn't one.
pub fn constant(value: Option<&str>, data_type: &ArrowType) -> Option<ScalarValue> {
    match value {
        None => ScalarValue::try_from(data_type).ok(),
        Some(value) => ScalarValue::Utf8(Some(value.to_string())).cast_to(data_type).ok().filter(|it| !it.is_null()),
    }
}

/// Returns the value that a path spells for a column; the outer `None` says that it spells none.
pub fn value_of<'a>(values: &'a [(String, Option<String>)], name: &str) -> Option<Option<&'a str>> {
    values.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_deref())
}

/// Returns the keys of a path that no column of `columns` holds.
pub fn unknown<'a>(
    spec: &ReadFiles,
    values: &'a [(String, Option<String>)],
    columns: &[Field],
) -> impl Iterator<Item = &'a str> {
    let is_unknown = |key: &&str| is_wanted(spec, key) && position(columns, key).is_none();
    values.iter().map(|(key, _)| key.as_str()).filter(is_unknown).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{entry, read_files};
    use super::*;

    fn inferred(spec: &ReadFiles, paths: &[&str]) -> Vec<(String, DataType)> {
        let files: Vec<_> = paths.iter().map(|path| entry(path)).collect();
        infer(spec, &files).into_iter().map(|field| (field.name, field.data_type)).collect()
    }

    #[test]
    fn every_folder_with_an_equals_sign_is_a_column() {
        assert_eq!(
            values("/a=1/x/b=%2Fy%20z/c=__HIVE_DEFAULT_PARTITION__/=q/d=e=f/file=5.json"),
            [
                ("a".into(), Some("1".into())),
                ("b".into(), Some("/y z".into())),
                ("c".into(), None),
                ("d".into(), Some("e=f".into())),
            ]
        );
    }

    #[test]
    fn types_are_those_that_hold_every_value_of_the_files() {
        use DataType::*;
        let cases: [(&[&str], DataType); 9] = [
            (&["01", "12"], Integer),
            (&["1", "3000000000"], Long),
            (&["1", "2.5"], Double),
            (&["2024-02-29"], Date),
            (&["2024-02-30"], String),
            (&["2024-02-29", "7"], String),
            (&["a", "7"], String),
            (&["nan"], String),
            (&["__HIVE_DEFAULT_PARTITION__", "7"], Integer),
        ];
        for (values, data_type) in cases {
            for order in [values.to_vec(), values.iter().rev().copied().collect()] {
                let paths: Vec<_> = order.iter().map(|value| format!("/k={value}/f")).collect();
                let paths: Vec<_> = paths.iter().map(|path| &path[..]).collect();
                assert_eq!(inferred(&read_files("/"), &paths), [("k".to_string(), data_type.clone())], "{order:?}");
            }
        }
    }

    #[test]
    fn options_choose_the_columns_and_turn_types_off() {
        let paths = ["/a=1/b=2/f"];
        let spec = ReadFiles { partition_columns: Some(vec!["B".into(), "c".into()]), ..read_files("/") };
        assert_eq!(inferred(&spec, &paths), [("B".into(), DataType::Integer), ("c".into(), DataType::String)]);
        let spec = ReadFiles { partition_columns: Some(vec![]), ..read_files("/") };
        assert_eq!(inferred(&spec, &paths), []);
        let spec = ReadFiles { infer_column_types: false, ..read_files("/") };
        assert_eq!(inferred(&spec, &paths)[0], ("a".into(), DataType::String));
    }
}
