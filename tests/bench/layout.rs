//! The data files of a Delta table, as another reader of its log finds them.

use std::fmt;
use std::path::Path;

use crate::Result;
use crate::figures::{mib, thousands};

/// What a table is made of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layout {
    files: u64,
    bytes: u64,
    /// Rows that are in a file and no longer in the table.
    deleted: u64,
}

impl Layout {
    /// Of the newest version.
    pub fn read(table: &Path) -> Result<Layout> {
        let url = url::Url::from_directory_path(table).map_err(|()| "the table's path is not absolute")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let table = runtime.block_on(deltalake_core::open_table(url))?;
        let mut layout = Layout::default();
        for file in table.snapshot()?.log_data().iter() {
            layout.files += 1;
            layout.bytes += file.size() as u64;
            layout.deleted += file.deletion_vector_descriptor().map_or(0, |vector| vector.cardinality as u64);
        }
        Ok(layout)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layout { files, bytes, deleted } = self;
        write!(f, "{files}, {}, {} rows deleted", mib(*bytes), thousands(*deleted))
    }
}
