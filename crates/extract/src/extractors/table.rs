//! Tables as text: CSV with any common separator, and TSV. Source: RFC 4180.

use crate::encoding;
use crate::error::ExtractError;
use crate::format::{Input, split_extension};
use crate::limits::Limits;
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};

const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];
/// The number of lines from which the separator is detected.
const SAMPLE_LINES: usize = 20;
const SAMPLE_BYTES: usize = 64 << 10;
const COLUMNS_MAX: usize = 1000;
const FIELDS_PER_CHECK: u32 = 4096;

/// Extracts the fields: a line for each row, with tabs between the fields.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let decoded = encoding::decode(input.bytes, limits.text_bytes_max);
    let fields = Fields::new(&decoded.text, detect_separator(input.name, &decoded.text));
    let mut text = TextBuilder::new(limits.text_bytes_max);
    let (mut header, mut row, mut field_count) = (Vec::new(), 0u64, 0u32);
    for field in fields {
        field_count = field_count.wrapping_add(1);
        if field_count.is_multiple_of(FIELDS_PER_CHECK) {
            limits.check_deadline()?;
        }
        if row == 0 && header.len() < COLUMNS_MAX {
            header.push(field.text.clone());
        }
        text.push_words(&field.text);
        text.separate(if field.ends_row {
            Separator::Line
        } else {
            Separator::Tab
        });
        row += u64::from(field.ends_row);
    }
    let text = text.finish();
    let mut document = ExtractedDocument::new(DocumentKind::Table, text.text);
    document.truncated = decoded.truncated || text.truncated;
    if row > 1 && is_header(&header) {
        document.metadata.columns = header
            .iter()
            .filter_map(|name| clean_property(name))
            .collect();
    }
    Ok(document)
}

/// Returns `true` if the fields of the first row may be column names: none is empty, a number or a
/// duplicate.
fn is_header(fields: &[String]) -> bool {
    let names = fields.iter().map(|field| field.trim());
    let is_name = |name: &str| !name.is_empty() && name.parse::<f64>().is_err();
    let unique: std::collections::HashSet<&str> = names.clone().collect();
    names.clone().all(is_name) && unique.len() == fields.len()
}

/// Returns the separator that splits most of the first lines into the same number of fields as the
/// preceding line. Quoted separators are ignored.
fn detect_separator(name: &str, text: &str) -> char {
    let extension = split_extension(name).unwrap_or_default();
    if ["tsv", "tab"]
        .iter()
        .any(|tsv| extension.eq_ignore_ascii_case(tsv))
    {
        return '\t';
    }
    let sample = text
        .get(..text.floor_char_boundary(SAMPLE_BYTES))
        .unwrap_or_default();
    let rate = |separator: char| {
        let lines = count_separators(sample, separator);
        let pairs = lines.iter().zip(lines.iter().skip(1));
        let equal = pairs
            .filter(|(line, next)| line == next && **line > 0)
            .count();
        (equal, lines.first().copied().unwrap_or(0))
    };
    // Of equally good separators, the first one is used.
    let rates = SEPARATORS
        .iter()
        .rev()
        .map(|separator| (rate(*separator), *separator));
    rates
        .max_by_key(|(rate, _)| *rate)
        .map_or(',', |(_, separator)| separator)
}

/// Returns the number of separators in each of the first lines.
fn count_separators(sample: &str, separator: char) -> Vec<usize> {
    let (mut lines, mut count, mut is_quoted) = (Vec::new(), 0, false);
    for character in sample.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '\n' => {
                lines.push(std::mem::take(&mut count));
                if lines.len() == SAMPLE_LINES {
                    break;
                }
            }
            _ => count += usize::from(character == separator),
        }
    }
    lines.push(count);
    lines
}

/// An unquoted field.
struct Field {
    text: String,
    /// The field is the last one of its row.
    ends_row: bool,
}

/// Splits a table into fields.
struct Fields<'t> {
    rest: &'t str,
    separator: char,
}

impl<'t> Fields<'t> {
    fn new(text: &'t str, separator: char) -> Self {
        Fields {
            rest: text,
            separator,
        }
    }

    /// Consumes the text up to the first character for which `is_end` is true.
    fn take_until(&mut self, is_end: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn take_char(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next();
        self.rest = characters.as_str();
        character
    }

    /// Consumes the content of a field after its opening quote. Two quotes represent one.
    fn take_quoted(&mut self) -> String {
        let mut text = String::new();
        loop {
            text.push_str(self.take_until(|character| character == '"'));
            self.take_char();
            match self.rest.strip_prefix('"') {
                Some(rest) => {
                    text.push('"');
                    self.rest = rest;
                }
                None => return text,
            }
        }
    }
}

impl Iterator for Fields<'_> {
    type Item = Field;

    fn next(&mut self) -> Option<Field> {
        if self.rest.is_empty() {
            return None;
        }
        let mut text = String::new();
        if let Some(rest) = self.rest.strip_prefix('"') {
            self.rest = rest;
            text = self.take_quoted();
        }
        let separator = self.separator;
        // In a valid file, the closing quote ends the field.
        text.push_str(self.take_until(|character| character == separator || character == '\n'));
        let ends_row = self.take_char() != Some(separator);
        Some(Field { text, ends_row })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::extract_documents;

    fn check(name: &str, table: &str, text: &str, columns: &[&str]) {
        let [document] = &extract_documents(name, table.as_bytes())[..] else {
            panic!("{table}")
        };
        assert_eq!(document.text, text, "{table}");
        assert_eq!(document.metadata.columns, columns, "{table}");
        assert_eq!(document.kind, DocumentKind::Table);
    }

    #[test]
    fn fields_and_columns_are_read() {
        check(
            "a.csv",
            "name,size\r\nbread,5\r\n",
            "name\tsize\nbread\t5",
            &["name", "size"],
        );
        check(
            "a.csv",
            "a;b\n\"x;y\";\"say \"\"hi\"\"\"\n1,5;2\n",
            "a\tb\nx;y\tsay \"hi\"\n1,5\t2",
            &["a", "b"],
        );
        check("a.tsv", "a, b\tc\nd\te\n", "a, b\tc\nd\te", &["a, b", "c"]);
        check("a.csv", "a|b\nc|d\n", "a\tb\nc\td", &["a", "b"]);
        check(
            "a.csv",
            "a,b\n\"two\nlines\",x",
            "a\tb\ntwo lines\tx",
            &["a", "b"],
        );
        check("a.csv", "1,2\n3,4\n", "1\t2\n3\t4", &[]);
        check("a.csv", "a,a\n3,4\n", "a\ta\n3\t4", &[]);
        check("a.csv", "only,one", "only\tone", &[]);
        check("a.csv", "a\nb\n", "a\nb", &["a"]);
        check("a.csv", "a,\"open\nb,c", "a\topen b,c", &[]);
        check("a.csv", "", "", &[]);
    }

    #[test]
    fn the_encoding_is_detected() {
        let text = "Größe;Fläche\nfünf;süß\n";
        let bytes = encoding_rs::WINDOWS_1252.encode(text).0;
        let document = &extract_documents("a.CSV", &bytes)[0];
        assert_eq!(document.text, "Größe\tFläche\nfünf\tsüß");
        assert_eq!(document.metadata.columns, ["Größe", "Fläche"]);
    }

    #[test]
    fn long_tables_are_cut() {
        let limits = Limits {
            text_bytes_max: 5,
            ..Limits::default()
        };
        let input = Input {
            name: "a.csv",
            bytes: b"a,b\nc,d\n",
        };
        let document = extract(&input, &limits).unwrap();
        assert_eq!(
            (document.text.as_str(), document.truncated),
            ("a\tb\nc", true)
        );
    }
}
