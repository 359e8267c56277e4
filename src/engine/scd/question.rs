//! Questions of a front end that stays open.

use pipeline::scd::{DiffRange, KeyPart, ScdQuestion, ScdReport};

use super::{AsOfOptions, DiffOptions};
use crate::engine::Engine;
use crate::error::Result;

impl Engine {
    /// The report that a question gets.
    ///
    /// # Errors
    /// Those of the report's own function.
    pub async fn inspect(&self, question: &ScdQuestion) -> Result<ScdReport> {
        Ok(match question {
            ScdQuestion::Keys { table, request } => ScdReport::Keys(self.scd_keys(table, request).await?),
            ScdQuestion::History { table, key } => ScdReport::History(self.scd_history(table, &written(key)).await?),
            ScdQuestion::AsOf { table, sequence, limit } => {
                let options = AsOfOptions { filter: None, limit: Some(*limit) };
                ScdReport::AsOf(self.scd_as_of(table, sequence, &options).await?)
            }
            ScdQuestion::Diff { table, range: DiffRange::Times { from, to }, limit } => {
                ScdReport::Diff(self.scd_diff(table, from, to, DiffOptions { limit: *limit }).await?)
            }
            ScdQuestion::Diff { table, range: DiffRange::Versions { key, from, to }, .. } => {
                ScdReport::Diff(self.scd_diff_versions(table, &written(key), *from, *to).await?)
            }
            ScdQuestion::Check { table } => ScdReport::Check(self.scd_check(table).await?),
            ScdQuestion::Cutover { table, request } => ScdReport::Cutover(self.cutover_check(table, request).await?),
        })
    }
}

/// A key as people write it: `id=7` for each column.
fn written(key: &[KeyPart]) -> Vec<String> {
    key.iter().map(|part| format!("{}={}", part.column, part.value)).collect()
}
