//! The text of types and schemas: `DECIMAL(10,2)`, `a INT NOT NULL, b STRUCT<c: STRING>`.
//!
//! ```text
//! type    := name [ "(" digits { "," digits } ")" ] | ARRAY "<" type ">" | MAP "<" type "," type ">"
//!          | STRUCT "<" [ field { "," field } ] ">"
//! field   := name [ ":" ] type { NOT NULL | COMMENT string }
//! fields  := field { "," field }
//! ```
//! Names are bare words or backticked; strings are in single or double quotes.
//! Not here: the column list of a table, with DEFAULT and constraints (`parse/columns.rs`).

use std::ops::Range;

use crate::data_type::{DataType, Field};
use crate::diagnostic::nearest;
use crate::name::Name;

/// Why a text is no type or schema, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeError {
    pub message: String,
    pub help: Option<String>,
    /// Bytes of the text that was parsed.
    pub range: Range<usize>,
}

impl TypeError {
    fn new(range: Range<usize>, message: impl Into<String>) -> TypeError {
        TypeError { message: message.into(), help: None, range }
    }

    fn help(mut self, help: impl Into<String>) -> TypeError {
        self.help = Some(help.into());
        self
    }
}

/// Parses one type, which must be the whole text.
pub fn parse_type(text: &str) -> Result<DataType, TypeError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let data_type = parser.data_type()?;
    parser.end()?;
    Ok(data_type)
}

/// Parses `a INT NOT NULL COMMENT 'x', b STRUCT<c: STRING>`: the option `schema`. Names are unique.
pub fn parse_fields(text: &str) -> Result<Vec<Field>, TypeError> {
    fields(text, Parser::name)
}

/// Parses the option `schemaHints`: as [`parse_fields`], but a name may be a path, `payload.items.element.price`.
/// The field's name is then the path, which [`crate::name::Name::split`] takes apart.
pub fn parse_hints(text: &str) -> Result<Vec<Field>, TypeError> {
    fields(text, Parser::path)
}

fn fields<'a>(
    text: &'a str,
    name: impl Fn(&mut Parser<'a>) -> Result<(String, Range<usize>), TypeError>,
) -> Result<Vec<Field>, TypeError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let mut fields: Vec<Field> = Vec::new();
    loop {
        let (name, range) = name(&mut parser)?;
        unique(&fields, &name, range)?;
        fields.push(parser.field_after(name)?);
        if !parser.take(',') {
            break;
        }
    }
    parser.end()?;
    Ok(fields)
}

fn unique(fields: &[Field], name: &str, range: Range<usize>) -> Result<(), TypeError> {
    match fields.iter().any(|field| field.name.to_lowercase() == name.to_lowercase()) {
        true => Err(duplicate(name, range)),
        false => Ok(()),
    }
}

fn duplicate(name: &str, range: Range<usize>) -> TypeError {
    TypeError::new(range, format!("column `{name}` is named twice"))
        .help("names are compared without regard to case; remove or rename one")
}

/// Types nested deeper than this are refused, so that no text can exhaust the stack.
const DEPTH_MAX: usize = 64;

/// The types by name, for suggestions.
const TYPE_NAMES: [&str; 19] = [
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "INTEGER",
    "BIGINT",
    "LONG",
    "FLOAT",
    "REAL",
    "DOUBLE",
    "DECIMAL",
    "NUMERIC",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "ARRAY",
    "STRUCT",
];

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// A field whose name was read: `[:] type { NOT NULL | COMMENT 's' }`.
    fn field_after(&mut self, name: String) -> Result<Field, TypeError> {
        self.take(':');
        let data_type = self.data_type()?;
        let mut field = Field { name, data_type, is_nullable: true, comment: None };
        while !matches!(self.peek(), None | Some(',' | '>')) {
            self.field_suffix(&mut field)?;
        }
        Ok(field)
    }

    fn field_suffix(&mut self, field: &mut Field) -> Result<(), TypeError> {
        let (word, range) = self.here();
        match word.to_ascii_uppercase().as_str() {
            "NOT" => {
                self.at = range.end;
                if !self.keyword("NULL") {
                    return Err(self.expected("`NULL` after `NOT`"));
                }
                field.is_nullable = false;
            }
            "COMMENT" => {
                self.at = range.end;
                field.comment = Some(self.string()?);
            }
            "GENERATED" | "PRIMARY" | "REFERENCES" | "MASK" | "CONSTRAINT" | "COLLATE" => {
                return Err(TypeError::new(
                    range,
                    format!("`{}` of a column is not supported yet", word.to_uppercase()),
                )
                .help("remove it"));
            }
            _ => return Err(self.expected("`,`, `NOT NULL`, `COMMENT` or the end")),
        }
        Ok(())
    }

    fn data_type(&mut self) -> Result<DataType, TypeError> {
        self.depth += 1;
        let (word, range) = self.here();
        if self.depth > DEPTH_MAX {
            return Err(TypeError::new(range, format!("types are nested more than {DEPTH_MAX} deep")));
        }
        if word.is_empty() {
            return Err(self.expected("a type"));
        }
        let (word, name) = (word.to_string(), word.to_ascii_uppercase());
        self.at = range.end;
        let data_type = match name.as_str() {
            "BOOLEAN" => DataType::Boolean,
            "TINYINT" | "BYTE" => DataType::Byte,
            "SMALLINT" | "SHORT" => DataType::Short,
            "INT" | "INTEGER" => DataType::Integer,
            "BIGINT" | "LONG" => DataType::Long,
            "FLOAT" | "REAL" => DataType::Float,
            "DOUBLE" => DataType::Double,
            "STRING" => DataType::String,
            "BINARY" => DataType::Binary,
            "DATE" => DataType::Date,
            "TIMESTAMP" | "TIMESTAMP_LTZ" => DataType::Timestamp,
            "TIMESTAMP_NTZ" => DataType::TimestampNtz,
            "DECIMAL" | "DEC" | "NUMERIC" => self.decimal(range)?,
            "ARRAY" => {
                self.expect('<')?;
                let element = self.data_type()?;
                self.expect('>')?;
                DataType::Array(Box::new(element))
            }
            "MAP" => {
                self.expect('<')?;
                let key = self.data_type()?;
                self.expect(',')?;
                let value = self.data_type()?;
                self.expect('>')?;
                DataType::Map(Box::new(key), Box::new(value))
            }
            "STRUCT" => DataType::Struct(self.struct_fields()?),
            _ => return Err(unknown_type(&word, range)),
        };
        self.depth -= 1;
        Ok(data_type)
    }

    fn struct_fields(&mut self) -> Result<Vec<Field>, TypeError> {
        self.expect('<')?;
        let mut fields: Vec<Field> = Vec::new();
        if self.take('>') {
            return Ok(fields);
        }
        loop {
            let (name, range) = self.name()?;
            unique(&fields, &name, range)?;
            let field = self.field_after(name)?;
            fields.push(field);
            if !self.take(',') {
                break;
            }
        }
        self.expect('>')?;
        Ok(fields)
    }

    /// `(precision[, scale])`; Spark's default is (10, 0).
    fn decimal(&mut self, name: Range<usize>) -> Result<DataType, TypeError> {
        let (mut precision, mut scale) = (10, 0);
        if self.take('(') {
            precision = self.number()?;
            if self.take(',') {
                scale = self.number()?;
            }
            self.expect(')')?;
        }
        if !(1..=38).contains(&precision) || scale > precision {
            let range = name.start..self.at;
            return Err(TypeError::new(range, format!("DECIMAL({precision},{scale}) does not exist"))
                .help("the precision is 1 to 38, the scale 0 to the precision"));
        }
        Ok(DataType::Decimal { precision, scale: scale.cast_signed() })
    }

    fn number(&mut self) -> Result<u8, TypeError> {
        let (word, range) = self.here();
        match word.parse() {
            Ok(number) if number <= i8::MAX as u8 => {
                self.at = range.end;
                Ok(number)
            }
            _ => Err(self.expected("a number up to 38")),
        }
    }

    /// A bare or backticked name.
    fn name(&mut self) -> Result<(String, Range<usize>), TypeError> {
        let (word, range) = self.here();
        if !word.is_empty() {
            let name = word.to_string();
            self.at = range.end;
            return Ok((name, range));
        }
        if self.peek() != Some('`') {
            return Err(self.expected("a name"));
        }
        let name = self.quoted('`')?;
        match name.is_empty() {
            true => Err(TypeError::new(range.start..self.at, "a name is empty")),
            false => Ok((name, range.start..self.at)),
        }
    }

    /// Names joined by dots, in the form of [`Name`].
    fn path(&mut self) -> Result<(String, Range<usize>), TypeError> {
        let (first, mut range) = self.name()?;
        let mut parts = vec![first];
        while self.take('.') {
            let (part, at) = self.name()?;
            parts.push(part);
            range.end = at.end;
        }
        Ok((Name { parts }.to_string(), range))
    }

    fn string(&mut self) -> Result<String, TypeError> {
        match self.peek() {
            Some(quote @ ('\'' | '"')) => self.quoted(quote),
            _ => Err(self.expected("a string in quotes")),
        }
    }

    /// The quote doubled stands for itself; in strings a backslash takes the next character as it is.
    fn quoted(&mut self, quote: char) -> Result<String, TypeError> {
        let start = self.at;
        let mut out = String::new();
        let mut chars = self.text[start..].char_indices().skip(1).peekable();
        while let Some((i, c)) = chars.next() {
            if c == '\\' && quote != '`' {
                out.extend(chars.next().map(|(_, c)| c));
            } else if c == quote {
                if chars.peek().is_none_or(|(_, c)| *c != quote) {
                    self.at = start + i + quote.len_utf8();
                    return Ok(out);
                }
                out.push(quote);
                chars.next();
            } else {
                out.push(c);
            }
        }
        Err(TypeError::new(start..self.text.len(), format!("{quote} is never closed")))
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let (word, range) = self.here();
        let found = word.eq_ignore_ascii_case(keyword);
        if found {
            self.at = range.end;
        }
        found
    }

    fn take(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(symbol);
        if found {
            self.at += symbol.len_utf8();
        }
        found
    }

    fn expect(&mut self, symbol: char) -> Result<(), TypeError> {
        match self.take(symbol) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{symbol}`"))),
        }
    }

    fn end(&mut self) -> Result<(), TypeError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end")),
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.text[self.at..].chars().next()
    }

    /// The word that starts here, empty if none does, and its range.
    fn here(&mut self) -> (&'a str, Range<usize>) {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
        (&rest[..length], self.at..self.at + length)
    }

    /// Blanks and `--` comments.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            if !self.text[self.at..].starts_with("--") {
                return;
            }
            let rest = &self.text[self.at..];
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn expected(&mut self, what: &str) -> TypeError {
        let (word, mut range) = self.here();
        let mut found = word.to_string();
        if found.is_empty()
            && let Some(c) = self.peek()
        {
            found.push(c);
            range.end += c.len_utf8();
        }
        match found.is_empty() {
            true => TypeError::new(range, format!("expected {what}, found the end")),
            false => TypeError::new(range, format!("expected {what}, found `{found}`")),
        }
    }
}

fn unknown_type(word: &str, range: Range<usize>) -> TypeError {
    let name = word.to_ascii_uppercase();
    let (message, help) = match name.as_str() {
        "VARCHAR" | "CHAR" | "CHARACTER" => {
            (format!("type {name} is not supported: lengths are not enforced"), "use STRING".to_string())
        }
        "VARIANT" => {
            ("type VARIANT is not supported".to_string(), "use STRING and read it with from_json or `:`".to_string())
        }
        "VOID" | "NULL" => (format!("type {name} is not supported: no table can store it"), "name a type".to_string()),
        "INTERVAL" | "OBJECT" | "GEOGRAPHY" | "GEOMETRY" | "TIME" => {
            (format!("type {name} is not supported"), "use STRING".to_string())
        }
        "TEXT" => ("unknown type `TEXT`".to_string(), "did you mean STRING?".to_string()),
        "DATETIME" => ("unknown type `DATETIME`".to_string(), "did you mean TIMESTAMP?".to_string()),
        _ => (
            format!("unknown type `{word}`"),
            match nearest(word, TYPE_NAMES) {
                Some(near) => format!("did you mean {near}?"),
                None => "types are BIGINT, STRING, DOUBLE, TIMESTAMP, ARRAY<…>, STRUCT<…> and so on".to_string(),
            },
        ),
    };
    TypeError::new(range, message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_printed_in_sparks_spelling() {
        for (text, printed) in [
            ("long", "BIGINT"),
            ("Integer", "INT"),
            ("dec", "DECIMAL(10,0)"),
            ("numeric(38 , 38)", "DECIMAL(38,38)"),
            ("timestamp_ltz", "TIMESTAMP"),
            ("array< array<byte>>", "ARRAY<ARRAY<TINYINT>>"),
            ("map<string,double>", "MAP<STRING, DOUBLE>"),
            ("struct<>", "STRUCT<>"),
            (
                "struct<a:int not null comment 'it''s', `b c` string>",
                "STRUCT<a: INT NOT NULL COMMENT 'it\\'s', `b c`: STRING>",
            ),
        ] {
            let data_type = parse_type(text).unwrap();
            assert_eq!(data_type.to_string(), printed);
            assert_eq!(parse_type(printed).unwrap(), data_type);
        }
    }

    #[test]
    fn wrong_types_say_where_and_what_instead() {
        for (text, place, message) in [
            ("strin", "strin", "unknown type `strin`; did you mean STRING?"),
            ("varchar(10)", "varchar", "type VARCHAR is not supported: lengths are not enforced; use STRING"),
            (
                "decimal(39,2)",
                "decimal(39,2)",
                "DECIMAL(39,2) does not exist; the precision is 1 to 38, the scale 0 to the precision",
            ),
            ("array<int", "", "expected `>`, found the end"),
            (
                "struct<a int, A int>",
                "A",
                "column `A` is named twice; names are compared without regard to case; remove or rename one",
            ),
            ("int x", "x", "expected the end, found `x`"),
            ("", "", "expected a type, found the end"),
        ] {
            let error = parse_type(text).unwrap_err();
            let help = error.help.map(|help| format!("; {help}")).unwrap_or_default();
            assert_eq!((&text[error.range], format!("{}{help}", error.message)), (place, message.to_string()));
        }
        assert!(parse_type(&"array<".repeat(100_000)).unwrap_err().message.contains("deep"));
    }

    #[test]
    fn schemas_have_names_types_and_comments() {
        let fields = parse_fields("id BIGINT NOT NULL, -- the key\n `a.b`: STRING COMMENT \"it\\\"s\"").unwrap();
        let printed: Vec<_> = fields.iter().map(Field::to_string).collect();
        assert_eq!(printed, ["id BIGINT NOT NULL", "`a.b` STRING COMMENT 'it\"s'"]);
        assert!(parse_fields("a INT DEFAULT 1").unwrap_err().message.contains("DEFAULT"));
        assert!(parse_fields("a INT, A STRING").is_err());
        assert!(parse_fields("a INT,").is_err());
    }

    #[test]
    fn hints_name_fields_by_path() {
        let hints = parse_hints("a.b STRING, `x.y`.element.c: DECIMAL(10,2)").unwrap();
        assert_eq!(hints[0].name, "a.b");
        assert_eq!(Name::split(&hints[1].name).parts, ["x.y", "element", "c"]);
    }
}
