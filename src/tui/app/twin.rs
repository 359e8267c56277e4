//! The command line that does the same as what was done on the screen.

use pipeline::command::Command;
use pipeline::plan::UpdateRequest;
use pipeline::scd::{DiffRange, KeyPart, ScdQuestion};

/// The command line of a command; None where there is nothing to type.
pub fn twin(command: &Command) -> Option<String> {
    Some(match command {
        Command::Validate => "flowbench validate".to_string(),
        Command::PlanUpdate { request } => format!("{} --plan", update(request)),
        Command::StartUpdate { request } => update(request),
        Command::CancelUpdate => return None,
        Command::PlanReset { flows } => format!("flowbench reset {} --plan", words(flows)),
        Command::ResetFlows { flows } => format!("flowbench reset {} --yes", words(flows)),
        Command::Rows { dataset, .. } => format!("flowbench show {}", word(dataset)),
        Command::Fix { .. } => "flowbench validate --fix".to_string(),
        Command::Drop { dataset } => format!("flowbench drop {} --yes", word(dataset)),
        Command::Inspect { question: asked } => question(asked),
    })
}

/// `flowbench run …` for a request.
pub fn update(request: &UpdateRequest) -> String {
    let mut line = "flowbench run".to_string();
    let mut list = |option: &str, names: &[String]| {
        for name in names {
            line.push_str(&format!(" {option} {}", word(name)));
        }
    };
    list("--refresh", &request.refresh);
    list("--full-refresh", &request.full_refresh);
    list("--flow", &request.flows);
    list("--rerun-once", &request.rerun_once);
    for (is_set, option) in [
        (request.full_refresh_all, " --full-refresh-all"),
        (request.refresh_failed, " --refresh-failed"),
        (request.with_downstream, " --with-downstream"),
        (request.is_confirmed, " --yes"),
    ] {
        if is_set {
            line.push_str(option);
        }
    }
    line
}

/// `flowbench scd …` or `flowbench cutover …` for a question.
pub fn question(question: &ScdQuestion) -> String {
    // The value alone names a key of one column, unless it could be read as something else.
    let key = |key: &[KeyPart]| {
        if let [only] = key
            && !only.value.starts_with('-')
            && !only.value.contains('=')
        {
            return format!(" --key {}", word(&only.value));
        }
        let parts = key.iter().map(|part| format!(" --key {}", word(&format!("{}={}", part.column, part.value))));
        parts.collect::<String>()
    };
    match question {
        ScdQuestion::Keys { table, request } => {
            let mut line = format!("flowbench scd keys {}", word(table));
            if let Some(search) = &request.search {
                line.push_str(&format!(" --search {}", word(search)));
            }
            if let Some(only) = request.only {
                line.push_str(&format!(" --only {}", only.word()));
            }
            line
        }
        ScdQuestion::History { table, key: of } => format!("flowbench scd history {}{}", word(table), key(of)),
        ScdQuestion::AsOf { table, sequence, .. } => {
            format!("flowbench scd as-of {} {}", word(table), word(sequence))
        }
        ScdQuestion::Diff { table, range: DiffRange::Times { from, to }, .. } => {
            format!("flowbench scd diff {} {} {}", word(table), word(from), word(to))
        }
        ScdQuestion::Diff { table, range: DiffRange::Versions { key: of, from, to }, .. } => {
            format!("flowbench scd diff {}{} {from} {to}", word(table), key(of))
        }
        ScdQuestion::Check { table } => format!("flowbench scd check {}", word(table)),
        ScdQuestion::Cutover { table, request } => {
            let mut line = format!("flowbench cutover check {}", word(table));
            if let Some(search) = &request.search {
                line.push_str(&format!(" --search {}", word(search)));
            }
            if let Some(verdict) = request.verdict {
                line.push_str(&format!(" --verdict {}", verdict.words().replace(' ', "-")));
            }
            line
        }
    }
}

fn words(names: &[String]) -> String {
    names.iter().map(|name| word(name)).collect::<Vec<_>>().join(" ")
}

/// A name as a shell takes it.
fn word(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_string(),
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_command_line() {
        let request = UpdateRequest {
            full_refresh: vec!["gold.daily".to_string(), "odd name".to_string()],
            with_downstream: true,
            ..UpdateRequest::default()
        };
        assert_eq!(
            update(&request),
            "flowbench run --full-refresh gold.daily --full-refresh 'odd name' --with-downstream"
        );
        assert_eq!(request.words(), "full refresh gold.daily, odd name");
        assert_eq!(update(&UpdateRequest::default()), "flowbench run");
        assert_eq!(UpdateRequest::default().words(), "refresh all");
    }
}
