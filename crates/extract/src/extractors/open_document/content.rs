//! The text of `content.xml` and `styles.xml`.

use crate::error::ExtractError;
use crate::text_builder::{FlowBuilder, Separator};
use crate::xml::{XmlElement, XmlEvent, XmlReader};
use crate::zip_package::ZipPackage;

/// The part of the XML to read.
pub(super) struct ContentPart {
    /// The element that contains it.
    pub(super) element: &'static str,
    /// Tables are sheets, whose names are visible to users. The names of other tables are mostly
    /// numbers.
    pub(super) has_table_names: bool,
}

/// Notes and comments. They are read after the body, because they would interrupt its sentences.
pub(super) const NOTE_ELEMENTS: [&str; 2] = ["note-body", "annotation"];

/// Appends the text of a part.
pub(super) fn append_xml(
    package: &ZipPackage<'_>,
    xml: &str,
    part: &ContentPart,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    let (mut part_depth, mut text_depth) = (0u64, 0u64);
    while !text.is_full()
        && let Some(event) = reader.next()?
    {
        match event {
            XmlEvent::Start(element) if element.name() == part.element => {
                part_depth += 1;
                text.start_section();
            }
            XmlEvent::End(name) if name == part.element => {
                part_depth = part_depth.saturating_sub(1)
            }
            _ if part_depth == 0 => {}
            XmlEvent::Start(element) if is_hidden(element.name()) => reader.skip_element()?,
            XmlEvent::Start(element) => {
                text_depth += u64::from(contains_text(element.name()));
                start_element(&element, part, text);
            }
            XmlEvent::End(name) => {
                text_depth -= u64::from(contains_text(&name));
                end_element(&name, text);
            }
            XmlEvent::Text(words) if text_depth > 0 => text.push_words(&words),
            XmlEvent::Text(_) => {}
        }
    }
    Ok(())
}

/// Paragraphs, headings, and the alternative text of pictures.
fn contains_text(name: &str) -> bool {
    matches!(name, "p" | "h" | "desc")
}

/// Deleted text, declarations, page numbers, and the authors of comments. Notes and comments are
/// read as separate parts.
fn is_hidden(name: &str) -> bool {
    matches!(
        name,
        "tracked-changes"
            | "sequence-decls"
            | "variable-decls"
            | "user-field-decls"
            | "calculation-settings"
            | "content-validations"
            | "note"
            | "annotation"
            | "page-number"
            | "page-count"
            | "sheet-name"
            | "creator"
            | "date"
            | "ruby-text"
            | "binary-data"
            | "forms"
    )
}

fn start_element(element: &XmlElement<'_>, part: &ContentPart, text: &mut FlowBuilder) {
    match element.name() {
        "p" | "h" | "desc" => text.start_paragraph(),
        "table" => {
            text.start_section();
            if part.has_table_names {
                text.push_words(&element.attribute("name").unwrap_or_default());
            }
        }
        "page" | "notes" => text.start_section(),
        "table-row" => text.break_row(),
        "table-cell" | "covered-table-cell" => text.start_cell(),
        "tab" => text.separate(Separator::Tab),
        "s" => text.separate(Separator::Space),
        "line-break" => text.separate(Separator::Line),
        _ => {}
    }
}

fn end_element(name: &str, text: &mut FlowBuilder) {
    match name {
        "table-row" => text.break_row(),
        "table-cell" | "covered-table-cell" => text.end_cell(),
        _ => {}
    }
}
