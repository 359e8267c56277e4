//! What targets were built with, read from the manifests of their side tables when these have changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::side::{MANIFEST, Manifest};
use super::spec::TargetSpec;

/// Specs by the folder of the side table, as of the last change of its manifest. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownSpecs {
    known: Arc<Mutex<HashMap<PathBuf, Known>>>,
}

/// The spec as of a manifest; None: it can't be read.
type Known = (Stamp, Option<TargetSpec>);

/// Time of the last change, and length.
pub(crate) type Stamp = (Option<SystemTime>, u64);

impl KnownSpecs {
    /// What the target was built with; None: there is no side table, or none that can be read, which an update will say.
    pub fn get(&self, side_folder: &Path) -> Option<TargetSpec> {
        let stamp = manifest_stamp(side_folder)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(side_folder) {
            Some((before, spec)) if *before == stamp => spec.clone(),
            _ => {
                let manifest = Manifest::read(side_folder).ok();
                let spec = manifest.and_then(|manifest| TargetSpec::in_manifest(&manifest, side_folder).ok().flatten());
                known.insert(side_folder.to_path_buf(), (stamp, spec.clone()));
                spec
            }
        }
    }
}

/// When the manifest was replaced last; None: there is none.
pub(crate) fn manifest_stamp(side_folder: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(side_folder.join(MANIFEST)).ok()?;
    Some((found.modified().ok(), found.len()))
}
