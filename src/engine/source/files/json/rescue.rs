//! The rescued data of rows: what fits no column, as JSON text with the file's path.
//!
//! ```json
//! {"n":"x1","user":{"age":"old"},"_file_path":"/data/2024.json"}
//! ```
//! Values are kept as written. Members of objects are rescued one by one; a list is rescued as a whole, since an
//! element has no name to be found by.

use std::sync::Arc;

use arrow::array::{ArrayRef, NullBufferBuilder, StringArray};
use arrow::error::ArrowError;

use super::column::Bytes;

/// The column of rescued data under construction.
pub struct Rescued {
    values: Bytes,
    nulls: NullBufferBuilder,
}

impl Rescued {
    pub fn new(rows: usize) -> Rescued {
        Rescued { values: Bytes::new(0), nulls: NullBufferBuilder::new(rows) }
    }

    /// Appends a row from its members (`"a":1,"b":2`), or NULL if there are none.
    pub fn append(&mut self, members: &[u8], file_member: &[u8]) {
        if members.is_empty() {
            self.nulls.append_null();
        } else {
            self.values.bytes.push(b'{');
            self.values.bytes.extend_from_slice(members);
            self.values.bytes.push(b',');
            self.values.bytes.extend_from_slice(file_member);
            self.values.bytes.push(b'}');
            self.nulls.append_non_null();
        }
        self.values.end_value();
    }

    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        self.nulls.truncate(rows);
    }

    pub fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        let (ends, bytes) = self.values.take();
        Ok(Arc::new(StringArray::try_new(ends, bytes, self.nulls.finish())?))
    }
}

/// Appends a member to the members of an object; `raw_key` is escaped already.
#[cold]
pub fn append_member(members: &mut Vec<u8>, raw_key: &[u8], value: &[u8]) {
    if !members.is_empty() {
        members.push(b',');
    }
    members.push(b'"');
    members.extend_from_slice(raw_key);
    members.extend_from_slice(b"\":");
    members.extend_from_slice(value);
}

/// Appends `text` as a JSON string; what isn't UTF-8 becomes U+FFFD.
pub fn append_json_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            control if control < ' ' => out.extend_from_slice(format!("\\u{:04x}", control as u32).as_bytes()),
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}
