//! Keys and sequences: their order, their bytes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType as ArrowType;
use pipeline::data_type::DataType;
use proptest::prelude::*;

use super::value::{self, Value, array, column, compare_rows, orderable, structure};
use crate::auto_cdc::encode::{KeyCodec, NullCount, count_nulls};

fn encode_one(data_type: &DataType, value: Value) -> String {
    let codec = KeyCodec::new(vec![data_type.clone()]).unwrap();
    let rows = codec.encode(&[array(data_type, &[value])]).unwrap();
    rows.get(0).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_of_keys_do_not_change() {
    use Value::{Boolean, Bytes, Decimal, Float, Null, Number, Parts};
    let sequence = structure(vec![DataType::Short, structure(vec![DataType::String]), DataType::Boolean]);
    for (data_type, value, expected) in [
        (DataType::Boolean, Boolean(true), "01"),
        (DataType::Byte, Number(-1), "7f"),
        (DataType::Short, Number(258), "8102"),
        (DataType::Integer, Number(-2), "7ffffffe"),
        (DataType::Long, Number(1), "8000000000000001"),
        (DataType::Date, Number(20_000), "80004e20"),
        (DataType::Timestamp, Number(-1), "7fffffffffffffff"),
        (DataType::TimestampNtz, Number(0), "8000000000000000"),
        (DataType::Decimal { precision: 20, scale: 3 }, Decimal(-1), "7fffffffffffffffffffffffffffffff"),
        (DataType::Float, Float(1.5), "bfc00000"),
        (DataType::Float, Float(-1.5), "403fffff"),
        (DataType::Double, Float(-0.0), "8000000000000000"),
        (DataType::Double, Float(f64::NEG_INFINITY), "000fffffffffffff"),
        (DataType::Double, Float(-f64::NAN), "fff8000000000000"),
        (DataType::String, Bytes(b"a\0b".to_vec()), "6100ff620000"),
        (DataType::Binary, Bytes(vec![]), "0000"),
        (sequence.clone(), Parts(vec![Number(1), Parts(vec![Bytes(b"x".to_vec())]), Null]), "018001010178000000"),
        (sequence.clone(), Parts(vec![Null, Parts(vec![Null]), Boolean(false)]), "0001000100"),
        (sequence, Parts(vec![Null, Null, Boolean(true)]), "00000101"),
    ] {
        assert_eq!(encode_one(&data_type, value.clone()), expected, "{data_type}: {value:?}");
    }
}

#[test]
fn arrays_and_maps_are_no_keys() {
    let array = DataType::Array(Box::new(DataType::Long));
    for data_type in [array.clone(), structure(vec![DataType::Long, array])] {
        assert_eq!(KeyCodec::new(vec![data_type]).unwrap_err().code(), "non-orderable-key");
    }
}

#[test]
fn nulls_are_counted_and_not_encoded() {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(1), None, None]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
    let counts = count_nulls(&[Arc::clone(&ids), Arc::clone(&names)], 2);
    assert_eq!(counts, [NullCount { count: 3, rows: vec![0, 2] }, NullCount { count: 0, rows: vec![] }]);
    let codec = KeyCodec::new(vec![DataType::Long, DataType::String]).unwrap();
    assert_eq!(codec.encode(&[ids, names]).unwrap_err().code(), "internal");
}

#[test]
fn all_forms_of_strings_have_the_same_bytes() {
    let names: ArrayRef =
        Arc::new(StringArray::from(vec!["skipped", "", "a\0", "a long name that no view has inline"]));
    let codec = KeyCodec::new(vec![DataType::String]).unwrap();
    let expected = codec.encode(&[names.slice(1, 3)]).unwrap();
    let dictionary = ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8));
    for form in [ArrowType::LargeUtf8, ArrowType::Utf8View, dictionary] {
        let column = cast(&names, &form).unwrap().slice(1, 3);
        assert_eq!(codec.encode(&[column]).unwrap(), expected, "{form}");
    }
    let wrong: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    assert_eq!(codec.encode(&[wrong]).unwrap_err().code(), "internal");
}

fn typed_rows() -> impl Strategy<Value = (Vec<DataType>, Vec<Vec<Value>>)> {
    prop::collection::vec(orderable(2), 1..4).prop_flat_map(|types| (Just(types.clone()), value::rows(&types, false)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_sort_as_values_and_no_key_begins_another((types, rows) in typed_rows()) {
        let codec = KeyCodec::new(types.clone()).unwrap();
        let columns: Vec<ArrayRef> = types.iter().enumerate().map(|(i, t)| array(t, &column(&rows, i))).collect();
        let bytes = codec.encode(&columns).unwrap();
        prop_assert_eq!(bytes.len(), rows.len());
        for (i, a) in rows.iter().enumerate() {
            for (j, b) in rows.iter().enumerate() {
                let (x, y) = (bytes.get(i), bytes.get(j));
                prop_assert_eq!(compare_rows(a, b), x.cmp(y), "{:?} {:?}", a, b);
                prop_assert!(x == y || !x.starts_with(y));
            }
        }
        let decoded = codec.decode(bytes.iter()).unwrap();
        for (i, (data_type, decoded)) in types.iter().zip(&decoded).enumerate() {
            prop_assert_eq!(decoded.data_type(), columns[i].data_type());
            let decoded = value::read(decoded, data_type);
            for (row, decoded) in rows.iter().zip(&decoded) {
                prop_assert!(row[i].compare(decoded).is_eq(), "{:?} {:?}", row[i], decoded);
            }
        }
        // What was decoded has the same bytes.
        prop_assert_eq!(codec.encode(&decoded).unwrap(), bytes);
    }

    #[test]
    fn malformed_keys_are_errors((types, rows) in typed_rows(), cut in any::<prop::sample::Index>(), change in 0..255u8) {
        let codec = KeyCodec::new(types.clone()).unwrap();
        let columns: Vec<ArrayRef> = types.iter().enumerate().map(|(i, t)| array(t, &column(&rows, i))).collect();
        let bytes = codec.encode(&columns).unwrap().get(0).to_vec();
        let at = cut.index(bytes.len());
        prop_assert_eq!(codec.decode([&bytes[..at]]).unwrap_err().code(), "side-table-corrupted");
        prop_assert!(codec.decode([[&bytes[..], &[0]].concat().as_slice()]).is_err());
        let mut changed = bytes;
        changed[at] ^= change;
        // Another key or an error, but no panic.
        let _ = codec.decode([changed.as_slice()]);
    }
}
