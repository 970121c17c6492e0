//! Text of a part in WordprocessingML or DrawingML. In both, a paragraph is `p`, its text `t`, and
//! the rows and cells of a table are `tr` and `tc`.

use super::relationships::read_relationships;
use crate::error::ExtractError;
use crate::text_builder::{FlowBuilder, Separator};
use crate::xml::{XmlElement, XmlEvent, XmlReader};
use crate::zip_package::ZipPackage;

/// Appends the text of the part `target`. A part that is missing or was used before has none.
pub(super) fn append_part(
    package: &mut ZipPackage<'_>,
    target: &str,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    if text.is_full() || !package.is_first_use(target) {
        return Ok(());
    }
    if let Some(xml) = package.read_xml(target)? {
        text.start_section();
        append_xml(package, &xml, text)?;
    }
    Ok(())
}

/// Appends the text of the parts that the part `source` is related to, in the order of `kinds`.
pub(super) fn append_related_parts(
    package: &mut ZipPackage<'_>,
    source: &str,
    kinds: &[&str],
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let relationships = read_relationships(package, source)?;
    for kind in kinds {
        for part in relationships.iter().filter(|part| part.kind == *kind) {
            append_part(package, &part.target, text)?;
        }
    }
    Ok(())
}

/// Appends the text of a part.
pub(super) fn append_xml(
    package: &ZipPackage<'_>,
    xml: &str,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    let mut text_depth = 0u64;
    while !text.is_full()
        && let Some(event) = reader.next()?
    {
        match event {
            XmlEvent::Start(element) if is_hidden(&element) => reader.skip_element()?,
            XmlEvent::Start(element) => {
                text_depth += u64::from(contains_text(element.name()));
                start_element(&element, text);
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

/// `text` is a comment on a slide or cell.
fn contains_text(name: &str) -> bool {
    matches!(name, "t" | "text")
}

/// Properties, deleted text, field codes, and alternative versions of shapes for old programs.
fn is_hidden(element: &XmlElement<'_>) -> bool {
    match element.name() {
        "pPr" | "rPr" | "tblPr" | "tblGrid" | "trPr" | "tcPr" | "sectPr" | "sdtPr" | "Fallback"
        | "delText" | "instrText" | "delInstrText" | "moveFrom" | "rPh" | "rt" => true,
        "fld" => element.attribute("type").as_deref() == Some("slidenum"),
        _ => false,
    }
}

fn start_element(element: &XmlElement<'_>, text: &mut FlowBuilder) {
    match element.name() {
        "p" | "text" => text.start_paragraph(),
        "tr" => text.break_row(),
        "tc" => text.start_cell(),
        "tab" | "ptab" => text.separate(Separator::Tab),
        "br" | "cr" => text.separate(Separator::Line),
        "noBreakHyphen" => text.push_words("\u{2011}"),
        // The alternative text of a picture.
        "docPr" | "cNvPr" => {
            if let Some(description) = element.attribute("descr") {
                text.push_separate_words(&description);
            }
        }
        _ => {}
    }
}

fn end_element(name: &str, text: &mut FlowBuilder) {
    match name {
        "tr" => text.break_row(),
        "tc" => text.end_cell(),
        _ => {}
    }
}
