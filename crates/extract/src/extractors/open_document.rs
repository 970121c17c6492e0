//! OpenDocument: documents of LibreOffice and others. Source: OASIS OpenDocument 1.3,
//! <https://docs.oasis-open.org/office/OpenDocument/v1.3/>.
//!
//! A file is a zip archive. `content.xml` contains the text with its notes and comments,
//! `styles.xml` headers and footers, `meta.xml` the metadata. `META-INF/manifest.xml` lists
//! encrypted members.

mod content;

use crate::error::ExtractError;
use crate::metadata_text::{append_keywords, clean_property, parse_iso_date, parse_language};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::FlowBuilder;
use crate::xml::{XmlEvent, XmlReader};
use crate::zip_package::ZipPackage;
use content::{ContentPart, NOTE_ELEMENTS, append_xml};

/// Extracts the text of a text document, spreadsheet, presentation or drawing.
pub(crate) fn extract(package: &mut ZipPackage<'_>) -> Result<ExtractedDocument, ExtractError> {
    let manifest = package.read_required_xml("META-INF/manifest.xml")?;
    if is_encrypted(package, &manifest)? {
        return Err(ExtractError::Encrypted(package.format));
    }
    let kind = read_kind(package)?;
    let mut text = FlowBuilder::new(package.limits.text_bytes_max);
    append_text(package, kind, &mut text)?;
    let text = text.finish();
    let mut document = ExtractedDocument::new(kind, text.text);
    document.truncated = text.truncated;
    if let Some(xml) = package.read_xml("meta.xml")? {
        read_properties(package, &xml, &mut document)?;
    }
    Ok(document)
}

fn append_text(
    package: &mut ZipPackage<'_>,
    kind: DocumentKind,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let part = |element| ContentPart {
        element,
        has_table_names: kind == DocumentKind::Spreadsheet,
    };
    let content = package.read_required_xml("content.xml")?;
    append_xml(package, &content, &part("body"), text)?;
    for element in NOTE_ELEMENTS {
        append_xml(package, &content, &part(element), text)?;
    }
    if let Some(styles) = package.read_xml("styles.xml")? {
        append_xml(package, &styles, &part("master-styles"), text)?;
    }
    Ok(())
}

/// Returns the kind by the media type of the file.
fn read_kind(package: &mut ZipPackage<'_>) -> Result<DocumentKind, ExtractError> {
    let media_type = package.read("mimetype")?.unwrap_or_default();
    let media_type = String::from_utf8_lossy(&media_type);
    let subtype = media_type
        .trim()
        .strip_prefix("application/vnd.oasis.opendocument.")
        .unwrap_or_default();
    match subtype.split('-').next().unwrap_or_default() {
        "text" => Ok(DocumentKind::Document),
        "spreadsheet" => Ok(DocumentKind::Spreadsheet),
        "presentation" => Ok(DocumentKind::Presentation),
        "graphics" => Ok(DocumentKind::Drawing),
        _ => Err(ExtractError::Unsupported(
            "OpenDocument file of another kind",
        )),
    }
}

fn is_encrypted(package: &ZipPackage<'_>, manifest: &str) -> Result<bool, ExtractError> {
    let mut reader = XmlReader::new(package.format, manifest, package.limits);
    while let Some(event) = reader.next()? {
        if let XmlEvent::Start(element) = event
            && element.name() == "encryption-data"
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_properties(
    package: &ZipPackage<'_>,
    xml: &str,
    document: &mut ExtractedDocument,
) -> Result<(), ExtractError> {
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    let metadata = &mut document.metadata;
    let mut creator = None;
    while let Some(event) = reader.next()? {
        let XmlEvent::Start(element) = event else {
            continue;
        };
        match element.name() {
            "title" => document.title = clean_property(&reader.read_element_text()?),
            "initial-creator" => metadata.author = clean_property(&reader.read_element_text()?),
            // The author of the last change.
            "creator" => creator = clean_property(&reader.read_element_text()?),
            "subject" => metadata.subject = clean_property(&reader.read_element_text()?),
            "description" => metadata.description = clean_property(&reader.read_element_text()?),
            "keyword" => append_keywords(&mut metadata.keywords, &reader.read_element_text()?),
            "language" => document.language = parse_language(&reader.read_element_text()?),
            "creation-date" => metadata.date_ms = parse_iso_date(&reader.read_element_text()?),
            _ => {}
        }
    }
    metadata.author = metadata.author.take().or(creator);
    Ok(())
}

#[cfg(test)]
mod tests;
