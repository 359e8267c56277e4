//! Rows and layouts: round trips, growing, equality, their bytes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, NullArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields, Schema};
use pipeline::data_type::{DataType, Field};
use proptest::prelude::*;

use super::value::{self, Value, any_type, array, column, field, structure};
use crate::auto_cdc::encode::{Layout, LeafKind, RowCodec, join};
use crate::data_type::schema_to_arrow;

fn columns_of(types: &[DataType]) -> Vec<Field> {
    types.iter().enumerate().map(|(i, data_type)| field(&format!("c{i}"), data_type.clone())).collect()
}

fn batch(columns: &[Field], rows: &[Vec<Value>]) -> RecordBatch {
    let arrays = columns.iter().enumerate().map(|(i, field)| array(&field.data_type, &column(rows, i))).collect();
    RecordBatch::try_new(schema_to_arrow(columns), arrays).unwrap()
}

fn encode(columns: &[Field], rows: &[Vec<Value>]) -> Vec<Vec<u8>> {
    let codec = RowCodec::new(&Layout::new(columns).unwrap());
    codec.encode(&batch(columns, rows)).unwrap().iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn the_bytes_of_rows_do_not_change() {
    use Value::{Boolean, Bytes, Decimal, Float, Null, Number, Parts};
    let pair = structure(vec![DataType::Short, DataType::String]);
    let text = |text: &str| Bytes(text.into());
    for (types, row, expected) in [
        (vec![DataType::Boolean, DataType::Byte], vec![Boolean(true), Number(-1)], "02 0201 02ff"),
        (vec![DataType::Integer, DataType::Long], vec![Number(1), Number(2)], "02 0501000000 090200000000000000"),
        (vec![DataType::Double], vec![Float(-0.0)], "01 090000000000000080"),
        (vec![DataType::Float], vec![Float(1.5)], "01 050000c03f"),
        (
            vec![DataType::Decimal { precision: 20, scale: 3 }],
            vec![Decimal(258)],
            "01 1102010000000000000000000000000000",
        ),
        (vec![DataType::String, DataType::Binary], vec![text("hé"), Bytes(vec![])], "02 0468c3a9 01"),
        (vec![DataType::String, DataType::String, DataType::String], vec![Null, text("a"), Null], "02 00 0261"),
        (vec![DataType::String], vec![Null], "00"),
        (vec![DataType::Date, DataType::Timestamp], vec![Number(1), Number(-1)], "02 0501000000 09ffffffffffffffff"),
        // A struct: presence, then its fields; none of them where it is NULL.
        (vec![pair.clone(), DataType::Byte], vec![Parts(vec![Number(7), Null]), Number(1)], "04 01 030700 00 0201"),
        (vec![pair.clone(), DataType::Byte], vec![Null, Number(1)], "04 00 00 00 0201"),
        (vec![pair.clone()], vec![Parts(vec![Null, Null])], "01 01"),
        // An array of structs, of which NULLs at the end aren't written.
        (
            vec![DataType::Array(Box::new(pair))],
            vec![Parts(vec![Parts(vec![Number(7), Null]), Null, Parts(vec![Null, text("x")])])],
            "01 0d 03 05 01 0307 00 00 05 02 00 0278",
        ),
        (
            vec![DataType::Map(Box::new(DataType::String), Box::new(DataType::Byte))],
            vec![Parts(vec![text("k"), Number(1), text("l"), Null])],
            "01 09 02 026b 0201 026c 00",
        ),
    ] {
        let bytes = encode(&columns_of(&types), std::slice::from_ref(&row)).remove(0);
        let bytes: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(bytes, expected.replace(' ', ""), "{types:?}: {row:?}");
    }
}

#[test]
fn a_layout_grows_at_its_end_and_old_rows_keep_their_bytes() {
    use Value::{Null, Number, Parts};
    let list = |types| DataType::Array(Box::new(structure(types)));
    let old = [field("id", structure(vec![DataType::Byte])), field("items", list(vec![DataType::Byte]))];
    let new = [
        field("added", DataType::Byte),
        field("ID", structure(vec![DataType::Byte, DataType::Short])),
        field("items", list(vec![DataType::Byte, DataType::Byte])),
    ];
    let mut layout = Layout::new(&old).unwrap();
    let old_codec = RowCodec::new(&layout);
    let id = Parts(vec![Number(1)]);
    let row = old_codec.encode(&batch(&old, &[vec![id, Parts(vec![Parts(vec![Number(2)])])]])).unwrap();

    assert!(layout.extend(&new).unwrap());
    assert!(!layout.extend(&new).unwrap());
    let paths: Vec<String> = layout.leaves().iter().map(|leaf| leaf.path.join(".")).collect();
    assert_eq!(paths, ["id", "id.f0", "items", "added", "ID.f1"]);
    assert_eq!(layout.leaves_of("Id"), [0, 1, 4]);
    assert_eq!(layout.leaves()[0].kind, LeafKind::Struct);

    let codec = RowCodec::new(&layout);
    assert_eq!(codec.leaves(row.get(0)).len(), 5);
    let same = vec![Null, Parts(vec![Number(1), Null]), Parts(vec![Parts(vec![Number(2), Null])])];
    let batch = batch(&new, std::slice::from_ref(&same));
    assert_eq!(codec.encode(&batch).unwrap(), row);
    let decoded = codec.decode(&[row.get(0)], batch.schema_ref().fields()).unwrap();
    for (i, column) in decoded.iter().enumerate() {
        assert!(value::read(column, &new[i].data_type)[0].is(&same[i]), "{i}");
    }
}

#[test]
fn a_column_keeps_its_type() {
    for (old, new) in [
        (DataType::Integer, DataType::Long),
        (DataType::Integer, structure(vec![DataType::Integer])),
        (structure(vec![DataType::Integer]), structure(vec![DataType::String])),
        (DataType::Array(Box::new(DataType::Byte)), DataType::Array(Box::new(DataType::Short))),
    ] {
        let mut layout = Layout::new(&[field("a", old)]).unwrap();
        let before = layout.clone();
        let error = layout.extend(&[field("b", DataType::Byte), field("A", new)]).unwrap_err();
        assert_eq!(error.code(), "column-type-changed");
        assert_eq!(layout, before);
    }
}

#[test]
fn floats_that_are_equal_in_sql_are_equal_whatever_their_bits() {
    use Value::{Bytes, Float, Null, Parts};
    let list = DataType::Array(Box::new(structure(vec![DataType::Double])));
    let columns = columns_of(&[DataType::Double, DataType::String, list]);
    let row =
        |float: f64, text: &str| vec![Float(float), Bytes(text.into()), Parts(vec![Parts(vec![Float(float)]), Null])];
    let rows =
        encode(&columns, &[row(0.0, "a"), row(-0.0, "a"), row(0.0, "b"), row(f64::NAN, "a"), row(-f64::NAN, "a")]);
    let codec = RowCodec::new(&Layout::new(&columns).unwrap());
    let equal = |a: usize, b: usize| codec.equal(&rows[a], &rows[b]);
    assert!(rows[0] != rows[1] && equal(0, 1));
    assert!(rows[3] != rows[4] && equal(3, 4));
    assert!(!equal(0, 2) && !equal(1, 2) && !equal(0, 3));
}

#[test]
fn a_column_may_lack_in_a_batch_or_be_of_nothing_but_null() {
    let layout = Layout::new(&columns_of(&[DataType::Long, structure(vec![DataType::String])])).unwrap();
    let codec = RowCodec::new(&layout);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let number = ArrowField::new("c0", ArrowType::Int64, true);
    let alone = RecordBatch::try_new(Arc::new(Schema::new(vec![number.clone()])), vec![Arc::clone(&numbers)]).unwrap();
    let schema = Schema::new(vec![number, ArrowField::new("c1", ArrowType::Null, true)]);
    let with_null = RecordBatch::try_new(Arc::new(schema), vec![numbers, Arc::new(NullArray::new(2))]).unwrap();
    assert_eq!(codec.encode(&alone).unwrap(), codec.encode(&with_null).unwrap());

    let unknown = Schema::new(vec![ArrowField::new("c9", ArrowType::Utf8, true)]);
    let unknown = RecordBatch::try_new(Arc::new(unknown), vec![Arc::new(StringArray::from(vec!["a"]))]).unwrap();
    assert_eq!(codec.encode(&unknown).unwrap_err().code(), "internal");
}

fn typed_rows() -> impl Strategy<Value = (Vec<DataType>, Vec<Vec<Value>>)> {
    prop::collection::vec(any_type(), 1..5).prop_flat_map(|types| (Just(types.clone()), value::rows(&types, true)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_come_back_as_they_were((types, rows) in typed_rows(), skipped in any::<prop::sample::Index>()) {
        let columns = columns_of(&types);
        let codec = RowCodec::new(&Layout::new(&columns).unwrap());
        let batch = batch(&columns, &rows);
        let bytes = codec.encode(&batch).unwrap();
        let slices: Vec<&[u8]> = bytes.iter().collect();
        let decoded = codec.decode(&slices, batch.schema_ref().fields()).unwrap();
        for (i, column) in decoded.iter().enumerate() {
            prop_assert_eq!(column.data_type(), batch.column(i).data_type());
            for (row, value) in rows.iter().zip(value::read(column, &types[i])) {
                prop_assert!(row[i].is(&value), "{:?} {:?}", row[i], value);
            }
        }
        // Leaves are split and joined to the same bytes; the same values have the same bytes.
        for (i, row) in slices.iter().enumerate() {
            let mut joined = Vec::new();
            join(codec.leaves(row), &mut joined);
            prop_assert_eq!(&joined.as_slice(), row);
            for (j, other) in slices.iter().enumerate() {
                let is_same = rows[i].iter().zip(&rows[j]).all(|(a, b)| a.is(b));
                prop_assert_eq!(is_same, row == other);
            }
        }
        // A part of a batch has the bytes of its rows.
        let from = skipped.index(rows.len());
        let part = codec.encode(&batch.slice(from, rows.len() - from)).unwrap();
        prop_assert!(part.iter().eq(slices[from..].iter().copied()));
        // Some of the columns, in another order, and one that nobody knows.
        let mut fields: Vec<_> = batch.schema_ref().fields().iter().rev().take(2).cloned().collect();
        fields.push(Arc::new(ArrowField::new("unknown", ArrowType::Int32, true)));
        let some = codec.decode(&slices, &Fields::from(fields)).unwrap();
        prop_assert_eq!(some[0].as_ref(), decoded[types.len() - 1].as_ref());
        prop_assert_eq!(some.last().unwrap().null_count(), rows.len());
    }

    #[test]
    fn strings_in_any_form_have_the_same_bytes(texts in prop::collection::vec(prop::option::of(".{0,20}"), 1..20)) {
        let columns = columns_of(&[DataType::String]);
        let codec = RowCodec::new(&Layout::new(&columns).unwrap());
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let encode = |texts: ArrayRef| {
            let schema = Schema::new(vec![ArrowField::new("c0", texts.data_type().clone(), true)]);
            codec.encode(&RecordBatch::try_new(Arc::new(schema), vec![texts]).unwrap()).unwrap()
        };
        let expected = encode(Arc::clone(&texts));
        for form in [ArrowType::LargeUtf8, ArrowType::Utf8View] {
            prop_assert_eq!(&encode(cast(&texts, &form).unwrap()), &expected);
        }
    }

    #[test]
    fn malformed_rows_are_errors((types, rows) in typed_rows(), cut in any::<prop::sample::Index>(), change in 0..255u8) {
        let columns = columns_of(&types);
        let codec = RowCodec::new(&Layout::new(&columns).unwrap());
        let batch = batch(&columns, &rows);
        let fields = batch.schema_ref().fields();
        let bytes = codec.encode(&batch).unwrap().get(0).to_vec();
        let at = cut.index(bytes.len());
        prop_assert_eq!(codec.decode(&[&bytes[..at]], fields).unwrap_err().code(), "side-table-corrupted");
        prop_assert!(codec.decode(&[[&bytes[..], &[0]].concat().as_slice()], fields).is_err());
        let mut changed = bytes;
        changed[at] ^= change;
        // Another row or an error, but no panic.
        let _ = codec.decode(&[changed.as_slice()], fields);
    }
}
