//! Which files a `read_files` path means now: their paths, sizes and times.
//!
//! Not here: which of them are new (the ledger in state.db) and what is in them.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pipeline::read_files::ReadFiles;
use serde::{Deserialize, Serialize};

use super::glob::{self, LooseGlob, NameGlob, PathGlob, Segment, is_hidden};
use crate::error::{Error, Result};

/// One input file as it was when it was listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileEntry {
    /// Absolute, without `.` and `..`; symbolic links are kept as they were met.
    pub path: String,
    pub size: u64,
    /// Microseconds since 1970 UTC.
    pub modified_us: i64,
}

/// What a path means now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by path, each once.
    pub files: Vec<FileEntry>,
    /// The part of the path before the first glob.
    pub base: PathBuf,
    /// `base` doesn't exist: a slip in the path is likelier than an empty source (behaviours B-45).
    pub is_missing: bool,
    /// Names that start with `_` or `.`.
    pub hidden: usize,
    /// Files that `pathGlobFilter`, `modifiedAfter` or `modifiedBefore` kept out.
    pub filtered: usize,
    /// Files that the caller knew.
    pub known: usize,
}

/// Lists the files that `spec` means, relative paths starting at the workspace folder `root`.
///
/// A folder that can't be read is an error; one that vanishes meanwhile is not.
pub fn list(spec: &ReadFiles, root: &Path) -> Result<Listing> {
    list_new(spec, root, &|_| false)
}

/// As [`list()`] without the paths that the caller knows; what they are isn't even looked at, which is most of the
/// time that a listing takes.
pub fn list_new(spec: &ReadFiles, root: &Path, is_known: &dyn Fn(&str) -> bool) -> Result<Listing> {
    let path = absolute(&spec.path, root)?;
    let name_glob = spec.file_name_glob.as_deref().map(NameGlob::new).transpose()?;
    let (listing, found, followed) = (Listing::default(), Vec::new(), Vec::new());
    let mut walk = Walk { is_known, name_glob, loose: None, listing, found, followed };
    if spec.use_strict_globber {
        let globs = glob::strict(&path)?;
        walk.listing.base = common_base(&globs);
        for glob in &globs {
            walk.matching(&glob.base, &glob.segments, glob.is_folder)?;
        }
    } else {
        let loose = LooseGlob::new(&path)?;
        walk.listing.base = loose.base.clone();
        walk.loose = Some(loose);
        let base = walk.listing.base.clone();
        walk.matching(&base, &[], false)?;
    }
    let Walk { mut listing, mut found, .. } = walk;
    listing.is_missing = !listing.base.exists();
    found.sort_unstable();
    found.dedup();
    let files = look_at(found)?;
    let count = files.len();
    listing.files = files.into_iter().filter(|file| is_in_time(spec, file)).collect();
    listing.filtered += count - listing.files.len();
    Ok(listing)
}

fn is_in_time(spec: &ReadFiles, file: &FileEntry) -> bool {
    spec.modified_after_us.is_none_or(|after| file.modified_us > after)
        && spec.modified_before_us.is_none_or(|before| file.modified_us < before)
}

/// Fewer files than this aren't worth a thread.
const FILES_A_THREAD: usize = 1000;

/// Asks for size and time of each file, on all cores; without those that are gone.
fn look_at(paths: Vec<String>) -> Result<Vec<FileEntry>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(paths.len() / FILES_A_THREAD).max(1);
    let look = |paths: &[String]| paths.iter().filter_map(|path| look_at_one(path).transpose()).collect();
    if threads == 1 {
        return look(&paths);
    }
    let shares: Vec<Result<Vec<FileEntry>>> = std::thread::scope(|scope| {
        let shares = paths.chunks(paths.len().div_ceil(threads));
        let threads: Vec<_> = shares.map(|share| scope.spawn(move || look(share))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    Ok(shares.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

fn look_at_one(path: &str) -> Result<Option<FileEntry>> {
    let look = || {
        let metadata = fs::metadata(path)?;
        let file = FileEntry { path: path.to_string(), size: metadata.len(), modified_us: modified_us(&metadata)? };
        Ok(metadata.is_file().then_some(file))
    };
    match look() {
        Err(error) if is_gone(&error) => Ok(None),
        result => result.map_err(|error| Error::io("look at", path, error)),
    }
}

fn absolute(path: &str, root: &Path) -> Result<String> {
    let path = match path.split_once(':') {
        Some(("file", rest)) => format!("/{}", rest.trim_start_matches('/')),
        Some((scheme, _)) if is_scheme(scheme) => {
            return Err(Error::user(
                "unsupported-path",
                format!("cannot read `{path}`: `{scheme}` paths are not supported yet"),
                "copy the files to a local folder, or map the path to one under `[paths]` in flowbench.toml",
            ));
        }
        _ => path.to_string(),
    };
    if path.starts_with('/') {
        return Ok(path);
    }
    let root = std::path::absolute(root).map_err(|source| Error::io("find", root, source))?;
    let root = root.to_str().ok_or_else(|| not_utf8(&root))?;
    // The workspace folder is no glob, whatever characters it is made of.
    let mut full = String::with_capacity(root.len() + path.len() + 1);
    for char in root.chars() {
        if matches!(char, '\\' | '*' | '?' | '[' | '{' | '}' | ',') {
            full.push('\\');
        }
        full.push(char);
    }
    Ok(format!("{full}/{path}"))
}

fn is_scheme(text: &str) -> bool {
    text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn not_utf8(path: &Path) -> Error {
    Error::user(
        "path-not-utf8",
        format!("the name of `{}` is not UTF-8", path.display()),
        "rename the file, or keep it out with `pathGlobFilter`",
    )
}

fn common_base(globs: &[PathGlob]) -> PathBuf {
    let mut base = globs[0].base.clone();
    while !globs.iter().all(|glob| glob.base.starts_with(&base)) {
        base.pop();
    }
    base
}

struct Walk<'a> {
    is_known: &'a dyn Fn(&str) -> bool,
    name_glob: Option<NameGlob>,
    loose: Option<LooseGlob>,
    listing: Listing,
    /// Paths of files that match, in no order, perhaps some twice.
    found: Vec<String>,
    /// Where the symbolic links on the way from the base to here led, to notice circles.
    followed: Vec<PathBuf>,
}

impl Walk<'_> {
    /// Takes what matches `segments` below `path`, which exists or doesn't.
    fn matching(&mut self, path: &Path, segments: &[Segment], is_folder: bool) -> Result<()> {
        match segments {
            [Segment::Name(name), rest @ ..] => self.matching(&path.join(name), rest, is_folder),
            [Segment::Pattern(pattern), rest @ ..] => {
                for entry in read_folder(path)? {
                    if !pattern.matches(&entry.name) {
                        self.listing.hidden += usize::from(is_hidden(&entry.name));
                        continue;
                    }
                    let is_last = rest.is_empty();
                    match entry.kind()? {
                        Kind::File if is_last && !is_folder => self.take(&entry.path())?,
                        Kind::Folder => self.matching(&entry.path(), rest, is_folder)?,
                        Kind::Link => self.follow(&entry, |walk, path| walk.matching(path, rest, is_folder))?,
                        Kind::File | Kind::Other => {}
                    }
                }
                Ok(())
            }
            [] => match fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => self.everything(path),
                Ok(metadata) if metadata.is_file() && !is_folder => self.take(path),
                Ok(_) => Ok(()),
                Err(error) if is_gone(&error) => Ok(()),
                Err(error) => Err(Error::io("look at", path, error)),
            },
        }
    }

    /// Takes every file below a folder that matched.
    fn everything(&mut self, folder: &Path) -> Result<()> {
        for entry in read_folder(folder)? {
            if is_hidden(&entry.name) {
                self.listing.hidden += 1;
                continue;
            }
            match entry.kind()? {
                Kind::File => self.take(&entry.path())?,
                Kind::Folder => self.everything(&entry.path())?,
                Kind::Link => self.follow(&entry, |walk, path| walk.matching(path, &[], false))?,
                Kind::Other => {}
            }
        }
        Ok(())
    }

    /// Goes on behind a symbolic link, unless it leads back to where we come from.
    fn follow(&mut self, link: &Entry, then: impl FnOnce(&mut Self, &Path) -> Result<()>) -> Result<()> {
        let path = link.path();
        let Ok(target) = fs::canonicalize(&path) else {
            return Ok(()); // It leads nowhere.
        };
        let from = path.parent().map(fs::canonicalize).and_then(|parent| parent.ok()).unwrap_or_default();
        let is_circle = |came_from: &PathBuf| came_from.starts_with(&target);
        if target.is_dir() && (is_circle(&from) || self.followed.iter().any(is_circle)) {
            return Ok(());
        }
        self.followed.push(from);
        let result = then(self, &path);
        self.followed.pop();
        result
    }

    fn take(&mut self, path: &Path) -> Result<()> {
        let text = path.to_str().ok_or_else(|| not_utf8(path))?;
        let name = text.rsplit_once('/').map_or(text, |(_, name)| name);
        let is_meant = self.loose.as_ref().is_none_or(|loose| loose.matches(text))
            && self.name_glob.as_ref().is_none_or(|glob| glob.matches(name));
        if !is_meant {
            self.listing.filtered += 1;
        } else if (self.is_known)(text) {
            self.listing.known += 1;
        } else {
            self.found.push(text.to_string());
        }
        Ok(())
    }
}

/// Returns when the file was last written, in microseconds since 1970 UTC, rounded down.
pub(super) fn modified_us(metadata: &fs::Metadata) -> std::io::Result<i64> {
    let modified: SystemTime = metadata.modified()?;
    Ok(match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => {
            let nanos = before.duration().as_nanos().div_ceil(1000);
            -i64::try_from(nanos).unwrap_or(i64::MAX)
        }
    })
}

struct Entry {
    name: String,
    entry: fs::DirEntry,
}

enum Kind {
    File,
    Folder,
    Link,
    /// Pipes, sockets, devices.
    Other,
}

impl Entry {
    fn path(&self) -> PathBuf {
        self.entry.path()
    }

    fn kind(&self) -> Result<Kind> {
        let kind = self.entry.file_type().map_err(|error| Error::io("look at", self.path(), error))?;
        Ok(match () {
            () if kind.is_file() => Kind::File,
            () if kind.is_dir() => Kind::Folder,
            () if kind.is_symlink() => Kind::Link,
            () => Kind::Other,
        })
    }
}

/// Reads a folder's entries; nothing if it isn't there or isn't a folder.
fn read_folder(folder: &Path) -> Result<impl Iterator<Item = Entry>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries.collect::<std::io::Result<Vec<_>>>(),
        Err(error) if is_gone(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let entries = entries.map_err(|error| Error::io("read folder", folder, error))?;
    let mut named = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry.file_name().into_string() {
            Ok(name) => named.push(Entry { name, entry }),
            Err(_) => return Err(not_utf8(&entry.path())),
        }
    }
    Ok(named.into_iter())
}

fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Returns the named segments of an absolute path, the last one being the file's.
pub(super) fn segments(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    Path::new(path).components().filter_map(|component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{read_files, write};
    use super::*;

    fn paths(spec: &ReadFiles, root: &Path) -> Vec<String> {
        let prefix = format!("{}/", root.display());
        list(spec, root).unwrap().files.into_iter().map(|file| file.path.replacen(&prefix, "", 1)).collect()
    }

    #[test]
    fn paths_match_as_in_the_published_table() {
        let cases = [
            ("a/b", "a/b/c/file.txt", true, true),
            ("a/b", "a/b_dir/c/file.txt", false, false),
            ("a/b", "a/b.txt", false, false),
            ("a/*/c/", "a/b/c/file.txt", true, true),
            ("a/*/c/", "a/b/c/d/file.txt", true, true),
            ("a/*/d/", "a/b/c/d/file.txt", true, false),
            ("a/*/c/", "a/b/x/y/c/file.txt", true, false),
            ("a/*/c", "a/b/c_file.txt", true, false),
            ("a/b*", "a/b.txt", true, true),
            ("a/b*", "a/b/file.txt", true, true),
            ("a/{0.txt,1.txt}", "a/0.txt", true, true),
            ("a/*/{0.txt,1.txt}", "a/0.txt", false, false),
        ];
        for (pattern, file, loose, strict) in cases {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), file, "x");
            for (use_strict_globber, is_read) in [(false, loose), (true, strict)] {
                let spec = ReadFiles { use_strict_globber, ..read_files(pattern) };
                let expected: &[&str] = if is_read { &[file] } else { &[] };
                assert_eq!(paths(&spec, root.path()), expected, "{pattern} on {file}, strict {use_strict_globber}");
            }
        }
    }

    #[test]
    fn three_segments_mean_days_and_files_at_that_depth() {
        // Behaviours B-14.
        let root = tempfile::tempdir().unwrap();
        for file in [
            "year=2025/month=01/day=01/a.json",
            "year=2025/month=01/day=01/sub/b.json",
            "year=2025/month=01/c.json",
            "year=2025/d.json",
            "year=2025/month=01/day=01/_SUCCESS",
            "year=2025/month=01/.day/x.json",
        ] {
            write(root.path(), file, "{}");
        }
        assert_eq!(
            paths(&read_files("*/*/*"), root.path()),
            ["year=2025/month=01/c.json", "year=2025/month=01/day=01/a.json", "year=2025/month=01/day=01/sub/b.json"]
        );
        assert_eq!(list(&read_files("*/*/*"), root.path()).unwrap().hidden, 2);
    }

    #[test]
    fn the_time_window_is_open_at_both_ends() {
        // Behaviours B-19.
        let root = tempfile::tempdir().unwrap();
        let file = write(root.path(), "in/a.json", "{}");
        let at = UNIX_EPOCH + std::time::Duration::from_millis(1_735_689_600_000);
        fs::File::options().write(true).open(&file).unwrap().set_modified(at).unwrap();
        let us = 1_735_689_600_000_000;
        let cases = [
            (Some(us - 1000), None, 1),
            (Some(us), None, 0),
            (None, Some(us), 0),
            (None, Some(us + 1), 1),
            (Some(us - 1), Some(us + 1), 1),
        ];
        for (modified_after_us, modified_before_us, count) in cases {
            let spec = ReadFiles { modified_after_us, modified_before_us, ..read_files("in") };
            let listing = list(&spec, root.path()).unwrap();
            assert_eq!(listing.files.len(), count);
            assert_eq!(listing.filtered, 1 - count);
        }
    }

    #[test]
    fn names_can_be_filtered_and_a_file_can_be_named_itself() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "in/a.json", "{}");
        write(root.path(), "in/b.csv", "");
        let spec = ReadFiles { file_name_glob: Some("*.json".into()), ..read_files("in") };
        assert_eq!(paths(&spec, root.path()), ["in/a.json"]);
        assert_eq!(paths(&read_files("in/b.csv"), root.path()), ["in/b.csv"]);
        let new = list_new(&read_files("in"), root.path(), &|path| path.ends_with("a.json")).unwrap();
        assert_eq!((new.files.len(), new.known), (1, 1));
        assert_eq!(paths(&read_files("in/b.csv/"), root.path()), [""; 0]);
        assert_eq!(paths(&read_files("./x/../in/{a.json,b.csv}"), root.path()), ["in/a.json", "in/b.csv"]);
        let absolute = format!("file://{}/in/a.json", root.path().display());
        assert_eq!(paths(&read_files(&absolute), root.path()), ["in/a.json"]);
    }

    #[test]
    fn a_missing_path_is_told_from_an_empty_folder() {
        // Behaviours B-45.
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("empty")).unwrap();
        assert!(!list(&read_files("empty/*"), root.path()).unwrap().is_missing);
        assert!(list(&read_files("nowhere/*"), root.path()).unwrap().is_missing);
    }

    #[test]
    fn paths_of_clouds_are_refused_by_name() {
        let error = list(&read_files("s3://bucket/x"), Path::new("/")).unwrap_err();
        assert_eq!(error.code(), "unsupported-path");
        assert!(error.to_string().contains("`s3`"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_in_circles() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "data/x/a.json", "{}");
        write(root.path(), "other/y/b.json", "{}");
        symlink(root.path().join("data"), root.path().join("data/x/up")).unwrap();
        symlink(root.path().join("other"), root.path().join("data/other")).unwrap();
        symlink(root.path().join("data"), root.path().join("other/back")).unwrap();
        symlink("nowhere", root.path().join("data/broken")).unwrap();
        assert_eq!(paths(&read_files("data"), root.path()), ["data/other/y/b.json", "data/x/a.json"]);
    }
}
