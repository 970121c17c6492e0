//! Manual pages: the roff macros `man` and `mdoc`. Sources: the manual pages groff_man(7), mdoc(7).

mod escapes;
mod mdoc;

use crate::encoding;
use crate::error::ExtractError;
use crate::format::{Input, split_extension, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::{clean_property, parse_written_date};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};
use escapes::Strings;

const CONDITION_DEPTH_MAX: u32 = 16;

/// Returns `true` if the file begins with a roff request or comment, and has the extension of a
/// manual section or declares a page title.
pub(crate) fn is_manual_page(input: &Input<'_>) -> bool {
    let head = take_prefix(input.bytes, 8192);
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let begins = matches!(
        head.trim_ascii_start(),
        [b'.', b'\\' | b'A'..=b'Z' | b'a'..=b'z' | b'"', ..]
    ) || head.starts_with(b"'\\\"")
        || head.starts_with(b"'br");
    let declares = |request: &[u8]| {
        head.starts_with(request)
            || memchr::memmem::find_iter(head, request)
                .any(|at| head.get(at.wrapping_sub(1)) == Some(&b'\n'))
    };
    let is_section = split_extension(input.name).is_some_and(|extension| {
        let (section, rest) = extension.split_at_checked(1).unwrap_or_default();
        matches!(
            section,
            "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "n" | "l"
        ) && rest.bytes().all(|byte| byte.is_ascii_alphabetic())
    });
    begins && (is_section || declares(b".TH ") || declares(b".Dd "))
}

/// Extracts the printed text.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let declared = encoding::find_coding_comment(input.bytes);
    let source = encoding::decode_with(input.bytes, declared, limits.text_bytes_max);
    let mut page = Page::new(limits);
    let mut lines = source.text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        limits.check_deadline_at_line(number)?;
        if let Some(first) = line.strip_suffix('\\').filter(|line| !line.ends_with('\\')) {
            let next = lines.next().map_or("", |(_, next)| next);
            page.read_line(&format!("{first}{next}"));
        } else {
            page.read_line(line);
        }
    }
    let mut document = page
        .text
        .into_document(DocumentKind::Manual, source.truncated);
    document.title = page.title;
    document.metadata.date_ms = page.date_ms;
    document.metadata.description = clean_property(&page.description);
    Ok(document)
}

struct Page {
    text: TextBuilder,
    strings: Strings,
    title: Option<String>,
    date_ms: Option<i64>,
    description: String,
    /// The name that `.Nm` prints.
    name: String,
    mode: Mode,
    /// The number of open blocks in a branch that is not taken.
    skipped_blocks: usize,
    /// The condition of the last `.ie` was true.
    took_branch: bool,
    fills: bool,
    is_name_section: bool,
}

#[derive(PartialEq)]
enum Mode {
    Text,
    /// The definition of a macro, up to `..`.
    Definition,
    /// The column description of a table, up to a line that ends with a period.
    TableFormat,
    /// An equation, up to `.EN`.
    Equation,
}

impl Page {
    fn new(limits: &Limits) -> Self {
        Page {
            text: TextBuilder::new(limits.text_bytes_max),
            strings: Strings::default(),
            title: None,
            date_ms: None,
            description: String::new(),
            name: String::new(),
            mode: Mode::Text,
            skipped_blocks: 0,
            took_branch: false,
            fills: true,
            is_name_section: false,
        }
    }

    fn read_line(&mut self, line: &str) {
        if self.skipped_blocks > 0 {
            self.skipped_blocks += line.matches("\\{").count();
            let ends = line.matches("\\}").count();
            self.skipped_blocks = self.skipped_blocks.saturating_sub(ends);
            return;
        }
        match self.mode {
            Mode::Definition if line.trim_end() == ".." => self.mode = Mode::Text,
            Mode::Equation if line.starts_with(".EN") => self.mode = Mode::Text,
            Mode::TableFormat if line.trim_end().ends_with('.') => self.mode = Mode::Text,
            Mode::Definition | Mode::Equation => {}
            Mode::TableFormat if !line.starts_with(".TE") => {}
            Mode::Text | Mode::TableFormat => self.read_control(line, 0),
        }
    }

    fn read_control(&mut self, line: &str, depth: u32) {
        match line.strip_prefix(['.', '\'']) {
            Some(request) => self.read_request(request.trim_start(), depth),
            None => self.push_line(line),
        }
    }

    fn push_line(&mut self, line: &str) {
        let printed = self.strings.render(line);
        if self.is_name_section {
            self.description.push_str(&printed);
            self.description.push(' ');
        }
        if self.fills && !line.trim().is_empty() && !line.contains('\t') {
            self.text.separate(Separator::Space);
            self.text.push_words(&printed);
            self.text.separate(Separator::Space);
        } else if line.trim().is_empty() {
            self.text.separate(Separator::Paragraph);
        } else {
            self.text.separate(Separator::Line);
            self.text.push_verbatim(printed.trim_end());
            self.text.separate(Separator::Line);
        }
    }

    fn read_request(&mut self, request: &str, depth: u32) {
        let end = request
            .find([' ', '\t', '\\', '"'])
            .unwrap_or(request.len());
        let (name, rest) = request.split_at(end);
        let rest = rest.trim_start();
        match name {
            "if" | "ie" | "el" => self.read_condition(name, rest, depth),
            "de" | "de1" | "am" | "ig" => self.mode = Mode::Definition,
            "ds" | "ds1" | "as" => {
                let (name, value) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
                self.strings.define(name, value.trim_start());
            }
            "TS" => self.mode = Mode::TableFormat,
            "EQ" => self.mode = Mode::Equation,
            "nf" | "EX" | "Vb" => self.break_lines(false),
            "fi" | "EE" | "Ve" => self.break_lines(true),
            "so" => self.push_line(rest),
            _ => self.read_macro(name, &self.split_arguments(rest)),
        }
    }

    /// Evaluates a condition: pages are printed for terminals (`n`), not for typesetters.
    fn read_condition(&mut self, name: &str, rest: &str, depth: u32) {
        let (holds, rest) = if name == "el" {
            (!self.took_branch, rest)
        } else {
            let end = rest.find([' ', '\t', '\\']).unwrap_or(rest.len());
            let (condition, rest) = rest.split_at(end);
            (matches!(condition, "n" | "!t"), rest.trim_start())
        };
        if name == "ie" {
            self.took_branch = holds;
        }
        let block = rest.strip_prefix("\\{");
        if holds && depth < CONDITION_DEPTH_MAX {
            let line = block.unwrap_or(rest).trim_start_matches(['\\', ' ', '\t']);
            if !line.is_empty() {
                self.read_control(line, depth + 1);
            }
        } else if !holds && block.is_some() {
            let ends = rest.matches("\\}").count();
            self.skipped_blocks = rest.matches("\\{").count().saturating_sub(ends);
        }
    }

    fn break_lines(&mut self, fills: bool) {
        self.fills = fills;
        self.text.separate(Separator::Paragraph);
    }

    /// Splits and prints the arguments of a macro. Quotes enclose arguments with spaces.
    fn split_arguments(&self, text: &str) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() && !rest.starts_with("\\\"") {
            let argument;
            (argument, rest) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => split_at_space(rest),
            };
            arguments.push(self.strings.render(argument));
            rest = rest.trim_start();
        }
        arguments
    }

    fn read_macro(&mut self, name: &str, arguments: &[String]) {
        match name {
            "TH" | "Dt" => self.read_title(name, arguments),
            "Dd" => self.date_ms = parse_written_date(&arguments.join(" ")),
            "SH" | "SS" | "Sh" | "Ss" => self.start_section(&arguments.join(" ")),
            "B" | "I" | "SM" | "SB" | "R" | "CW" => self.push_words(&arguments.join(" ")),
            "BR" | "BI" | "IR" | "IB" | "RB" | "RI" | "OP" => self.push_words(&arguments.concat()),
            "TP" | "PP" | "P" | "LP" | "HP" | "Pp" | "RS" | "RE" | "sp" | "Sp" | "Bd" | "Ed"
            | "Bl" | "El" | "TQ" | "SY" | "YS" | "TE" | "br" => {
                self.text.separate(match name {
                    "br" | "TQ" => Separator::Line,
                    _ => Separator::Paragraph,
                });
                if name == "SY" {
                    self.push_words(&arguments.join(" "));
                }
            }
            "IP" => {
                self.text.separate(Separator::Paragraph);
                self.push_words(arguments.first().map_or("", String::as_str));
            }
            "It" => {
                self.text.separate(Separator::Line);
                self.push_macros(arguments);
                self.text.separate(Separator::Line);
            }
            "UR" | "MT" | "URL" => self.push_words(&arguments.join(" ")),
            "IX" | "PD" | "UC" | "AT" | "DT" | "Os" | "XX" | "UE" | "ME" => {}
            "Nm" => {
                if let (true, Some(name)) = (self.name.is_empty(), arguments.first()) {
                    self.name.clone_from(name);
                }
                self.push_named_macro(name, arguments);
            }
            // Other lower-case requests change the font; the rest are macros of the page.
            _ if name.starts_with(|it: char| it.is_ascii_uppercase()) => {
                self.push_named_macro(name, arguments);
            }
            _ => {}
        }
    }

    fn push_named_macro(&mut self, name: &str, arguments: &[String]) {
        let mut words = vec![name.to_owned()];
        words.extend_from_slice(arguments);
        self.push_macros(&words);
        if self.is_name_section && name == "Nd" {
            self.description.insert_str(0, &format!("{} - ", self.name));
        }
    }

    fn push_macros(&mut self, words: &[String]) {
        let line = mdoc::render_line(words, &self.name);
        self.push_words(&line);
    }

    /// Appends words as a separate line.
    fn push_words(&mut self, words: &str) {
        if self.is_name_section {
            self.description.push_str(words);
            self.description.push(' ');
        }
        self.text.separate(Separator::Space);
        self.text.push_words(words);
        let after = if self.fills {
            Separator::Space
        } else {
            Separator::Line
        };
        self.text.separate(after);
    }

    fn start_section(&mut self, heading: &str) {
        self.fills = true;
        self.is_name_section = false;
        self.text.separate(Separator::Paragraph);
        self.text.push_words(heading);
        self.text.separate(Separator::Paragraph);
        self.is_name_section = self.description.is_empty() && heading.eq_ignore_ascii_case("name");
    }

    fn read_title(&mut self, name: &str, arguments: &[String]) {
        let mut words = arguments.iter().map(String::as_str);
        let title = clean_property(words.next().unwrap_or_default());
        let section = words.next().filter(|section| !section.is_empty());
        self.title = title.map(|title| match section {
            Some(section) => format!("{title}({section})"),
            None => title,
        });
        if name == "TH" {
            self.date_ms = words.next().and_then(parse_written_date);
        }
    }
}

/// Splits at the first white space that no backslash precedes.
fn split_at_space(text: &str) -> (&str, &str) {
    let is_end = |(at, _): &(usize, &str)| !text.get(..*at).unwrap_or_default().ends_with('\\');
    let end = text.match_indices([' ', '\t']).find(is_end);
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, title: Option<&str>, text: &str) -> ExtractedDocument {
        let input = Input {
            name: "a.1",
            bytes: source.as_bytes(),
        };
        assert!(is_manual_page(&input), "{source}");
        let document = extract(&input, &Limits::default()).unwrap();
        assert_eq!(document.title.as_deref(), title, "{source}");
        assert_eq!(document.text, text, "{source}");
        document
    }

    #[test]
    fn pages_of_man_are_printed() {
        let document = check(
            ".\\\" a comment\n.TH LS 1 \"May 2024\" GNU\n.SH NAME\nls \\- list files\n\
             .SH OPTIONS\n.TP\n\\fB\\-a\\fR, \\fB\\-\\-all\\fR\nshow \\\nall.\n.br\n.BR cat (1),\n.B two words\n\
             .nf\nint  x;\n  y\n.fi\n.IP \"one two\" 4\nend\n.de XX\nhidden\n..\n.if t hidden\n.ie n shown\n.el hidden\n",
            Some("LS(1)"),
            "NAME\n\nls - list files\n\nOPTIONS\n\n-a, --all show all.\ncat(1), two words\n\nint  x;\n  y\n\n\
             one two end shown",
        );
        assert_eq!(
            document.metadata.description.as_deref(),
            Some("ls - list files")
        );
        assert_eq!(document.metadata.date_ms, Some(1_714_521_600_000));
    }

    #[test]
    fn pages_of_mdoc_are_printed() {
        let document = check(
            ".Dd May 6, 2024\n.Dt TEST 8\n.Os\n.Sh NAME\n.Nm test\n.Nd try it\n.Sh SYNOPSIS\n\
             .Nm\n.Op Fl v Ar file\n.Bl -tag\n.It Fl x Ns Ar y\nmeans\n.El\nSee\n.Xr ls 1 .\n",
            Some("TEST(8)"),
            "NAME\n\ntest try it\n\nSYNOPSIS\n\ntest [-v file]\n\n-xy\nmeans\n\nSee ls(1).",
        );
        assert_eq!(
            document.metadata.description.as_deref(),
            Some("test - test try it")
        );
        assert_eq!(document.metadata.date_ms, Some(1_714_953_600_000));
    }

    #[test]
    fn blocks_tables_and_strings_are_read() {
        check(
            ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.if t \\{\\\nhidden\n.\\}\n.TH X 1\n\
             it\\*(Aqs\n.TS\nl l.\na\tb\n.TE\n.EQ\nx over y\n.EN\nend",
            Some("X(1)"),
            "it's\na\tb\n\nend",
        );
        check(".so man1/other.1", None, "man1/other.1");
        check(".TH", None, "");
    }
}
