//! LaTeX and plain TeX: the printed text without commands and formulas, and the title.
//!
//! Commands are not executed. The arguments of unknown commands are printed, because most of these
//! commands only change the font.

mod commands;
mod cursor;

use crate::accents::add_accent;
use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::metadata_text::{clean_property, parse_written_date};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};
use commands::{Command, Environment, find_command, find_environment};
use cursor::Cursor;

const STEPS_PER_CHECK: u32 = 4096;
/// The maximum nesting depth of groups in arguments.
const DEPTH_MAX: u32 = 12;
/// A longer inline formula is not part of a name.
const NAME_FORMULA_BYTES_MAX: usize = 12;
const PROPERTY_BYTES_MAX: usize = 8192;

/// Extracts the printed text.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let declared = find_declared_encoding(input.bytes);
    let source = encoding::decode_with(input.bytes, declared, limits.text_bytes_max);
    let mut reader = LatexReader::new(limits, limits.text_bytes_max);
    reader.has_german_shorthands = source.text.contains("german");
    let begin = "\\begin{document}";
    if let Some((preamble, body)) = source.text.split_once(begin) {
        let mut properties = LatexReader::new(limits, PROPERTY_BYTES_MAX);
        properties.has_german_shorthands = reader.has_german_shorthands;
        properties.read(preamble, 0)?;
        (reader.title, reader.author) = (properties.title, properties.author);
        reader.date = properties.date;
        let title = reader.title.clone().unwrap_or_default();
        reader.text.push_words(&title);
        reader.text.separate(Separator::Paragraph);
        reader
            .text
            .push_words(&reader.author.clone().unwrap_or_default());
        reader.text.separate(Separator::Paragraph);
        reader.read(body, 0)?;
    } else {
        reader.read(&source.text, 0)?;
    }
    let (title, heading) = (reader.title, reader.heading);
    let mut document = reader
        .text
        .into_document(DocumentKind::Document, source.truncated);
    document.title = title.or(heading);
    document.metadata.author = reader.author;
    document.metadata.date_ms = reader.date.as_deref().and_then(parse_written_date);
    Ok(document)
}

/// Returns TeX source as it is printed, for example a field of a bibliography.
pub(crate) fn print(source: &str, limits: &Limits) -> Result<String, ExtractError> {
    let mut reader = LatexReader::new(limits, source.len().saturating_mul(2));
    reader.read(source, 0)?;
    Ok(reader.text.finish().text)
}

/// Returns the encoding in the options of the package `inputenc`.
fn find_declared_encoding(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let at = memchr::memmem::find(bytes, b"]{inputenc}")?;
    let before = bytes.get(..at)?;
    let start = memchr::memrchr(b'[', before)?;
    match before.get(start + 1..)?.trim_ascii() {
        b"ansinew" | b"cp1252" => Some(encoding_rs::WINDOWS_1252),
        b"applemac" => Some(encoding_rs::MACINTOSH),
        b"latin9" => Some(encoding_rs::ISO_8859_15),
        label => encoding_rs::Encoding::for_label(label),
    }
}

struct LatexReader<'l> {
    limits: &'l Limits,
    text: TextBuilder,
    title: Option<String>,
    author: Option<String>,
    date: Option<String>,
    /// The first heading, the title of a file without one.
    heading: Option<String>,
    has_german_shorthands: bool,
    steps: u32,
}

impl<'l> LatexReader<'l> {
    fn new(limits: &'l Limits, bytes_max: usize) -> Self {
        LatexReader {
            limits,
            text: TextBuilder::new(bytes_max),
            title: None,
            author: None,
            date: None,
            heading: None,
            has_german_shorthands: false,
            steps: 0,
        }
    }

    fn read(&mut self, source: &str, depth: u32) -> Result<(), ExtractError> {
        if depth > DEPTH_MAX {
            return Ok(());
        }
        let mut cursor = Cursor { rest: source };
        while !cursor.rest.is_empty() && !self.text.is_full() {
            self.steps = self.steps.wrapping_add(1);
            if self.steps.is_multiple_of(STEPS_PER_CHECK) {
                self.limits.check_deadline()?;
            }
            let special = [
                '\\', '{', '}', '%', '$', '~', '&', '`', '\'', '-', '\n', '"',
            ];
            let end = cursor.rest.find(special).unwrap_or(cursor.rest.len());
            let (words, rest) = cursor.rest.split_at(end);
            self.text.push_words(words);
            cursor.rest = rest;
            let Some(character) = cursor.next() else {
                break;
            };
            if character == '\\' {
                let name = cursor.take_name();
                if name == "end" && cursor.rest.starts_with("{document}") || name == "bye" {
                    break;
                }
                self.read_command(name, &mut cursor, depth)?;
            } else {
                self.read_special(character, &mut cursor);
            }
        }
        Ok(())
    }

    fn read_special(&mut self, character: char, cursor: &mut Cursor<'_>) {
        match character {
            '%' => {
                cursor.take_through("\n");
                cursor.rest = cursor.rest.trim_start_matches([' ', '\t']);
            }
            '$' if cursor.take("$") => {
                cursor.take_through("$$");
                self.text.separate(Separator::Space);
            }
            '$' => self.push_formula(cursor.take_through("$")),
            '~' => self.text.push_words(" "),
            '&' => self.text.separate(Separator::Tab),
            '`' if cursor.take("`") => self.text.push_verbatim("“"),
            '\'' if cursor.take("'") => self.text.push_verbatim("”"),
            '`' => self.text.push_verbatim("‘"),
            '\'' => self.text.push_verbatim("’"),
            '-' if cursor.take("--") => self.text.push_verbatim("—"),
            '-' if cursor.take("-") => self.text.push_verbatim("–"),
            '"' if self.has_german_shorthands => self.read_shorthand(cursor),
            '-' | '"' => self.text.push_words(character.encode_utf8(&mut [0; 4])),
            '\n' => {
                let line = cursor.rest.trim_start_matches([' ', '\t']);
                if line.starts_with('\n') {
                    self.text.separate(Separator::Paragraph);
                }
                self.text.push_words(" ");
            }
            // Braces.
            _ => {}
        }
    }

    /// Prints an inline formula if it is part of a name: `$k$-means`.
    fn push_formula(&mut self, formula: &str) {
        let is_name = formula.len() <= NAME_FORMULA_BYTES_MAX
            && formula.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_name {
            self.text.push_words(formula);
        } else {
            self.text.separate(Separator::Space);
        }
    }

    /// Handles the shorthands of the package `babel` for German.
    fn read_shorthand(&mut self, cursor: &mut Cursor<'_>) {
        let Some(letter) = cursor.peek() else {
            return;
        };
        let shown = match letter {
            'a' | 'o' | 'u' | 'A' | 'O' | 'U' => add_accent(letter, '\u{308}'),
            's' | 'z' => "ß".to_owned(),
            '`' => "„".to_owned(),
            '\'' => "“".to_owned(),
            '~' | '=' => "-".to_owned(),
            '-' | '|' | '"' => String::new(),
            _ => {
                self.text.push_verbatim("\"");
                return;
            }
        };
        cursor.next();
        self.text.push_verbatim(&shown);
    }

    fn read_command(
        &mut self,
        name: &str,
        cursor: &mut Cursor<'_>,
        depth: u32,
    ) -> Result<(), ExtractError> {
        let command = find_command(name);
        match command {
            Command::Prints(text) => self.text.push_words(text),
            Command::Accent(mark) => self.push_accent(mark, cursor.take_argument()),
            Command::LineBreak => {
                cursor.take("*");
                cursor.take_option();
                self.text.separate(Separator::Line);
            }
            Command::Paragraph => self.text.separate(Separator::Paragraph),
            Command::Item => {
                self.text.separate(Separator::Line);
                if let Some(label) = cursor.take_option() {
                    self.read(label, depth + 1)?;
                    self.text.separate(Separator::Space);
                }
            }
            Command::Math(end) => {
                cursor.take_through(end);
                self.text.separate(Separator::Space);
            }
            Command::Comment(end) => {
                cursor.take_through(end);
            }
            Command::Verb => self.read_verbatim_argument(cursor),
            Command::Definition => skip_definition(cursor),
            Command::Begin => self.begin_environment(cursor)?,
            Command::End => {
                cursor.take_argument();
                self.text.separate(Separator::Paragraph);
            }
            _ => self.read_arguments(command, cursor, depth)?,
        }
        Ok(())
    }

    fn read_arguments(
        &mut self,
        command: Command,
        cursor: &mut Cursor<'_>,
        depth: u32,
    ) -> Result<(), ExtractError> {
        cursor.take("*");
        if command == Command::Other {
            // `\alpha [x]` has no option.
            if cursor.rest.starts_with('[') {
                cursor.take_option();
            }
            return Ok(());
        }
        while cursor.take_option().is_some() {}
        match command {
            Command::Drop(count) => {
                for _ in 0..count {
                    cursor.take_argument();
                }
            }
            Command::Title | Command::Author | Command::Date => {
                let printed = self.print_argument(cursor.take_argument(), depth)?;
                match command {
                    Command::Title if self.title.is_none() => self.title = printed,
                    Command::Author => self.author = printed,
                    Command::Date => self.date = printed,
                    _ => {}
                }
            }
            Command::Heading => {
                let argument = cursor.take_argument();
                if self.heading.is_none() {
                    self.heading = self.print_argument(argument, depth)?;
                }
                self.text.separate(Separator::Paragraph);
                self.read(argument, depth + 1)?;
                self.text.separate(Separator::Paragraph);
            }
            Command::Link => {
                let target = cursor.take_argument();
                self.read(cursor.take_argument(), depth + 1)?;
                self.text.push_words(&format!(" {target} "));
            }
            _ => {
                self.text.separate(Separator::Space);
                self.read(cursor.take_argument(), depth + 1)?;
                self.text.separate(Separator::Space);
            }
        }
        Ok(())
    }

    fn print_argument(&self, argument: &str, depth: u32) -> Result<Option<String>, ExtractError> {
        let mut reader = LatexReader::new(self.limits, PROPERTY_BYTES_MAX);
        reader.has_german_shorthands = self.has_german_shorthands;
        reader.read(&argument.replace("\\and", ", "), depth + 1)?;
        Ok(clean_property(
            &reader.text.finish().text.replace(" , ", ", "),
        ))
    }

    fn push_accent(&mut self, mark: char, argument: &str) {
        let argument = argument.trim();
        let base = match argument.strip_prefix('\\').map(str::trim) {
            Some("i") => "ı",
            Some("j") => "ȷ",
            _ => argument,
        };
        let mut letters = base.chars();
        if let Some(letter) = letters.next().filter(|it| it.is_alphabetic()) {
            self.text.push_verbatim(&add_accent(letter, mark));
        }
        self.text.push_words(letters.as_str());
    }

    fn read_verbatim_argument(&mut self, cursor: &mut Cursor<'_>) {
        cursor.take("*");
        cursor.take_option();
        match cursor.peek() {
            Some('{') => self.text.push_words(cursor.take_argument()),
            Some(quote) => {
                cursor.next();
                let argument = cursor.take_through(quote.encode_utf8(&mut [0; 4]));
                self.text.push_words(argument);
            }
            None => {}
        }
    }

    fn begin_environment(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ExtractError> {
        let name = cursor.take_argument();
        self.text.separate(Separator::Paragraph);
        let environment = find_environment(name);
        if environment == Environment::Text {
            cursor.take_option();
            return Ok(());
        }
        if environment == Environment::TextAfterArgument {
            cursor.take_option();
            cursor.take_argument();
            return Ok(());
        }
        let content = cursor.take_through(&format!("\\end{{{name}}}"));
        if environment == Environment::Verbatim {
            self.text.push_verbatim(content.trim_matches('\n'));
            self.text.separate(Separator::Paragraph);
        }
        Ok(())
    }
}

/// Skips the arguments of a definition.
fn skip_definition(cursor: &mut Cursor<'_>) {
    cursor.take("*");
    cursor.take_argument();
    while cursor.take_option().is_some() {}
    // The parameters of `\def`, or `=` of `\let`.
    let end = cursor.rest.find(['{', '\n', '\\']).unwrap_or(0);
    let (parameters, rest) = cursor.rest.split_at(end);
    if parameters
        .bytes()
        .all(|byte| matches!(byte, b'#' | b'0'..=b'9' | b' ' | b'='))
    {
        cursor.rest = rest;
    }
    if cursor.rest.starts_with(['{', '\\']) {
        cursor.take_argument();
    }
    while cursor.take_option().is_some() || cursor.rest.starts_with('{') {
        if cursor.rest.starts_with('{') {
            cursor.take_argument();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, text: &str) -> ExtractedDocument {
        let input = Input {
            name: "a.tex",
            bytes: source.as_bytes(),
        };
        let document = extract(&input, &Limits::default()).unwrap();
        assert_eq!(document.text, text, "{source}");
        document
    }

    #[test]
    fn commands_are_printed() {
        check(
            "z\\\"ahler \\'{e}t\\'e na\\\"{\\i}ve \\c{c}a \\v s \\ss{} Stra\\ss e",
            "zähler été naïve ça š ß Straße",
        );
        check(
            "\\textbf{bold} {\\em slanted} text\\footnote{a note}.",
            "bold slanted text a note .",
        );
        check("a % comment\n  b\n\nc", "a b\n\nc");
        check("``virtual'' 1--2 --- it's~so", "“virtual” 1–2 — it’s so");
        check(
            "$x^2+1$ the $k$-means $$ a $$ \\(b\\) \\[c\\] end",
            "the k-means end",
        );
        check(
            "50\\% \\& \\$1 \\_ \\{x\\} \\LaTeX{} a\\\\b",
            "50% & $1 _ {x} LaTeX a\nb",
        );
        check(
            "see \\ref{a} and \\cite[p.~1]{b}, \\href{http://x}{site}",
            "see and , site http://x",
        );
        check(
            "\\verb|a_b| \\begin{verbatim}\n\\x{y}\n\\end{verbatim} z",
            "a_b\n\n\\x{y}\n\nz",
        );
        check(
            "\\begin{itemize}\\item one \\item[two] three\\end{itemize}",
            "one\ntwo three",
        );
        check(
            "\\begin{tabular}{ll} a & b \\\\ c & d \\end{tabular}",
            "a\tb\nc\td",
        );
        check("\\newcommand{\\x}[1]{y #1} \\def\\z#1{q} text", "text");
        check("\\iffalse hidden \\fi shown \\end{document} not", "shown");
        check(
            "\\usepackage[ngerman]{babel} Gr\"o\"se \"`x\"'",
            "Größe „x“",
        );
    }

    #[test]
    fn properties_are_read() {
        let document = check(
            "\\documentclass{article}\\usepackage[utf8]{inputenc}\n\\title{The \\emph{title}\\thanks{x}}\n\
             \\author{Ada \\and Bob}\\date{6 May 2024}\n\\begin{document}\\maketitle\n\\section{One}Words\n\\end{document} x",
            "The title x\n\nAda, Bob\n\nOne\n\nWords",
        );
        assert_eq!(document.title.as_deref(), Some("The title x"));
        assert_eq!(document.metadata.author.as_deref(), Some("Ada, Bob"));
        assert_eq!(document.metadata.date_ms, Some(1_714_953_600_000));
        assert_eq!(
            check("\\chapter{Intro} x", "Intro\n\nx").title.as_deref(),
            Some("Intro")
        );
        let bytes = b"\\usepackage[latin1]{inputenc} caf\xe9";
        let input = Input { name: "", bytes };
        assert_eq!(extract(&input, &Limits::default()).unwrap().text, "café");
    }

    #[test]
    fn damaged_sources_end() {
        for source in [
            "\\",
            "{",
            "$",
            "\\textbf{",
            "\\begin{",
            "\\begin{verbatim}",
            "\\verb",
            "\\'",
            "\\def",
            "[\\é",
            "\\newcommand{",
        ] {
            let input = Input {
                name: "",
                bytes: source.as_bytes(),
            };
            assert!(extract(&input, &Limits::default()).is_ok(), "{source}");
        }
        let nested = "\\footnote{".repeat(5000);
        let input = Input {
            name: "",
            bytes: nested.as_bytes(),
        };
        assert!(extract(&input, &Limits::default()).is_ok());
    }
}
