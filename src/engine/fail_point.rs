//! Named places where a test makes the program die, fail or wait. Debug builds only: in a release build
//! [`hit`] is empty.
//!
//! `FLOWBENCH_FAIL_POINT` holds rules separated by `;`, each `name[@flow][:n]=action`: at the n-th hit
//! (default 1) of the point (by this flow, if given) in this process
//! - `kill`: SIGKILL to this process, no destructor runs;
//! - `error`: `Error::External`, which a flow retries;
//! - `pause(path)`: waits until a file exists at `path`; `path.reached` is made before, for the test to see.
//!
//! Example: `FLOWBENCH_FAIL_POINT='written@live:2=kill'`.

/// The points in the order in which an update passes them. A name that isn't here is an error.
pub const POINTS: [(&str, &str); 12] = [
    ("plan", "new input was chosen, nothing is written down"),
    ("planned", "the plan is in state.db, the query hasn't run"),
    ("written", "the data files are written, the Delta commit isn't made"),
    ("side-committed", "AUTO CDC: the side table has the batch, the target's commit isn't made"),
    ("committed", "the Delta commit is made, state.db doesn't know"),
    ("marked", "state.db knows of the commit"),
    ("schema-stored", "a source's new or widened schema is in state.db, no batch was planned with it"),
    ("full-refresh-started", "a shadow generation is recorded, its folder isn't made"),
    ("promote", "the shadow generation is complete, the promoting commit isn't made"),
    ("promoted", "the promoting commit is made, state.db doesn't know"),
    ("maintenance", "the flows are done, compaction and vacuum haven't begun"),
    ("moves-committed", "AUTO CDC: the side table knows where a compaction put rows, its commit isn't made"),
];

/// Passes the point `name`; `flow` is who passes it, if anyone does.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn hit(_name: &str, _flow: Option<&str>) -> crate::error::Result<()> {
    Ok(())
}

#[cfg(debug_assertions)]
pub use armed::hit;

#[cfg(debug_assertions)]
mod armed {
    use std::path::{Path, PathBuf};
    use std::sync::{LazyLock, Mutex, PoisonError};
    use std::time::Duration;

    use super::POINTS;
    use crate::error::{Error, Result};

    /// The environment variable with the rules.
    pub const VARIABLE: &str = "FLOWBENCH_FAIL_POINT";

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Rule {
        pub point: String,
        pub flow: Option<String>,
        /// Hits to go until the action is taken; 0: it was.
        pub hits_left: u32,
        pub action: Action,
    }

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Action {
        Kill,
        Error,
        Pause(PathBuf),
    }

    static RULES: LazyLock<Result<Mutex<Vec<Rule>>, String>> = LazyLock::new(|| match std::env::var(VARIABLE) {
        Ok(rules) => parse(&rules).map(Mutex::new),
        Err(_) => Ok(Mutex::default()),
    });

    /// Passes the point `name`; `flow` is who passes it, if anyone does.
    pub fn hit(name: &str, flow: Option<&str>) -> Result<()> {
        debug_assert!(POINTS.iter().any(|(point, _)| *point == name), "fail point `{name}` is not in POINTS");
        let rules = match &*RULES {
            Ok(rules) => rules,
            Err(what) => {
                let names: Vec<&str> = POINTS.iter().map(|(point, _)| *point).collect();
                return Err(Error::user(
                    "bad-fail-point",
                    format!("{VARIABLE}: {what}"),
                    format!("write name[@flow][:n]=kill|error|pause(path); names: {}", names.join(", ")),
                ));
            }
        };
        // The lock is gone before the action: other flows go on while this one pauses.
        let action = due(&mut rules.lock().unwrap_or_else(PoisonError::into_inner), name, flow);
        match action {
            None => Ok(()),
            Some(Action::Kill) => kill(),
            Some(Action::Pause(path)) => pause(&path),
            Some(Action::Error) => Err(Error::External {
                code: "fail-point",
                what: format!("fail point `{name}`"),
                help: format!("{VARIABLE} is set"),
            }),
        }
    }

    /// Counts a hit; returns the action that it is the turn of.
    pub fn due(rules: &mut [Rule], name: &str, flow: Option<&str>) -> Option<Action> {
        let mut action = None;
        for rule in rules {
            let applies = rule.point == name && (rule.flow.is_none() || rule.flow.as_deref() == flow);
            if applies && rule.hits_left > 0 {
                rule.hits_left -= 1;
                if rule.hits_left == 0 {
                    action = Some(rule.action.clone());
                }
            }
        }
        action
    }

    pub fn parse(rules: &str) -> Result<Vec<Rule>, String> {
        rules.split(';').map(str::trim).filter(|rule| !rule.is_empty()).map(parse_rule).collect()
    }

    fn parse_rule(rule: &str) -> Result<Rule, String> {
        let (place, action) = rule.split_once('=').ok_or(format!("no `=` in `{rule}`"))?;
        let (place, hits) = place.split_once(':').unwrap_or((place, "1"));
        let (point, flow) = match place.split_once('@') {
            Some((point, flow)) => (point, Some(flow.to_string())),
            None => (place, None),
        };
        if !POINTS.iter().any(|(known, _)| *known == point) {
            return Err(format!("unknown fail point: `{point}`"));
        }
        let action = match action {
            "kill" => Action::Kill,
            "error" => Action::Error,
            _ => match action.strip_prefix("pause(").and_then(|path| path.strip_suffix(')')) {
                Some(path) => Action::Pause(path.into()),
                None => return Err(format!("unknown action: `{action}`")),
            },
        };
        match hits.parse() {
            Ok(hits_left) if hits_left > 0 => Ok(Rule { point: point.to_string(), flow, hits_left, action }),
            _ => Err(format!("not a number of hits: `{hits}`")),
        }
    }

    /// SIGKILL, which std can't send by itself, so that nothing is flushed or dropped.
    fn kill() -> ! {
        let pid = std::process::id().to_string();
        let _ = std::process::Command::new("kill").args(["-9", &pid]).status();
        // No `kill` on this machine: an abort runs no destructor either.
        std::process::abort()
    }

    fn pause(path: &Path) -> Result<()> {
        let reached = PathBuf::from(format!("{}.reached", path.display()));
        std::fs::write(&reached, "").map_err(|e| Error::io("write", &reached, e))?;
        while !path.exists() {
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::armed::{Action, due, parse};

    #[test]
    fn rules_fire_at_the_nth_hit_of_their_flow() {
        let mut rules = parse("written@live:2=kill; plan=error;promote=pause(/tmp/go)").unwrap();
        let hits = [
            ("written", Some("live"), None),
            ("written", Some("backfill"), None),
            ("written", Some("live"), Some(Action::Kill)),
            ("written", Some("live"), None),
            ("plan", Some("any"), Some(Action::Error)),
            ("plan", None, None),
            ("promote", None, Some(Action::Pause("/tmp/go".into()))),
        ];
        for (i, (name, flow, expected)) in hits.into_iter().enumerate() {
            assert_eq!(due(&mut rules, name, flow), expected, "hit {i}");
        }
    }

    /// The environment is read once a process, so each case is a child that runs this test alone.
    #[test]
    fn kill_and_error_and_pause_do_what_they_say() {
        use std::os::unix::process::ExitStatusExt;
        use std::process::Command;

        use super::armed::VARIABLE;
        if std::env::var_os(VARIABLE).is_some() {
            super::hit("planned", Some("live")).unwrap();
            let failed = super::hit("committed", Some("live")).is_err();
            std::process::exit(if failed { 7 } else { 8 });
        }
        let run = |rules: &str| {
            let test = "fail_point::tests::kill_and_error_and_pause_do_what_they_say";
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", test]).env(VARIABLE, rules).stdout(std::process::Stdio::null()).spawn().unwrap()
        };
        assert_eq!(run("planned=kill").wait().unwrap().signal(), Some(9));
        assert_eq!(run("committed@live=error").wait().unwrap().code(), Some(7));
        assert_eq!(run("committed@other=error").wait().unwrap().code(), Some(8));

        let folder = tempfile::tempdir().unwrap();
        let (go, reached) = (folder.path().join("go"), folder.path().join("go.reached"));
        let mut child = run(&format!("planned=pause({})", go.display()));
        while !reached.exists() {
            assert!(child.try_wait().unwrap().is_none(), "the child did not wait");
            std::thread::yield_now();
        }
        std::fs::write(go, "").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(8));
    }

    #[test]
    fn wrong_rules_are_errors() {
        for (rules, error) in [
            ("wirtten=kill", "unknown fail point: `wirtten`"),
            ("plan", "no `=` in `plan`"),
            ("plan=explode", "unknown action: `explode`"),
            ("plan:0=kill", "not a number of hits: `0`"),
            ("plan:x=kill", "not a number of hits: `x`"),
        ] {
            assert_eq!(parse(rules), Err(error.to_string()), "{rules}");
        }
    }
}
