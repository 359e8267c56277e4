//! The types of declared columns are types.

use crate::ddl::parse_type;
use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::Settings;
use crate::text::Span;

pub(super) fn check(graph: &Graph, _settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    for column in graph.datasets.iter().flat_map(|dataset| &dataset.definition.columns) {
        let Some(data_type) = &column.data_type else { continue };
        let Err(error) = parse_type(&data_type.value) else { continue };
        let whole = data_type.span;
        // The part of the type, if the type stands in the file as it was parsed.
        let span = match whole.end - whole.start == data_type.value.len() {
            true => Span::new(whole.file, whole.start + error.range.start..whole.start + error.range.end),
            false => whole,
        };
        let message = format!("column `{}`: {}", column.name.value, error.message);
        let mut diagnostic = Diagnostic::error("invalid-type", span, message);
        diagnostic.help = error.help;
        diagnostics.push(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use crate::load::load;
    use crate::text::SourceFile;
    use crate::workspace::Workspace;

    #[test]
    fn wrong_types_are_found_in_sql_and_in_toml_at_their_place() {
        let sql = "CREATE STREAMING TABLE a (id BIGINT, items ARRAY<STRIN>) AS SELECT * FROM STREAM s";
        let toml = "[[streaming_table]]\nname = \"b\"\nschema = \"n VARCHAR(3)\"\nsql = \"SELECT * FROM STREAM s\"";
        let settings = "[[source]]\nname = \"s\"\nformat = \"delta\"\npath = \"s\"";
        let files = [("flowbench.toml", settings), ("transformations/a.sql", sql), ("transformations/b.toml", toml)];
        let files = files.map(|(path, text)| SourceFile { path: path.to_string(), text: text.to_string() }).to_vec();
        let pipeline =
            load(Workspace { folder_name: "w".to_string(), files, unreadable: Vec::new(), overrides: Vec::new() });
        let found: Vec<_> = pipeline
            .diagnostics
            .iter()
            .map(|d| (d.code, d.span.map_or("", |s| &pipeline.workspace.files[s.file.0].text[s.start..s.end])))
            .collect();
        assert_eq!(found, [("invalid-type", "STRIN"), ("invalid-type", "VARCHAR")]);
    }
}
