//! Whole records through decoder and inference: tables of cases, and serde_json as the oracle.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, FieldRef, Float64Type, Int64Type, Schema, TimeUnit,
    TimestampMicrosecondType,
};
use pipeline::read_files::{JsonOptions, ParseMode};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(field("element", element)))
}

fn object(fields: Vec<Field>) -> DataType {
    DataType::Struct(fields.into())
}

fn map(value: DataType) -> DataType {
    let entries = object(vec![Field::new("key", DataType::Utf8, false), field("value", value)]);
    DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
}

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn config(fields: Vec<Field>) -> DecoderConfig {
    DecoderConfig {
        schema: Arc::new(Schema::new(fields)),
        rescue: true,
        corrupt_column: None,
        parse_mode: ParseMode::Permissive,
        reader_case_sensitive: true,
        multi_line: false,
        time_zone: "UTC".into(),
        timestamp_format: None,
        date_format: None,
        options: JsonOptions::default(),
        batch_rows_max: 1000,
    }
}

/// Decodes everything as one batch.
fn decode(config: DecoderConfig, text: &[u8]) -> (DecodedBatch, DecodeStats, Arc<Schema>) {
    let mut decoder = Decoder::new(config).unwrap();
    decoder.begin_file("/data/f.json", 1);
    assert_eq!(decoder.decode(text).unwrap(), text.len());
    let batch = decoder.take().unwrap();
    assert!(batch.columns.iter().all(|column| column.len() == batch.row_count));
    (batch, decoder.stats(), decoder.schema().clone())
}

/// The value of a row as JSON: times as their numbers, binary as its bytes.
fn value_at(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => json!(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Binary => json!(column.as_binary::<i32>().value(row)),
        DataType::Date32 => json!(column.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(..) => json!(column.as_primitive::<TimestampMicrosecondType>().value(row)),
        DataType::Decimal128(..) => json!(column.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::List(_) => {
            let elements = column.as_list::<i32>().value(row);
            (0..elements.len()).map(|at| value_at(&elements, at)).collect()
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(row);
            let key = |at| entries.column(0).as_string::<i32>().value(at).to_string();
            Value::Object((0..entries.len()).map(|at| (key(at), value_at(entries.column(1), at))).collect())
        }
        DataType::Struct(fields) => {
            let children: &StructArray = column.as_struct();
            let member = |at: usize, field: &FieldRef| (field.name().clone(), value_at(children.column(at), row));
            Value::Object(fields.iter().enumerate().map(|(at, field)| member(at, field)).collect())
        }
        _ => {
            let text = arrow::util::display::array_value_to_string(column, row).unwrap();
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
    }
}

#[test]
fn a_value_fits_its_column_or_is_rescued() {
    use DataType::*;
    // Type, value as written, what the column holds; a misfit is given as None.
    let cases: Vec<(DataType, &str, Option<Value>)> = vec![
        (Boolean, "true", Some(json!(true))),
        (Boolean, "\"true\"", None),
        (Boolean, "1", None),
        (Int8, "127", Some(json!(127))),
        (Int8, "128", None),
        (Int16, "-32769", None),
        (Int32, "2147483647", Some(json!(2147483647))),
        (Int32, "2147483648", None),
        (Int64, "9223372036854775808", None),
        (Int64, "1.0", None),
        (Int64, "1e2", None),
        (Int64, "\"12\"", None),
        (Int64, "{\"a\":[1,{}]}", None),
        (Float32, "1.5", Some(json!(1.5))),
        (Float32, "1e39", None),
        (Float64, "12", Some(json!(12.0))),
        (Float64, "-0.25", Some(json!(-0.25))),
        (Float64, "1e999", None),
        (Float64, "\"1.5\"", None),
        (Decimal128(5, 2), "1.5", Some(json!("1.50"))),
        (Decimal128(5, 2), "\"-12.34\"", Some(json!("-12.34"))),
        (Decimal128(5, 2), "1.234", None),
        (Decimal128(5, 2), "1234", None),
        (Decimal128(5, 2), "\"1.5x\"", None),
        (Utf8, "\"a\\u00e9\\ud83d\\ude00\\n\"", Some(json!("aé😀\n"))),
        (Utf8, "12.50", Some(json!("12.50"))),
        (Utf8, "true", Some(json!("true"))),
        (Utf8, "{\"a\": [1, \"x\"]}", Some(json!("{\"a\": [1, \"x\"]}"))),
        (Binary, "\"aGk=\"", Some(json!([104, 105]))),
        (Binary, "\"aGk\"", None),
        (Binary, "\"a*k=\"", None),
        (Date32, "\"1970-01-31\"", Some(json!(30))),
        (Date32, "\"1970-02-31\"", None),
        (Date32, "5", None),
        (timestamp(), "\"1970-01-01T00:00:01.5+00:00\"", Some(json!(1_500_000))),
        (timestamp(), "\"1970-01-01 00:00:01.1234567\"", Some(json!(1_123_456))),
        (timestamp(), "2", Some(json!(2_000_000))),
        (timestamp(), "\"yesterday\"", None),
        (timestamp(), "1.5", None),
        (Timestamp(TimeUnit::Microsecond, None), "\"1970-01-01T00:00:01\"", Some(json!(1_000_000))),
        (Timestamp(TimeUnit::Microsecond, None), "\"1970-01-01T00:00:01Z\"", None),
        (list(Int64), "[1,null,3]", Some(json!([1, null, 3]))),
        (list(Int64), "[]", Some(json!([]))),
        (list(Int64), "7", None),
        (object(vec![field("a", Int64)]), "[]", None),
        (object(vec![field("a", Int64)]), "{}", Some(json!({"a": null}))),
        (map(Float64), "{\"x\":1,\"y\":null}", Some(json!({"x": 1.0, "y": null}))),
        (map(Float64), "[]", None),
    ];
    for (data_type, text, expected) in cases {
        let record = format!("{{\"n\":{text}}}\n{{\"n\":null}}\n{{}}\n");
        let (batch, stats, _) = decode(config(vec![field("n", data_type.clone())]), record.as_bytes());
        let misfits = expected.is_none() as u64;
        let rescued = match expected {
            Some(_) => String::new(),
            None => format!("{{\"n\":{text},\"_file_path\":\"/data/f.json\"}}"),
        };
        assert_eq!(value_at(&batch.columns[0], 0), expected.unwrap_or(Value::Null), "{data_type}: {text}");
        assert_eq!(rescued_text(&batch, 0), rescued, "{data_type}: {text}");
        assert_eq!((stats.records, stats.corrupt, stats.misfits), (3, 0, misfits), "{data_type}: {text}");
        assert!(batch.columns[0].is_null(1) && batch.columns[0].is_null(2));
    }
}

#[test]
fn what_has_no_column_is_rescued_where_it_was() {
    let fields = || {
        vec![
            field("id", DataType::Int64),
            field("user", object(vec![field("age", DataType::Int64), field("Name", DataType::Utf8)])),
            field("items", list(object(vec![field("n", DataType::Int64)]))),
            field("m", map(DataType::Int64)),
        ]
    };
    // A record, and what is rescued of it.
    let cases = [
        (r#"{"id":1,"user":{"age":2}}"#, ""),
        (r#"{"id":1,"x":{"y": [1]}}"#, r#""x":{"y": [1]}"#),
        (r#"{"user":{"age":"old","name":"A","z":1},"id":"x1"}"#, r#""user":{"age":"old","name":"A","z":1},"id":"x1""#),
        (r#"{"ID":1}"#, r#""ID":1"#),
        (r#"{"items":[{"n":1},{"n":"2"}]}"#, r#""items":[{"n":1},{"n":"2"}]"#),
        (r#"{"items":[{"n":1,"o":null}]}"#, ""),
        (r#"{"items":[{"n":1,"o":2}]}"#, r#""items":[{"n":1,"o":2}]"#),
        (r#"{"m":{"a":1,"b\n":"2"}}"#, r#""m":{"b\n":"2"}"#),
        (r#"{"gone":null}"#, ""),
    ];
    for (record, members) in cases {
        let (batch, ..) = decode(config(fields()), record.as_bytes());
        let expected = match members {
            "" => String::new(),
            members => format!("{{{members},\"_file_path\":\"/data/f.json\"}}"),
        };
        assert_eq!(rescued_text(&batch, 0), expected, "{record}");
    }

    let text: Vec<&str> = cases.iter().map(|(record, _)| *record).collect();
    let (batch, stats, _) = decode(config(fields()), text.join("\n").as_bytes());
    assert_eq!(batch.row_count, cases.len());
    let unknown: Vec<_> = stats.unknown.iter().map(|(path, count)| (path.as_str(), *count)).collect();
    assert_eq!(unknown, [("items.element.o", 1), ("user.z", 1), ("x", 1)]);
    assert_eq!((stats.misfits, stats.other_case), (4, 2));
    assert_eq!(value_at(&batch.columns[2], 4), json!([{"n": 1}, {"n": null}]));
    assert_eq!(value_at(&batch.columns[3], 7), json!({"a": 1, "b\n": null}));

    let without_rescue = DecoderConfig { rescue: false, ..config(fields()) };
    let (batch, stats_without, _) = decode(without_rescue, text.join("\n").as_bytes());
    assert!(batch.rescued.is_none());
    assert_eq!(stats_without, stats);
}

#[test]
fn keys_are_matched_in_any_case_if_the_reader_is_not_case_sensitive() {
    let config = DecoderConfig { reader_case_sensitive: false, ..config(vec![field("Id", DataType::Int64)]) };
    let (batch, stats, _) = decode(config, b"{\"ID\":1}\n{\"id\":2}\n{\"Id\":3}");
    let ids: Vec<_> = (0..3).map(|row| value_at(&batch.columns[0], row)).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(stats.other_case, 0);
}

#[test]
fn of_a_repeated_key_the_last_value_counts() {
    let fields = vec![field("a", object(vec![field("b", list(DataType::Utf8))])), field("c", DataType::Int64)];
    let text = br#"{"a":{"b":["x","y"]},"c":1,"a":{"b":["z"],"b":[]},"c":2}"#;
    let (batch, ..) = decode(config(fields), text);
    assert_eq!(value_at(&batch.columns[0], 0), json!({"b": []}));
    assert_eq!(value_at(&batch.columns[1], 0), json!(2));
}

#[test]
fn escaped_keys_and_odd_names_find_their_columns() {
    let fields =
        vec![field("naïve \"q\"", DataType::Int64), field("a.b", object(vec![])), field("tab\t", DataType::Utf8)];
    let text = "{ \"na\\u00efve \\\"q\\\"\" : 1 , \"a.b\" : { \"x\" : 1 } , \"tab\\u0009\" : \"t\" }\r\n";
    let (batch, stats, _) = decode(config(fields), text.as_bytes());
    assert_eq!(value_at(&batch.columns[0], 0), json!(1));
    assert_eq!(value_at(&batch.columns[2], 0), json!("t"));
    assert_eq!(stats.unknown.into_iter().collect::<Vec<_>>(), [("`a.b`.x".to_string(), 1)]);
}

const HALF_CORRUPT: &[u8] = b"{\"a\":1}\n{\"a\":2,\"new\":1,\n\n[1]\nid,name\n{\"a\":3}\n";

#[test]
fn corrupt_records_are_kept_with_their_text() {
    let (batch, stats, _) = decode(config(vec![field("a", DataType::Int64)]), HALF_CORRUPT);
    let rows: Vec<_> = (0..5).map(|row| value_at(&batch.columns[0], row)).collect();
    assert_eq!(rows, [json!(1), Value::Null, Value::Null, Value::Null, json!(3)]);
    assert_eq!(rescued_text(&batch, 1), r#"{"_corrupt_record":"{\"a\":2,\"new\":1,","_file_path":"/data/f.json"}"#);
    assert_eq!((stats.records, stats.corrupt, stats.dropped), (5, 3, 0));
    assert!(stats.unknown.is_empty(), "a corrupt record says nothing about fields");

    let fields = vec![field("_bad", DataType::Utf8), field("a", DataType::Int64)];
    let with_column = DecoderConfig { corrupt_column: Some(0), ..config(fields) };
    let (batch, stats, _) = decode(with_column, HALF_CORRUPT);
    assert_eq!(value_at(&batch.columns[0], 3), json!("id,name"));
    assert_eq!(value_at(&batch.columns[0], 0), Value::Null);
    assert_eq!((rescued_text(&batch, 3), stats.corrupt), (String::new(), 3));
}

#[test]
fn corrupt_records_are_dropped_or_stop_the_reader_if_the_mode_says_so() {
    let with_mode = |parse_mode| DecoderConfig { parse_mode, ..config(vec![field("a", DataType::Int64)]) };
    let (batch, stats, _) = decode(with_mode(ParseMode::DropMalformed), HALF_CORRUPT);
    assert_eq!((batch.row_count, stats.records, stats.corrupt, stats.dropped), (2, 5, 3, 3));

    let mut decoder = Decoder::new(with_mode(ParseMode::FailFast)).unwrap();
    decoder.begin_file("/data/f.json", 11);
    let error = decoder.decode(HALF_CORRUPT).unwrap_err();
    assert_eq!(error.code(), "malformed-record");
    assert_eq!(error.to_string(), "/data/f.json:12: malformed JSON record: the record ends too early");
}

#[test]
fn full_batches_go_on_where_they_stopped() {
    let text: String = (0..25).map(|n| format!("{{\"n\":{n}}}\n{}", if n % 7 == 0 { "\n" } else { "" })).collect();
    let mut decoder =
        Decoder::new(DecoderConfig { batch_rows_max: 10, ..config(vec![field("n", DataType::Int64)]) }).unwrap();
    decoder.begin_file("/data/f.json", 1);
    let (mut at, mut sizes, mut numbers) = (0, vec![], vec![]);
    while at < text.len() {
        at += decoder.decode(&text.as_bytes()[at..]).unwrap();
        let batch = decoder.take().unwrap();
        sizes.push(batch.row_count);
        numbers.extend((0..batch.row_count).map(|row| value_at(&batch.columns[0], row)));
    }
    assert_eq!(sizes, [10, 10, 5]);
    assert_eq!(numbers, (0..25).map(Value::from).collect::<Vec<_>>());
    decoder.begin_file("/data/g.json", 1);
    assert_eq!(decoder.decode(b"x").unwrap(), 1);
    assert_eq!(rescued_text(&decoder.take().unwrap(), 0), r#"{"_corrupt_record":"x","_file_path":"/data/g.json"}"#);
}

#[test]
fn a_document_is_an_object_or_an_array_of_objects() {
    // Document, rows, corrupt records.
    let cases = [
        ("{\n \"a\":\n 1\n}\n", 1, 0),
        ("\u{feff}[\n{\"a\":1},\n{\"a\":\"x\"}\n]\n", 2, 0),
        ("[]", 0, 0),
        ("", 0, 0),
        (" \n", 0, 0),
        ("[{\"a\":1},2]", 1, 1),
        ("{} {}", 1, 1),
        ("[{}", 1, 1),
        ("3", 1, 1),
    ];
    for (document, rows, corrupt) in cases {
        let config = DecoderConfig { multi_line: true, ..config(vec![field("a", DataType::Int64)]) };
        let (batch, stats, _) = decode(config, document.as_bytes());
        assert_eq!((batch.row_count, stats.corrupt), (rows, corrupt), "{document}");
        assert_eq!(stats.records, rows as u64, "{document}");
    }
}

#[test]
fn lenient_forms_and_words_for_numbers_are_read_if_allowed() {
    let options = JsonOptions {
        allow_single_quotes: true,
        allow_unquoted_field_names: true,
        allow_non_numeric_numbers: true,
        allow_comments: true,
        ..JsonOptions::default()
    };
    let text = b"{a: 'x', d: NaN} // one\n{a: NaN, d: '-Infinity'}\n{d: -INF}\n{d: Nan}\n{d: -1}";
    let fields = || vec![field("a", DataType::Utf8), field("d", DataType::Float64)];
    let (batch, stats, _) = decode(DecoderConfig { options, ..config(fields()) }, text);
    let doubles = batch.columns[1].as_primitive::<Float64Type>();
    assert!(doubles.value(0).is_nan());
    assert_eq!(&doubles.values()[1..3], [f64::NEG_INFINITY, f64::NEG_INFINITY]);
    assert_eq!(doubles.value(4), -1.0);
    assert_eq!(value_at(&batch.columns[0], 1), json!("NaN"));
    assert_eq!(stats.corrupt, 1);
    let options = JsonOptions { allow_non_numeric_numbers: true, ..JsonOptions::default() };
    let (batch, ..) = decode(DecoderConfig { options, ..config(fields()) }, br#"{"x":[NaN,"y"]}"#);
    assert_eq!(rescued_text(&batch, 0), r#"{"x":"[NaN,\"y\"]","_file_path":"/data/f.json"}"#);

    let (_, stats, _) = decode(config(fields()), text);
    assert_eq!(stats.corrupt, 5);
}

#[test]
fn time_patterns_and_zones_are_used() {
    let config = DecoderConfig {
        timestamp_format: Some("dd.MM.yyyy HH:mm".into()),
        date_format: Some("dd.MM.yyyy".into()),
        time_zone: "Asia/Tokyo".into(),
        ..config(vec![field("t", timestamp()), field("d", DataType::Date32)])
    };
    let (batch, ..) = decode(config, br#"{"t":"01.01.1970 09:01","d":"02.01.1970"}"#);
    assert_eq!((value_at(&batch.columns[0], 0), value_at(&batch.columns[1], 0)), (json!(60_000_000), json!(1)));
}

#[test]
fn deep_nesting_is_corrupt_and_no_crash() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [100, 100_000] {
            let text = format!("{{\"v\":{}1{}}}", open.repeat(depth), close.repeat(depth));
            let (_, stats, _) = decode(config(vec![field("x", DataType::Int64)]), text.as_bytes());
            assert_eq!(stats.corrupt, (depth > 1000) as u64);
            let mut inference = inference(JsonOptions::default());
            inference.observe(text.as_bytes());
            assert_eq!(inference.corrupt(), (depth > 1000) as u64);
        }
    }
}

#[test]
fn types_and_columns_that_cannot_be_are_refused() {
    let cases = [
        (config(vec![field("a", DataType::LargeUtf8)]), "unsupported-json-type"),
        (DecoderConfig { time_zone: "Mars".into(), ..config(vec![]) }, "unknown-time-zone"),
        (DecoderConfig { date_format: Some("EEE".into()), ..config(vec![]) }, "unsupported-datetime-pattern"),
        (DecoderConfig { corrupt_column: Some(0), ..config(vec![field("a", DataType::Int64)]) }, "corrupt-column-type"),
    ];
    for (config, code) in cases {
        assert_eq!(Decoder::new(config).err().map(|error| error.code()), Some(code));
    }
}

fn rescued_text(batch: &DecodedBatch, row: usize) -> String {
    let rescued = batch.rescued.as_ref().unwrap().as_string::<i32>();
    if rescued.is_null(row) { String::new() } else { rescued.value(row).to_string() }
}

fn inference(options: JsonOptions) -> Inference {
    Inference::new(InferenceConfig {
        infer_column_types: true,
        reader_case_sensitive: true,
        multi_line: false,
        time_zone: "UTC".into(),
        timestamp_format: None,
        options,
    })
    .unwrap()
}

/// A schema as `a: Int64, b: Struct<x: Utf8>`.
fn shown(fields: &[FieldRef]) -> String {
    let shown_type = |data_type: &DataType| -> String {
        match data_type {
            DataType::Struct(fields) => format!("<{}>", shown(fields)),
            DataType::List(element) => format!("[{}]", shown(std::slice::from_ref(element)).replace("element: ", "")),
            DataType::Timestamp(..) => "Timestamp".into(),
            other => other.to_string(),
        }
    };
    fields
        .iter()
        .map(|field| format!("{}: {}", field.name(), shown_type(field.data_type())))
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn the_inferred_type_holds_every_value() {
    let off = JsonOptions::default;
    let decimal = || JsonOptions { prefers_decimal: true, ..off() };
    let time = || JsonOptions { infer_timestamp: true, ..off() };
    let drop_null = || JsonOptions { drop_field_if_all_null: true, ..off() };
    let as_string = || JsonOptions { primitives_as_string: true, ..off() };
    let non_numeric = || JsonOptions { allow_non_numeric_numbers: true, prefers_decimal: true, ..off() };
    let cases = [
        (off(), r#"{"b":1,"a":true}"#, "a: Boolean, b: Int64"),
        (off(), "{\"n\":1}\n{\"n\":1.5}", "n: Float64"),
        (off(), "{\"n\":1}\n{\"n\":\"x1\"}", "n: Utf8"),
        (off(), "{\"n\":1}\n{\"n\":true}", "n: Utf8"),
        (off(), "{\"n\":{\"x\":1}}\n{\"n\":{\"y\":\"a\"}}\n{\"n\":null}", "n: <x: Int64, y: Utf8>"),
        (off(), "{\"n\":{\"x\":1}}\n{\"n\":2}", "n: Utf8"),
        (off(), "{\"n\":[]}\n{\"n\":[1,null]}\n{\"n\":[2.5]}", "n: [Float64]"),
        (off(), r#"{"n":[{"x":1},{"y":[[]]}]}"#, "n: [<x: Int64, y: [[Utf8]]>]"),
        (off(), r#"{"n":null,"e":[],"o":{}}"#, "e: [Utf8], n: Utf8, o: Utf8"),
        (drop_null(), r#"{"n":null,"e":[],"o":{},"k":{"z":null,"y":1}}"#, "k: <y: Int64>"),
        (off(), r#"{"n":9223372036854775808}"#, "n: Decimal128(19, 0)"),
        (off(), "{\"n\":1e400,\"m\":9223372036854775808}\n{\"m\":1.5}", "m: Float64, n: Float64"),
        (decimal(), "{\"n\":1.25,\"i\":1}\n{\"n\":100}\n{\"n\":1e-3}", "i: Int64, n: Decimal128(6, 3)"),
        (decimal(), r#"{"n":1e50}"#, "n: Float64"),
        (non_numeric(), "{\"n\":NaN}\n{\"n\":1.5}", "n: Float64"),
        (
            time(),
            "{\"t\":\"2024-01-31T00:00:00Z\",\"d\":\"2024-01-31\"}\n{\"t\":\"2024-01-31 10:00\"}",
            "d: Utf8, t: Timestamp",
        ),
        (time(), "{\"t\":\"2024-01-31T00:00:00Z\"}\n{\"t\":\"soon\"}", "t: Utf8"),
        (off(), r#"{"t":"2024-01-31T00:00:00Z"}"#, "t: Utf8"),
        (as_string(), r#"{"a":1,"b":[true],"c":{"d":1.5}}"#, "a: Utf8, b: [Utf8], c: <d: Utf8>"),
        (off(), "{\"a\":1}\n{\"A\":\"x\"}\n{\"A\":\"y\"}", "A: Utf8"),
        (off(), "{\"a\":1}\n{\"b\":2,\n[1]\n{\"c\":1} x", "a: Int64"),
    ];
    for (options, text, expected) in cases {
        let mut inference = inference(options);
        inference.observe(text.as_bytes());
        assert_eq!(shown(inference.finish().fields()), expected, "{text}");
    }
}

#[test]
fn without_column_types_every_column_is_a_string() {
    let mut config = inference(JsonOptions::default()).config().clone();
    config.infer_column_types = false;
    let mut inference = Inference::new(config).unwrap();
    inference.observe(br#"{"a":1,"b":{"c":[1]}}"#);
    assert_eq!(shown(inference.finish().fields()), "a: Utf8, b: Utf8");
}

/// JSON values, with numbers that every parser reads alike.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |n| n.is_finite().then(|| Value::from(n))),
        any::<String>().prop_map(Value::from),
        "[a-z\"\\\\]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[a-e]", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn records() -> impl Strategy<Value = Vec<Value>> {
    let record = prop::collection::hash_map("[a-dA-D]", values(), 0..5);
    prop::collection::vec(record.prop_map(|members| Value::Object(members.into_iter().collect())), 0..8)
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// What a column of this type holds of a value that fits it, as far as the inferred types go.
fn expected(data_type: &DataType, value: &Value) -> Value {
    match (data_type, value) {
        (_, Value::Null) => Value::Null,
        (DataType::Utf8, Value::String(text)) => json!(text),
        (DataType::Utf8, value) => json!(value.to_string()),
        (DataType::Float64, value) => json!(value.as_f64().unwrap()),
        (DataType::List(element), Value::Array(values)) => {
            values.iter().map(|value| expected(element.data_type(), value)).collect()
        }
        (DataType::Struct(fields), Value::Object(members)) => Value::Object(
            fields
                .iter()
                .map(|field| {
                    let value = members.get(field.name()).unwrap_or(&Value::Null);
                    (field.name().clone(), expected(field.data_type(), value))
                })
                .collect(),
        ),
        (_, value) => value.clone(),
    }
}

proptest! {
    #[test]
    fn records_come_out_as_serde_json_reads_them(records in records()) {
        let text = lines(&records);
        let mut inference = inference(JsonOptions::default());
        inference.observe(text.as_bytes());
        let schema = inference.finish();
        let fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        let (batch, stats, schema) = decode(config(fields), text.as_bytes());
        prop_assert_eq!(batch.row_count, records.len());
        prop_assert_eq!((stats.corrupt, stats.misfits), (0, 0));
        prop_assert!(stats.unknown.is_empty());
        if !batch.columns.is_empty() {
            RecordBatch::try_new(schema.clone(), batch.columns.clone()).unwrap();
        }
        for (row, record) in records.iter().enumerate() {
            for (field, column) in schema.fields().iter().zip(&batch.columns) {
                let value = record.get(field.name()).unwrap_or(&Value::Null);
                prop_assert_eq!(value_at(column, row), expected(field.data_type(), value), "{}", record);
            }
        }
    }

    #[test]
    fn corrupt_is_what_serde_json_refuses(
        record in values(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 0..3),
        in_schema in prop::bool::ANY,
    ) {
        let mut text = json!({"a": record, "b": {"c": [1.5e3, "\u{1F600}\u{7}", true]}}).to_string().into_bytes();
        for (index, byte, kind) in changes {
            let at = index.index(text.len());
            // Line ends would make it another record; a few bytes are likelier to leave it well-formed.
            let byte = if kind == 0 { byte } else { b"0123456789eE+-.,:\"\\{}[]u tn"[byte as usize % 27] };
            if byte != b'\n' {
                text[at] = byte;
            }
        }
        let verdict = serde_json::from_slice::<serde_json::Map<String, Value>>(&text);
        // A number beyond all doubles is well-formed; it just fits no column.
        let is_corrupt = verdict.as_ref().is_err_and(|error| !error.to_string().contains("out of range"));
        let fields = if in_schema {
            vec![field("b", object(vec![field("c", list(DataType::Float64))])), field("a", object(vec![field("a", map(DataType::Int64))]))]
        } else {
            vec![]
        };
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let (batch, stats, schema) = decode(config(fields), &text);
        if !verdict.is_err_and(|error| error.to_string().contains("out of range")) {
            prop_assert_eq!(stats.corrupt == 1, is_corrupt, "{}", String::from_utf8_lossy(&text));
        }
        prop_assert_eq!(batch.row_count, 1);
        if !schema.fields().is_empty() {
            RecordBatch::try_new(schema, batch.columns).unwrap();
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(text in prop::collection::vec(any::<u8>(), 0..200), multi_line in any::<bool>(), all in any::<bool>()) {
        let options = JsonOptions {
            allow_comments: all,
            allow_single_quotes: all,
            allow_unquoted_field_names: all,
            allow_non_numeric_numbers: all,
            allow_numeric_leading_zeros: all,
            allow_backslash_escaping_any_character: all,
            allow_unquoted_control_chars: all,
            ..JsonOptions::default()
        };
        decode(DecoderConfig { multi_line, options, ..config(vec![field("a", DataType::Int64)]) }, &text);
    }

    #[test]
    fn the_schema_does_not_depend_on_order_or_merging(records in records(), cut in any::<prop::sample::Index>(), flags in any::<[bool; 4]>()) {
        let options = JsonOptions {
            prefers_decimal: flags[0],
            infer_timestamp: flags[1],
            drop_field_if_all_null: flags[2],
            primitives_as_string: flags[3],
            ..JsonOptions::default()
        };
        let observe = |records: &[Value]| {
            let mut inference = inference(options.clone());
            inference.observe(lines(records).as_bytes());
            inference
        };
        let whole = observe(&records).finish();
        let (front, back) = records.split_at(cut.index(records.len() + 1));
        let merged = observe(back).merge(observe(front));
        prop_assert_eq!(merged.records(), records.len() as u64);
        prop_assert_eq!(&merged.finish(), &whole);
        let mut reversed = records.clone();
        reversed.reverse();
        let (a, b) = reversed.split_at(reversed.len() / 2);
        prop_assert_eq!(&observe(&[]).merge(observe(b).merge(observe(a))).finish(), &whole);
    }
}
