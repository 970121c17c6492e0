//! Parses the help texts of the commands. Completions and manual pages are generated from them.
//!
//! A help text consists of paragraphs, and of sections that begin with a title and a colon. Lines
//! in the sections `Commands:` and `Options:` consist of a name, at least two spaces, and a text.
//! The text can continue in lines with deeper indentation:
//!
//! ```text
//! Usage: windrow serve --data DIR [OPTION…]
//!
//! Options:
//!   --data DIR          the data folder; it is created if it does not exist
//!   -l, --names-only    print only the paths, a line each
//! ```
//!
//! The help texts are those that the program prints, so new commands and options are included
//! automatically.

use std::process::Command;

use crate::command_line::Failure;

/// The help of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct HelpPage {
    /// The name of the command. Empty for the program itself.
    pub command: String,
    /// The parts between empty lines.
    pub parts: Vec<HelpPart>,
}

/// A part of a help text.
#[derive(Debug, Clone, PartialEq)]
pub enum HelpPart {
    /// Lines of a paragraph.
    Paragraph(Vec<String>),
    /// `Usage: …`
    Usage(String),
    /// `Commands:` or `Options:`
    Entries { title: String, entries: Vec<Entry> },
    /// Any other section. Its lines are shown unchanged.
    Section { title: String, lines: Vec<String> },
}

/// A command or an option.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// `-l, --names-only` or `--data DIR`
    pub names: String,
    pub text: String,
}

/// Reads the help texts of the program and of all commands.
pub fn read_pages() -> Result<Vec<HelpPage>, Failure> {
    let own = HelpPage::parse("", &help_text(&["--help"])?);
    let commands: Vec<String> = own.entries("Commands").map(|it| it.names.clone()).collect();
    let mut pages = vec![own];
    for command in commands {
        let text = help_text(&[&command, "--help"])?;
        pages.push(HelpPage::parse(&command, &text));
    }
    Ok(pages)
}

/// Runs this program with `arguments`. Returns its output.
fn help_text(arguments: &[&str]) -> Result<String, Failure> {
    let program = std::env::current_exe().map_err(Failure::runtime)?;
    let ended = Command::new(program).args(arguments).output();
    let ended = ended.map_err(Failure::runtime)?;
    if !ended.status.success() {
        let arguments = arguments.join(" ");
        return Err(Failure::Runtime(format!(
            "`windrow {arguments}` fails with {}",
            ended.status
        )));
    }
    String::from_utf8(ended.stdout).map_err(Failure::runtime)
}

impl HelpPage {
    /// Parses a help text.
    pub fn parse(command: &str, text: &str) -> HelpPage {
        let mut parts = Vec::new();
        for line in text.lines() {
            if let Some(usage) = line.strip_prefix("Usage: ") {
                parts.push(HelpPart::Usage(usage.to_owned()));
            } else if let Some(title) = section_title(line) {
                parts.push(match title {
                    "Commands" | "Options" => HelpPart::Entries {
                        title: title.to_owned(),
                        entries: Vec::new(),
                    },
                    title => HelpPart::Section {
                        title: title.to_owned(),
                        lines: Vec::new(),
                    },
                });
            } else {
                push_line(&mut parts, line);
            }
        }
        parts.retain(|part| *part != HelpPart::Paragraph(Vec::new()));
        for part in &mut parts {
            if let HelpPart::Section { lines, .. } = part {
                let end = lines.iter().rposition(|line| !line.is_empty());
                lines.truncate(end.map_or(0, |end| end + 1));
            }
        }
        HelpPage {
            command: command.to_owned(),
            parts,
        }
    }

    /// Returns the entries of a section.
    pub fn entries(&self, section: &str) -> impl Iterator<Item = &Entry> {
        let sections = self.parts.iter().filter_map(move |part| match part {
            HelpPart::Entries { title, entries } if title == section => Some(entries),
            _ => None,
        });
        sections.flatten()
    }

    /// Returns the first sentence.
    pub fn summary(&self) -> String {
        let paragraphs = self.parts.iter().find_map(|part| match part {
            HelpPart::Paragraph(lines) => Some(lines.join(" ")),
            _ => None,
        });
        let text = paragraphs.unwrap_or_default();
        let end = text.find(". ").unwrap_or(text.len());
        let sentence = text.get(..end).unwrap_or_default();
        sentence.trim_end_matches('.').to_owned()
    }
}

impl Entry {
    /// Returns the names of an option: `-l` and `--names-only`.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        let names = self.names.split(", ");
        names.filter_map(|name| name.split_whitespace().next())
    }

    /// Returns the value of an option: `DIR`.
    pub fn value(&self) -> Option<&str> {
        self.names
            .split(", ")
            .last()?
            .split_once(' ')
            .map(|(_, value)| value)
    }

    /// Returns the possible values of an option, if the text begins with a list: `a, b or c`.
    pub fn choices(&self) -> Vec<&str> {
        let text = self.text.split([';', '[', '(']).next().unwrap_or_default();
        let text = text.rsplit_once(": ").map_or(text, |(_, list)| list);
        let words: Vec<&str> = text
            .split([',', ' '])
            .filter(|it| !matches!(*it, "" | "or"))
            .collect();
        // The text of a size option begins with examples.
        let is_word = self.value().is_some_and(|value| value != "SIZE");
        let is_list = words.len() > 1 && is_word && text.contains(',');
        let commas = text.matches(", ").count() + text.matches(" or ").count();
        if is_list && commas + 1 == words.len() {
            words
        } else {
            Vec::new()
        }
    }
}

/// Returns the title if the line is one, such as `Options:`.
fn section_title(line: &str) -> Option<&str> {
    let title = line.strip_suffix(':')?;
    let is_title = title.starts_with(char::is_uppercase) && !line.starts_with(' ');
    is_title.then_some(title)
}

/// Adds a line to the last part, or begins a paragraph.
fn push_line(parts: &mut Vec<HelpPart>, line: &str) {
    match parts.last_mut() {
        Some(HelpPart::Entries { entries, .. }) if line.starts_with("  ") => {
            push_entry_line(entries, line);
        }
        Some(HelpPart::Section { lines, .. }) if line.starts_with("  ") || line.is_empty() => {
            lines.push(line.strip_prefix("  ").unwrap_or(line).to_owned());
        }
        Some(HelpPart::Paragraph(lines)) if !line.is_empty() => lines.push(line.to_owned()),
        _ if line.is_empty() => parts.push(HelpPart::Paragraph(Vec::new())),
        _ => parts.push(HelpPart::Paragraph(vec![line.to_owned()])),
    }
}

/// Adds a line of an entry: its name and the beginning of its text, or a continuation of the text.
fn push_entry_line(entries: &mut Vec<Entry>, line: &str) {
    let line = line.strip_prefix("  ").unwrap_or(line);
    if let (true, Some(entry)) = (line.starts_with(' '), entries.last_mut()) {
        if !entry.text.is_empty() {
            entry.text.push(' ');
        }
        entry.text.push_str(line.trim());
        return;
    }
    let (names, text) = line.split_once("  ").unwrap_or((line, ""));
    entries.push(Entry {
        names: names.trim().to_owned(),
        text: text.trim().to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Searches files. Shows them
in order.

Usage: windrow search QUERY…

Query:
  word     a word

  \"a b\"    a phrase

Options:
  --sort ORDER  relevance, newest or largest [default: relevance]
  -l, --names-only
                print only
                the paths
  --build P     how much: low, normal, high
  --data DIR    the data folder, or another

Exit codes: 0 or 1.

Examples:
  windrow search a
";

    #[test]
    fn help_texts_are_parsed() {
        let page = HelpPage::parse("search", HELP);
        assert_eq!(page.summary(), "Searches files");
        let usage = HelpPart::Usage("windrow search QUERY…".to_owned());
        assert!(page.parts.contains(&usage));
        let section = |title: &str, lines: &[&str]| HelpPart::Section {
            title: title.to_owned(),
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        let query = section("Query", &["word     a word", "", "\"a b\"    a phrase"]);
        assert!(page.parts.contains(&query), "{page:?}");
        assert!(
            page.parts
                .contains(&section("Examples", &["windrow search a"]))
        );
        let codes = HelpPart::Paragraph(vec!["Exit codes: 0 or 1.".to_owned()]);
        assert!(page.parts.contains(&codes));
        let options: Vec<&Entry> = page.entries("Options").collect();
        assert_eq!(options.len(), 4);
        assert_eq!(options[1].text, "print only the paths");
        assert_eq!(
            options[1].flags().collect::<Vec<_>>(),
            ["-l", "--names-only"]
        );
        assert_eq!(
            (options[0].value(), options[1].value()),
            (Some("ORDER"), None)
        );
        assert_eq!(options[0].choices(), ["relevance", "newest", "largest"]);
        assert_eq!(options[2].choices(), ["low", "normal", "high"]);
        assert!(options[1].choices().is_empty() && options[3].choices().is_empty());
    }
}
