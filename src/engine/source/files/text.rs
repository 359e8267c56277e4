//! Text files: one row a line, or a file (`wholeText`), in a column `value`.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray, StringBuilder};
use pipeline::data_type::{DataType, Field};

use super::BATCH_ROWS;
use super::list::FileEntry;
use super::read::{Lines, lines, read_whole};
use super::scan::{Decoded, Output};
use super::split::Part;
use crate::error::Result;

/// Returns the columns of every text file.
pub fn columns() -> Vec<Field> {
    vec![Field { name: "value".into(), data_type: DataType::String, is_nullable: true, comment: None }]
}

/// Reads one part; bytes that aren't UTF-8 become U+FFFD, as in Spark.
pub fn read(file: &FileEntry, part: Part, whole: bool, output: &mut Output<'_>) -> Result<()> {
    if whole {
        let text = read_whole(file)?;
        let value = StringArray::from_iter_values([String::from_utf8_lossy(&text)]);
        return output.push(decoded(Arc::new(value), 1, output.data().len()));
    }
    let mut reader = Lines::open(file, part)?;
    let mut builder = StringBuilder::new();
    let mut rows = 0;
    while let Some(chunk) = reader.next_chunk()? {
        for line in lines(chunk) {
            builder.append_value(String::from_utf8_lossy(line));
            rows += 1;
            if rows == BATCH_ROWS {
                output.push(decoded(Arc::new(builder.finish()), rows, output.data().len()))?;
                rows = 0;
            }
        }
    }
    if rows > 0 {
        output.push(decoded(Arc::new(builder.finish()), rows, output.data().len()))?;
    }
    Ok(())
}

fn decoded(value: ArrayRef, rows: usize, columns: usize) -> Decoded {
    // The only column there is, if it is asked for.
    Decoded { columns: vec![value; columns], corrupt: None, rescued: None, rows }
}
