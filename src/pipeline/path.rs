//! Paths in the user's files: `[paths]` applied, addresses of clouds refused.
//!
//! Not here: globs and listing (the engine's).

use crate::diagnostic::Diagnostic;
use crate::text::Span;

/// Returns where `path` really lies: the longest prefix in `[paths]` that ends at a `/` (or is all of it) is
/// replaced, `file:` is taken off. Absolute, or relative to the workspace folder.
pub fn map_path(path: &str, paths: &[(String, String)]) -> String {
    let longest = paths
        .iter()
        .filter_map(|(prefix, folder)| {
            let rest = path.strip_prefix(prefix.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then_some((prefix.len(), folder, rest))
        })
        .max_by_key(|(length, ..)| *length);
    match longest {
        Some((_, folder, rest)) => match folder.trim_end_matches('/') {
            // The root folder, and the workspace folder itself.
            "" if folder.is_empty() => rest.trim_start_matches('/').to_string(),
            folder => format!("{folder}{rest}"),
        },
        None => without_file_scheme(path).to_string(),
    }
}

/// Returns an error if `path`, after [`map_path`], is not on this machine.
pub fn check_local(path: &str, span: Span) -> Option<Diagnostic> {
    let path = without_file_scheme(path);
    let scheme = path.split_once(':').map(|(scheme, _)| scheme)?;
    // One letter is a drive of Windows; a glob or a folder before the colon is no scheme.
    if scheme.len() < 2 || !scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-')) {
        return None;
    }
    let is_cloud = matches!(
        scheme.to_ascii_lowercase().as_str(),
        "s3" | "s3a" | "s3n" | "abfss" | "abfs" | "wasbs" | "wasb" | "adl" | "gs" | "dbfs" | "r2" | "hdfs"
    );
    if !is_cloud && !path[scheme.len()..].starts_with("://") {
        return None;
    }
    let mut root = path.split('/').take(3).collect::<Vec<_>>().join("/");
    if !path.contains("://") {
        root = format!("{scheme}:/");
    }
    Some(
        Diagnostic::error("cloud-path", span, format!("`{scheme}:` paths are not supported yet"))
            .reason("only files of this machine can be read")
            .help(format!("copy the files here and map the path in flowbench.toml: [paths] \"{root}\" = \"folder\"")),
    )
}

fn without_file_scheme(path: &str) -> &str {
    match path.strip_prefix("file:") {
        // file:///a, file://localhost/a and file:/a all mean /a.
        Some(rest) => match rest.strip_prefix("//") {
            Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
            None => rest,
        },
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::FileId;

    #[test]
    fn longest_prefix_of_whole_segments_wins() {
        let paths =
            [("/Volumes/gc", "../../samples"), ("/Volumes/gc/demo/", "/data"), ("s3://bucket", "here"), ("/", "root")]
                .map(|(a, b)| (a.to_string(), b.to_string()));
        for (path, mapped) in [
            ("/Volumes/gc/x/*", "../../samples/x/*"),
            ("/Volumes/gc", "../../samples"),
            ("/Volumes/gcx/a", "root/Volumes/gcx/a"),
            ("/Volumes/gc/demo/a", "/data/a"),
            ("s3://bucket/a", "here/a"),
            ("s3://bucket2/a", "s3://bucket2/a"),
            ("file:///a/b", "/a/b"),
            ("relative/a", "relative/a"),
        ] {
            assert_eq!(map_path(path, &paths), mapped, "{path}");
        }
    }

    #[test]
    fn addresses_of_clouds_are_refused_and_local_paths_are_not() {
        let span = Span::new(FileId(0), 0..1);
        for path in ["s3://b/x", "abfss://c@a.dfs.core.windows.net/x", "gs://b", "dbfs:/mnt/x", "https://a/b"] {
            assert_eq!(check_local(path, span).map(|d| d.code), Some("cloud-path"), "{path}");
        }
        for path in ["/a/b", "a/b:c", "C:/a", "file:///a", "data/{a,b}/*", "x:y"] {
            assert_eq!(check_local(path, span), None, "{path}");
        }
        assert!(check_local("s3://b/x/y", span).unwrap().help.unwrap().contains("\"s3://b\""));
    }
}
