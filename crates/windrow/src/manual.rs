//! `windrow man`: manual pages in roff, generated from the help texts, see `help_page`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::command_line::{Failure, Subcommand};
use crate::help_page::{HelpPage, HelpPart, read_pages};

pub const MAN: Subcommand = Subcommand {
    name: "man",
    summary: Some("write manual pages"),
    run,
};

const HELP: &str = "Writes a manual page for the program and for each command: windrow.1, windrow-search.1 and so on.

Usage: windrow man FOLDER

Options:
  -h, --help  show this help

Examples:
  windrow man ~/.local/share/man/man1
  man windrow-search
";

fn run(arguments: lexopt::Parser) -> Result<ExitCode, Failure> {
    let Some(folder) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    write_pages(&folder).map(|()| ExitCode::SUCCESS)
}

fn parse(mut arguments: lexopt::Parser) -> Result<Option<PathBuf>, Failure> {
    let mut folder = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Value(path) if folder.is_none() => folder = Some(PathBuf::from(path)),
            other => return Err(other.unexpected().into()),
        }
    }
    let folder = folder.ok_or_else(|| Failure::missing_argument("FOLDER", "man"))?;
    Ok(Some(folder))
}

fn write_pages(folder: &Path) -> Result<(), Failure> {
    let failure = |path: &Path, error| Failure::Runtime(format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| failure(folder, error))?;
    for page in read_pages()? {
        let path = folder.join(format!("{}.1", page_name(&page.command)));
        fs::write(&path, manual_page(&page)).map_err(|error| failure(&path, error))?;
        println!("{}", path.display());
    }
    Ok(())
}

fn page_name(command: &str) -> String {
    match command {
        "" => "windrow".to_owned(),
        command => format!("windrow-{command}"),
    }
}

/// Formats the manual page in roff. Source of the macros: groff_man(7).
fn manual_page(page: &HelpPage) -> String {
    let name = page_name(&page.command);
    let (version, summary) = (env!("CARGO_PKG_VERSION"), escape(&page.summary()));
    let mut roff = format!(
        ".TH {} 1 \"\" \"Windrow {version}\"\n.SH NAME\n{} \\- {summary}\n",
        name.to_uppercase(),
        escape(&name)
    );
    for part in &page.parts {
        if let HelpPart::Usage(usage) = part {
            // Writing to a string cannot fail.
            let _ = writeln!(roff, ".SH SYNOPSIS\n{}", escape(usage));
        }
    }
    roff.push_str(".SH DESCRIPTION\n");
    for part in &page.parts {
        write_part(&mut roff, part);
    }
    roff
}

fn write_part(roff: &mut String, part: &HelpPart) {
    match part {
        HelpPart::Usage(_) => {}
        HelpPart::Paragraph(lines) => {
            let _ = writeln!(roff, ".PP\n{}", escape(&lines.join(" ")));
        }
        HelpPart::Entries { title, entries } => {
            let _ = writeln!(roff, ".SH {}", title.to_uppercase());
            for entry in entries {
                let (names, text) = (escape(&entry.names), escape(&entry.text));
                let _ = writeln!(roff, ".TP\n\\fB{names}\\fR\n{text}");
            }
        }
        HelpPart::Section { title, lines } => {
            let _ = writeln!(roff, ".SH {}\n.nf", title.to_uppercase());
            for line in lines {
                let _ = writeln!(roff, "{}", escape(line));
            }
            roff.push_str(".fi\n");
        }
    }
}

/// Escapes characters with a meaning in roff: backslashes, a leading dot, and ASCII characters that
/// roff replaces by typographic ones, so that examples can be copied.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    if text.starts_with('.') {
        escaped.push_str("\\&");
    }
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '~' => escaped.push_str("\\(ti"),
            '^' => escaped.push_str("\\(ha"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_sections() {
        let help = "Finds files. More.\n\nUsage: windrow find X\n\nQuery:\n  'a' -b\n\nOptions:\n  \
                    -l, --list  the names\n\n.dot\n";
        let page = manual_page(&HelpPage::parse("find", help));
        let expected = format!(
            ".TH WINDROW-FIND 1 \"\" \"Windrow {}\"\n.SH NAME\nwindrow\\-find \\- Finds files\n\
             .SH SYNOPSIS\nwindrow find X\n.SH DESCRIPTION\n.PP\nFinds files. More.\n\
             .SH QUERY\n.nf\n\\(aqa\\(aq \\-b\n.fi\n\
             .SH OPTIONS\n.TP\n\\fB\\-l, \\-\\-list\\fR\nthe names\n.PP\n\\&.dot\n",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(page, expected);
    }

    #[test]
    fn a_folder_is_needed() {
        let parsed = |arguments: &[&str]| parse(lexopt::Parser::from_args(arguments));
        assert_eq!(parsed(&["m"]), Ok(Some("m".into())));
        assert_eq!(parsed(&["-h"]), Ok(None));
        for wrong in [&[][..], &["a", "b"], &["a", "--fast"]] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
