//! `--format`: formats each result by a template.

use windrow_file_query::TimeContext;

use windrow_file_search::SearchResult;

use super::result::{Marks, format_snippet, id_bytes, path_bytes, to_single_line};

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Field(TemplateField),
}

/// A field of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateField {
    Number,
    Score,
    Path,
    File,
    Inner,
    Folder,
    Name,
    Title,
    Kind,
    Extension,
    Language,
    Author,
    Size,
    Date,
    Modified,
    Line,
    Page,
    Snippet,
}

/// The names between the braces.
const FIELDS: [(&str, TemplateField); 18] = [
    ("number", TemplateField::Number),
    ("score", TemplateField::Score),
    ("path", TemplateField::Path),
    ("file", TemplateField::File),
    ("inner", TemplateField::Inner),
    ("folder", TemplateField::Folder),
    ("name", TemplateField::Name),
    ("title", TemplateField::Title),
    ("kind", TemplateField::Kind),
    ("ext", TemplateField::Extension),
    ("lang", TemplateField::Language),
    ("author", TemplateField::Author),
    ("size", TemplateField::Size),
    ("date", TemplateField::Date),
    ("modified", TemplateField::Modified),
    ("line", TemplateField::Line),
    ("page", TemplateField::Page),
    ("snippet", TemplateField::Snippet),
];

impl Template {
    /// Parses a template: text with `{field}`, the escaped braces `{{` and `}}`, and `\t`, `\n`,
    /// `\0` and `\\`. Fails with a message.
    pub fn parse(text: &str) -> Result<Template, String> {
        let (mut pieces, mut literal) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let behind = rest.get(next.len_utf8()..).unwrap_or_default();
            let doubled = behind
                .strip_prefix(next)
                .filter(|_| matches!(next, '{' | '}'));
            rest = match (next, doubled) {
                (_, Some(after)) => {
                    literal.push(next);
                    after
                }
                ('{', None) => {
                    let (name, after) = behind.split_once('}').ok_or_else(|| {
                        format!("--format {text:?} has a brace that is not closed; write {{{{ for a brace")
                    })?;
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    pieces.push(Piece::Field(field(name)?));
                    after
                }
                ('}', None) => {
                    return Err(format!(
                        "--format {text:?} closes a brace that is not open; write }}}} for a brace"
                    ));
                }
                ('\\', _) => {
                    let (character, after) = escape(behind)?;
                    literal.push(character);
                    after
                }
                _ => {
                    literal.push(next);
                    behind
                }
            };
        }
        pieces.push(Piece::Text(literal));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Ok(Template { pieces })
    }

    /// Formats a result with its rank `number`, without a line break. Paths are in the bytes of the
    /// file system, as shells and programs need them.
    pub fn format(&self, result: &SearchResult, number: usize) -> Vec<u8> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone().into_bytes(),
            Piece::Field(field) => field.value(result, number),
        });
        pieces.flatten().collect()
    }
}

impl TemplateField {
    /// Returns the field of a result with its rank `number`. Paths are exact, other texts are on
    /// one line.
    fn value(self, result: &SearchResult, number: usize) -> Vec<u8> {
        let date = |ms| TimeContext::system().format_ms(ms);
        let optional = |number: Option<usize>| number.map_or(String::new(), |it| it.to_string());
        let text = match self {
            TemplateField::Path => return id_bytes(result),
            TemplateField::File => return path_bytes(&result.path),
            TemplateField::Folder => {
                let folder = result.path.rsplit_once('/');
                return path_bytes(folder.map_or("", |(folder, _)| folder));
            }
            // A member is not a file, so its name is not a path.
            TemplateField::Name if result.path.ends_with(&result.file_name) => {
                return path_bytes(&result.file_name);
            }
            TemplateField::Number => number.to_string(),
            TemplateField::Score => format!("{:.2}", result.score),
            TemplateField::Inner => result.inner.clone().unwrap_or_default(),
            TemplateField::Name => result.file_name.clone(),
            TemplateField::Title => to_single_line(result.shown_name()),
            TemplateField::Kind => result.kind.clone(),
            TemplateField::Extension => result.extension.clone(),
            TemplateField::Language => result.language.clone(),
            TemplateField::Author => to_single_line(&result.author),
            TemplateField::Size => result.size.to_string(),
            TemplateField::Date => date(result.date_ms.unwrap_or(result.modified_ms)),
            TemplateField::Modified => date(result.modified_ms),
            TemplateField::Line => optional(result.line()),
            TemplateField::Page => optional(result.page()),
            TemplateField::Snippet => format_snippet(&result.snippet, Marks::new("", "")),
        };
        text.into_bytes()
    }
}

fn field(name: &str) -> Result<TemplateField, String> {
    let found = FIELDS.iter().find(|(known, _)| *known == name);
    found.map(|(_, field)| *field).ok_or_else(|| {
        let names = FIELDS.map(|(name, _)| name).join(", ");
        format!("--format has no field {{{name}}}; the fields are {names}")
    })
}

/// Parses an escape sequence after its backslash.
fn escape(behind: &str) -> Result<(char, &str), String> {
    for (name, character) in [('t', '\t'), ('n', '\n'), ('0', '\0'), ('\\', '\\')] {
        if let Some(after) = behind.strip_prefix(name) {
            return Ok((character, after));
        }
    }
    let name: String = behind.chars().take(1).collect();
    Err(format!(
        "--format has no escape \\{name}; write \\t, \\n, \\0 or \\\\"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn templates_are_parsed() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let parsed = Template::parse(r"{{a}}{path}\t\\ä{size}").unwrap();
        let expected = [
            text("{a}"),
            Piece::Field(TemplateField::Path),
            text("\t\\ä"),
            Piece::Field(TemplateField::Size),
        ];
        assert_eq!(parsed.pieces, expected);
    }

    #[test]
    fn wrong_templates_are_explained() {
        let cases = [
            ("{colour}", "{colour}"),
            ("{path", "not closed"),
            ("path}", "not open"),
            (r"\x", r"\x"),
            ("\\", "no escape"),
        ];
        for (template, message) in cases {
            let error = Template::parse(template).unwrap_err();
            assert!(error.contains(message), "{template}: {error}");
        }
    }

    #[test]
    fn results_are_formatted() {
        let document = doc! {
            "_id": "/d/m.mbox/#2", "path": "/d/m.mbox", "inner": "#2", "title": "About\n baking",
            "kind": "mail", "score": 1.5, "text": "Eat \n\n cake,\x1b[2J ça.", "size": 7_i64,
            "from": ["Ada <a@b>", "Bob"],
        };
        let result = SearchResult::new(document.as_document());
        let cases = [
            ("{number} {score} {path}", "3 1.50 /d/m.mbox/#2"),
            ("{file}|{inner}|{folder}", "/d/m.mbox|#2|/d"),
            (
                "{title}, {author}, {size}",
                "About baking, Ada <a@b>, Bob, 7",
            ),
            ("{snippet}[{line}{page}]", "Eat cake,[2J ça.[]"),
        ];
        for (template, expected) in cases {
            let template = Template::parse(template).unwrap();
            assert_eq!(template.format(&result, 3), expected.as_bytes());
        }
    }

    /// A name that is not UTF-8, or that has a backslash, could not be passed to another program.
    #[test]
    fn paths_are_in_the_bytes_of_the_file_system() {
        let document = doc! {
            "_id": r"/d\\e/caf\xe9.mbox/#2", "path": r"/d\\e/caf\xe9.mbox", "inner": "#2",
            "filename": r"caf\xe9.mbox", "title": r"a\xe9",
        };
        let result = SearchResult::new(document.as_document());
        let template = Template::parse("{path} {file} {folder} {name} {title}").unwrap();
        let expected = b"/d\\e/caf\xe9.mbox/#2 /d\\e/caf\xe9.mbox /d\\e caf\xe9.mbox a\\xe9";
        assert_eq!(template.format(&result, 1), expected);
    }
}
