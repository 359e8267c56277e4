//! Names of datasets and flows, as written and as resolved.

use std::fmt;

/// A name as the user wrote it: one to three parts, quotes taken off.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Name {
    pub parts: Vec<String>,
}

impl Name {
    /// A name of one part.
    pub fn bare(part: impl Into<String>) -> Name {
        Name { parts: vec![part.into()] }
    }

    /// Splits at dots; backticks quote a part that holds a dot.
    pub fn split(text: &str) -> Name {
        let mut parts = vec![String::new()];
        let mut quoted = false;
        for c in text.chars() {
            match c {
                '`' => quoted = !quoted,
                '.' if !quoted => parts.push(String::new()),
                c => parts.last_mut().expect("never empty").push(c),
            }
        }
        Name { parts }
    }

    /// The last part.
    pub fn last(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            match part.contains(['.', '`', ' ']) {
                true => write!(f, "`{part}`")?,
                false => f.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// A dataset's full name. Spelled as the user wrote it, compared without regard to case.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct DatasetName {
    /// None where neither the name nor a USE CATALOG nor flowbench.toml gives one.
    pub catalog: Option<String>,
    pub schema: String,
    pub table: String,
}

impl DatasetName {
    /// Completes `name` with the catalog and schema in force where it was written.
    pub fn resolve(name: &Name, catalog: Option<&str>, schema: &str) -> DatasetName {
        let catalog = catalog.map(str::to_string);
        match name.parts.as_slice() {
            [table] => DatasetName { catalog, schema: schema.to_string(), table: table.clone() },
            [schema, table] => DatasetName { catalog, schema: schema.clone(), table: table.clone() },
            [.., catalog, schema, table] => {
                DatasetName { catalog: Some(catalog.clone()), schema: schema.clone(), table: table.clone() }
            }
            [] => DatasetName { catalog, schema: schema.to_string(), table: String::new() },
        }
    }

    /// The form used for comparing: lower case, `catalog.schema.table` without absent parts.
    pub fn key(&self) -> String {
        let mut key = String::new();
        if let Some(catalog) = &self.catalog {
            key.push_str(&catalog.to_lowercase());
            key.push('.');
        }
        key.push_str(&self.schema.to_lowercase());
        key.push('.');
        key.push_str(&self.table.to_lowercase());
        key
    }

    /// How people see it: without the schema if that is the workspace's own.
    pub fn short(&self, default_schema: &str) -> String {
        match self.schema.eq_ignore_ascii_case(default_schema) {
            true => self.table.clone(),
            false => format!("{}.{}", self.schema, self.table),
        }
    }
}

impl PartialEq for DatasetName {
    fn eq(&self, other: &DatasetName) -> bool {
        self.key() == other.key()
    }
}

impl Eq for DatasetName {}

impl std::hash::Hash for DatasetName {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for DatasetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(catalog) = &self.catalog {
            write!(f, "{catalog}.")?;
        }
        write!(f, "{}.{}", self.schema, self.table)
    }
}
