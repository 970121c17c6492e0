//! The configuration file of `windrow serve`, which has the form of mongod's: YAML with sections.
//!
//! ```yaml
//! net:
//!   port: 27017
//! storage:
//!   dbPath: /var/lib/windrow
//! ```

use std::fs;
use std::path::Path;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::given_option::GivenOption;
use super::option_table::{Kind, OPTIONS, ServerOption};
use crate::command_line::Failure;

/// The maximum nesting depth of sections. Options have a depth of up to 4.
const DEPTH_MAX: usize = 8;

/// The maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads the options of a file. Fails with the line of the first error.
pub fn read(path: &Path) -> Result<Vec<GivenOption>, Failure> {
    let fail = |reason: String| Failure::Usage(format!("{}: {reason}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| fail(error.to_string()))?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(fail(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let name = path.display().to_string();
    parse(&text, &name)
        .map_err(|FileError { line, reason }| Failure::Usage(format!("{name}:{line}: {reason}")))
}

/// An error in a file. `reason` is a sentence.
#[derive(Debug, PartialEq)]
struct FileError {
    line: usize,
    reason: String,
}

impl From<ScanError> for FileError {
    fn from(error: ScanError) -> FileError {
        FileError {
            line: error.marker().line(),
            reason: format!("it is not YAML: {}", error.info()),
        }
    }
}

/// Parses the text of a file. `name` is its name in messages.
fn parse(text: &str, name: &str) -> Result<Vec<GivenOption>, FileError> {
    let mut events = Events(Parser::new_from_str(text));
    let mut given = Vec::new();
    loop {
        let (event, span) = events.next()?;
        match event {
            Event::StreamEnd => return Ok(given),
            Event::DocumentStart(_) => {}
            Event::StreamStart | Event::DocumentEnd | Event::Nothing => continue,
            _ => return Err(at(&span, "a section is expected")),
        }
        if !given.is_empty() {
            return Err(at(&span, "it has several documents"));
        }
        let (event, span) = events.next()?;
        let mut reader = SectionReader {
            events: &mut events,
            name,
            given: &mut given,
        };
        match event {
            Event::MappingStart(..) => reader.read_section(&mut Vec::new())?,
            Event::Scalar(text, style, ..) if is_null(&text, style) => {}
            _ => {
                return Err(at(
                    &span,
                    "it must have sections, such as net: and storage:",
                ));
            }
        }
    }
}

/// The events of a YAML text.
struct Events<'t>(Parser<'t, saphyr_parser::StrInput<'t>>);

impl<'t> Events<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), FileError> {
        let next = self.0.next().transpose()?;
        Ok(next.unwrap_or((Event::StreamEnd, Span::default())))
    }
}

/// Reads sections and their options.
struct SectionReader<'r, 't> {
    events: &'r mut Events<'t>,
    name: &'r str,
    given: &'r mut Vec<GivenOption>,
}

impl SectionReader<'_, '_> {
    /// Reads a section to its end. `path` contains the keys of the section.
    fn read_section(&mut self, path: &mut Vec<String>) -> Result<(), FileError> {
        loop {
            let (event, span) = self.events.next()?;
            let key = match event {
                Event::MappingEnd => return Ok(()),
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(at(&span, "a name is expected")),
            };
            path.push(key);
            let full = path.join(".");
            let (event, value_span) = self.events.next()?;
            match event {
                Event::MappingStart(..) => self.enter(path, &full, &span)?,
                Event::Scalar(text, style, ..) if is_null(&text, style) => {
                    if !is_section(&full) {
                        return Err(at(&span, &format!("{full} has no value")));
                    }
                }
                Event::Scalar(text, ..) => self.take(path, &full, &text, &span)?,
                Event::Alias(_) => return Err(at(&value_span, "aliases are not supported")),
                _ => return Err(at(&span, &format!("{full} cannot have a list"))),
            }
            path.pop();
        }
    }

    fn enter(&mut self, path: &mut Vec<String>, full: &str, span: &Span) -> Result<(), FileError> {
        if !is_section(full) || path.len() > DEPTH_MAX {
            return Err(at(span, &unknown(full)));
        }
        self.read_section(path)
    }

    /// Reads the value of an option or of a map entry.
    fn take(
        &mut self,
        path: &[String],
        full: &str,
        text: &str,
        span: &Span,
    ) -> Result<(), FileError> {
        let (parent, entry) = match path {
            [parent, entry] => (parent.as_str(), entry.as_str()),
            _ => ("", ""),
        };
        let named = |key: &str, kind: Kind| {
            let mut options = OPTIONS.iter();
            options.find(|option| {
                option.key == key && (option.kind == Kind::Map) == (kind == Kind::Map)
            })
        };
        let (option, value): (&'static ServerOption, String) =
            match (named(full, Kind::Text), named(parent, Kind::Map)) {
                (Some(option), _) => (option, text.to_owned()),
                (None, Some(option)) => (option, format!("{entry}={text}")),
                (None, None) => return Err(at(span, &unknown(full))),
            };
        let is_repeated = |given: &GivenOption| {
            given.option.key == option.key && (option.kind != Kind::Map || given.value == *value)
        };
        if self.given.iter().any(is_repeated) {
            return Err(at(span, &format!("{full} is given twice")));
        }
        self.given.push(GivenOption {
            option,
            value: value.into(),
            origin: format!("{}:{}: {full}", self.name, span.start.line()),
        });
        Ok(())
    }
}

/// Returns `true` if this key is a section: options or map entries have longer keys that begin with
/// it.
fn is_section(key: &str) -> bool {
    OPTIONS.iter().any(|option| {
        let rest = option.key.strip_prefix(key);
        rest.is_some_and(|rest| {
            rest.starts_with('.') || rest.is_empty() && option.kind == Kind::Map
        })
    })
}

fn is_null(text: &str, style: ScalarStyle) -> bool {
    style == ScalarStyle::Plain && matches!(text, "" | "~" | "null")
}

fn unknown(key: &str) -> String {
    format!("{key} is not an option of windrow; `windrow serve --help` shows them")
}

fn at(span: &Span, reason: &str) -> FileError {
    FileError {
        line: span.start.line(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[(&str, &str)], (usize, &str)>) {
        let parsed = parse(text, "f");
        match (parsed, expected) {
            (Ok(given), Ok(expected)) => {
                let found: Vec<(&str, &str)> = given
                    .iter()
                    .map(|given| (given.option.name, given.value.to_str().unwrap()))
                    .collect();
                assert_eq!(found, expected, "{text}");
            }
            (Err(error), Err((line, reason))) => {
                assert!(error.reason.contains(reason), "{text}: {}", error.reason);
                assert_eq!(error.line, line, "{text}");
            }
            (Ok(_), Err(expected)) => panic!("{text}: expected {expected:?}"),
            (Err(error), Ok(_)) => panic!("{text}: {error:?}"),
        }
    }

    #[test]
    fn options_are_read() {
        check("", Ok(&[]));
        check("# nothing\n", Ok(&[]));
        check("---\nnet:\n", Ok(&[]));
        check(
            "net:\n  port: 1\n  tls:\n    mode: requireTLS\n  unixDomainSocket: {enabled: false}\n",
            Ok(&[
                ("port", "1"),
                ("tls-mode", "requireTLS"),
                ("no-unix-socket", "false"),
            ]),
        );
        check(
            "setParameter:\n  quiet: true\n  logLevel: 1\nstorage:\n  dbPath: \"a b\"\n",
            Ok(&[
                ("set-parameter", "quiet=true"),
                ("set-parameter", "logLevel=1"),
                ("data", "a b"),
            ]),
        );
        check("net.port: 1", Ok(&[("port", "1")]));
    }

    #[test]
    fn errors_have_lines() {
        check("net:\n  ports: 1\n", Err((2, "net.ports is not an option")));
        check("net:\n  port: 1\n  port: 2\n", Err((3, "twice")));
        check("nets:\n  port: 1\n", Err((1, "nets is not an option")));
        check(
            "processManagement:\n  fork: true\n",
            Err((2, "processManagement.fork")),
        );
        check("net:\n  port:\n", Err((2, "has no value")));
        check("net:\n  port: {a: 1}\n", Err((2, "net.port is not")));
        check("net:\n  bindIp: [a, b]\n", Err((2, "cannot have a list")));
        check("net: 1\n", Err((1, "net is not an option")));
        check("- net\n", Err((1, "sections")));
        check("text\n", Err((1, "sections")));
        check(
            "net:\n  port: 1\n---\nnet:\n  port: 2\n",
            Err((3, "several")),
        );
        check("net: &a\n  port: 1\nstorage: *a\n", Err((3, "alias")));
        check("net:\n\tport: 1\n", Err((2, "YAML")));
        check("net:\n  port: \"1\n", Err((2, "YAML")));
        check(&"{a: ".repeat(100), Err((1, "a is not")));
    }
}
