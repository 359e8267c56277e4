//! `flowbench init`: a new workspace, small and commented, or a copy of an example with its sample data.
//!
//! The examples are the folders `workspaces/` and `samples/` of the repository, carried in the program.

use std::fs;
use std::path::{Component, Path};
use std::time::SystemTime;

use chrono::{NaiveDate, NaiveTime};
use include_dir::{Dir, DirEntry, File, include_dir};
use pipeline::diagnostic::nearest;
use serde_json::json;

use super::Context;
use super::exit::{Exit, Trouble};

static WORKSPACES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/workspaces");
static SAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/samples");

const SETTINGS_FILE: &str = "flowbench.toml";

/// Where the examples find their data, seen from `workspaces/<name>`; a copy has it beside its files.
const SAMPLES_IN_REPOSITORY: &str = "../../samples";
const WORKSPACES_IN_REPOSITORY: &str = "workspaces";
const SAMPLES_IN_COPY: &str = "samples";

const SETTINGS: &str = include_str!("init/flowbench.toml");
const ORDERS_SQL: &str = include_str!("init/orders.sql");
const ORDERS_JSON: [(&str, &str); 2] = [
    ("data/orders/2025-01-01.json", include_str!("init/2025-01-01.json")),
    ("data/orders/2025-01-02.json", include_str!("init/2025-01-02.json")),
];

/// Makes a workspace in `folder`. A folder that is one already is refused.
pub fn run(context: &Context, folder: &Path, sample: Option<&str>) -> Result<Exit, Trouble> {
    if folder.join(SETTINGS_FILE).exists() {
        return Err(Trouble::usage(
            format!("`{}` is a workspace already: it has a {SETTINGS_FILE}", folder.display()),
            "name another folder",
        ));
    }
    let files = match sample {
        Some(name) => copy_example(folder, example(name)?)?,
        None => write_starter(folder)?,
    };
    // The tables belong to this machine, not into the repository.
    if !folder.join(".gitignore").exists() {
        write(&folder.join(".gitignore"), b".flowbench/\n")?;
    }
    let value = json!({ "folder": folder.display().to_string(), "sample": sample, "files": files });
    context.answer(Exit::Ok, &value, || {
        let enter = match folder == Path::new(".") {
            true => String::new(),
            false if folder.to_string_lossy().contains(' ') => format!("cd \"{}\" && ", folder.display()),
            false => format!("cd {} && ", folder.display()),
        };
        format!("made {} with {files} files; next: {enter}flowbench run\n", folder.display())
    })
}

fn write_starter(folder: &Path) -> Result<usize, Trouble> {
    let name = folder.canonicalize().ok().or_else(|| std::path::absolute(folder).ok());
    let name = name.as_deref().and_then(Path::file_name).map_or("pipeline".into(), |name| name.to_string_lossy());
    // In a TOML string, what would end it is left out.
    let name: String = name.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect();
    write(&folder.join("transformations/orders.sql"), ORDERS_SQL.as_bytes())?;
    for (path, text) in ORDERS_JSON {
        write(&folder.join(path), text.as_bytes())?;
    }
    // Last: with it the folder is a workspace.
    write(&folder.join(SETTINGS_FILE), SETTINGS.replace("{name}", &name).as_bytes())?;
    Ok(2 + ORDERS_JSON.len())
}

fn example(name: &str) -> Result<&'static Dir<'static>, Trouble> {
    let known: Vec<&str> = WORKSPACES.dirs().filter_map(|dir| dir.path().file_name()?.to_str()).collect();
    WORKSPACES.get_dir(name).filter(|dir| dir.path().components().count() == 1).ok_or_else(|| {
        Trouble::usage(
            format!("no example is named `{name}`"),
            match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`? there are: {}", known.join(", ")),
                None => format!("there are: {}", known.join(", ")),
            },
        )
    })
}

/// Copies an example and those sample folders that its files name.
fn copy_example(folder: &Path, example: &Dir<'_>) -> Result<usize, Trouble> {
    let mut files = 0;
    let mut texts = String::new();
    let mut settings = None;
    for file in files_of(example) {
        let below = file.path().strip_prefix(example.path()).expect("a folder's files lie below it");
        if below.components().any(|part| matches!(part, Component::Normal(name) if name == ".flowbench")) {
            continue;
        }
        let contents = match file.contents_utf8() {
            Some(text) => {
                texts.push_str(text);
                text.replace(SAMPLES_IN_REPOSITORY, SAMPLES_IN_COPY).into_bytes()
            }
            None => file.contents().to_vec(),
        };
        files += 1;
        match below.to_str() {
            Some(SETTINGS_FILE) => settings = Some(contents),
            Some("README.md") => write(&folder.join(below), copy_readme(example, file).as_bytes())?,
            _ => write(&folder.join(below), &contents)?,
        }
    }
    for sample in SAMPLES.dirs() {
        let is_read = sample.path().file_name().is_some_and(|name| texts.contains(&*name.to_string_lossy()));
        for file in files_of(sample).into_iter().filter(|_| is_read) {
            let path = folder.join(SAMPLES_IN_COPY).join(file.path());
            write(&path, file.contents())?;
            set_file_time(&path, file.path())?;
            files += 1;
        }
    }
    if let Some(settings) = settings {
        write(&folder.join(SETTINGS_FILE), &settings)?;
    }
    Ok(files)
}

/// The walk-through of an example, without the ways through the repository around it: a copy is entered already, and
/// its samples have their times.
fn copy_readme(example: &Dir<'_>, readme: &File<'_>) -> String {
    const NOTE: &str = "\n(A copy of an example of flowbench, with its data in `samples/`: the days in the data's paths are its \
                        files' times. What is said of `samples/generate.py` holds in a clone of flowbench.)\n";
    let is_way = |line: &str| {
        ["    cd workspaces/", "    python3 samples/", "From the root of the project:"]
            .iter()
            .any(|way| line.starts_with(way))
    };
    let mut lines = readme.contents_utf8().unwrap_or_default().lines();
    let title = lines.next().unwrap_or_default();
    let rest: String = lines.filter(|line| !is_way(line)).flat_map(|line| [line, "\n"]).collect();
    let own_path = format!(" {WORKSPACES_IN_REPOSITORY}/{}", example.path().display());
    format!("{title}\n{NOTE}{}", rest.replace(&own_path, ""))
}

fn files_of<'a>(dir: &'a Dir<'a>) -> Vec<&'a File<'a>> {
    let mut found = Vec::new();
    for entry in dir.entries() {
        match entry {
            DirEntry::Dir(dir) => found.extend(files_of(dir)),
            DirEntry::File(file) => found.push(file),
        }
    }
    found
}

/// Gives a sample the time at noon of the day in its path, so that `modifiedAfter` finds it where it belongs.
fn set_file_time(path: &Path, sample: &Path) -> Result<(), Trouble> {
    let Some(day) = day_of(sample) else { return Ok(()) };
    let seconds = day.and_time(NaiveTime::MIN).and_utc().timestamp() + 12 * 3600;
    let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let set = || fs::File::options().write(true).open(path)?.set_modified(time);
    set().map_err(|source| failed("set the time of", path, source))
}

/// The day that `year=2024/month=01/day=31` segments name; a missing month or day is the first.
fn day_of(path: &Path) -> Option<NaiveDate> {
    let part = |key: &str| {
        let parts = path.iter().filter_map(|part| part.to_str()?.split_once('='));
        parts.filter(|(name, _)| *name == key).find_map(|(_, value)| value.parse::<u32>().ok())
    };
    NaiveDate::from_ymd_opt(i32::try_from(part("year")?).ok()?, part("month").unwrap_or(1), part("day").unwrap_or(1))
}

fn write(path: &Path, contents: &[u8]) -> Result<(), Trouble> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| failed("make folder", folder, source))?;
    }
    fs::write(path, contents).map_err(|source| failed("write", path, source))
}

fn failed(action: &str, path: &Path, source: std::io::Error) -> Trouble {
    Trouble::Io { action: format!("{action} `{}`", path.display()), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_samples_day_is_the_one_in_its_path() {
        let day = |path: &str| day_of(Path::new(path)).map(|day| day.to_string());
        assert_eq!(day("event_registration/year=2024/month=02/day=29/a.json").as_deref(), Some("2024-02-29"));
        assert_eq!(day("event_registration/year=2024/a.json").as_deref(), Some("2024-01-01"));
        assert_eq!(day("event_registration/a.json"), None);
        assert_eq!(day("x/year=2023/month=02/day=29/a.json"), None);
    }
}
