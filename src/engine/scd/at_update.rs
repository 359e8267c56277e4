//! The version of a table that an update left.

use pipeline::graph::Dataset;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::table::Table;

impl Engine {
    /// The version that the dataset's table had when the update was over: the last one that was committed before the
    /// next update began.
    ///
    /// # Errors
    /// `unknown-update`; `no-versions` for views; `nothing-stored`; `not-there-yet` if the table was made later;
    /// `table-version-missing` if it can no longer be read.
    pub async fn version_after_update(&self, dataset: &str, update: i64) -> Result<i64> {
        let state = self.state_for_reading()?;
        let (label, folder) = match self.graph().find_dataset(dataset).map(|id| self.graph().dataset(id)) {
            Some(dataset) if !dataset.kind().is_stored() => return Err(no_versions(dataset)),
            Some(dataset) => (dataset.label.clone(), self.table_folder(&dataset.name)),
            None => {
                let known = state.as_ref().map(|state| state.datasets()).transpose()?.unwrap_or_default();
                let known = known.into_iter().find(|known| known.name.eq_ignore_ascii_case(dataset));
                let known = known.ok_or_else(|| self.unknown_dataset(dataset))?;
                (known.name, self.storage().join(&known.table_path))
            }
        };
        let Some((state, table)) = state.zip(self.tables().get(&folder)?) else {
            return Err(Error::user(
                "nothing-stored",
                format!("nothing is stored of `{label}` yet"),
                "start an update: flowbench run",
            ));
        };
        if state.update(update)?.is_none() {
            let newest = state.updates(1)?.first().map_or(0, |newest| newest.update_id);
            return Err(Error::user(
                "unknown-update",
                match update > newest || update < 1 {
                    true => format!("there was no update {update}; the newest is {newest}"),
                    false => format!("update {update} is no longer on record"),
                },
                "list them: flowbench updates",
            ));
        }
        let next = state.update(update + 1)?.map(|next| next.started_us);
        let mut table = table.lock().await;
        table.refresh()?;
        let version = match next {
            // Commits have milliseconds, updates have microseconds.
            Some(next_us) => table.version_since(next_us - next_us % 1000)?.map_or(table.version(), |next| next - 1),
            None => table.version(),
        };
        if version < 0 {
            return Err(Error::user(
                "not-there-yet",
                format!("`{label}` was not there yet after update {update}"),
                "take a later update: flowbench updates",
            ));
        }
        refuse_unreadable(&table, &label, version, update)?;
        Ok(version)
    }
}

fn no_versions(dataset: &Dataset) -> Error {
    Error::user(
        "no-versions",
        format!("`{}` is a {}; it has no versions", dataset.label, dataset.kind().words()),
        "leave --at-update out",
    )
}

fn refuse_unreadable(table: &Table, label: &str, version: i64, update: i64) -> Result<()> {
    let gone = match table.missing_files_at(version) {
        Ok(0) => return Ok(()),
        Ok(files) => format!("{files} of its files were removed"),
        Err(error) if error.code() == "table-version-missing" => "its log no longer reaches back so far".to_string(),
        Err(error) => return Err(error),
    };
    Err(Error::user(
        "table-version-missing",
        format!("`{label}` as update {update} left it, version {version}, can no longer be read: {gone}"),
        "old files are kept for 7 days; take a later update: flowbench updates",
    ))
}
