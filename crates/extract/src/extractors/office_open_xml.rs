//! Office Open XML: documents of Word, Excel and PowerPoint since 2007. Source: ECMA-376,
//! <https://ecma-international.org/publications-and-standards/standards/ecma-376>.
//!
//! A file is a zip archive of parts. `_rels/.rels` names the main part, and the parts that
//! `a/b.xml` refers to are named in `a/_rels/b.xml.rels`. The root element of the main part
//! determines the kind of document.

mod properties;
mod relationships;
mod sheets;
mod slides;
mod text_part;
mod word;

use crate::error::ExtractError;
use crate::format::split_extension;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::FlowBuilder;
use crate::xml::{XmlEvent, XmlReader};
use crate::zip_package::ZipPackage;
use relationships::read_relationships;

/// Extracts the text of a document, workbook or presentation with its notes and comments.
pub(crate) fn extract(package: &mut ZipPackage<'_>) -> Result<ExtractedDocument, ExtractError> {
    let relationships = read_relationships(package, "")?;
    let main = relationships
        .iter()
        .find(|relationship| relationship.kind == "officeDocument")
        .ok_or(ExtractError::Unsupported("Office document of another kind"))?;
    if split_extension(&main.target).is_some_and(|extension| extension == "bin") {
        return Err(ExtractError::Unsupported("binary Excel workbook"));
    }
    let xml = package.read_required_xml(&main.target)?;
    let mut text = FlowBuilder::new(package.limits.text_bytes_max);
    let kind = match find_root_element(package, &xml)?.as_str() {
        "document" => {
            word::append_document(package, &main.target, &xml, &mut text)?;
            DocumentKind::Document
        }
        "workbook" => {
            sheets::append_workbook(package, &main.target, &xml, &mut text)?;
            DocumentKind::Spreadsheet
        }
        "presentation" => {
            slides::append_presentation(package, &main.target, &xml, &mut text)?;
            DocumentKind::Presentation
        }
        _ => return Err(ExtractError::Unsupported("Office document of another kind")),
    };
    let text = text.finish();
    let mut document = ExtractedDocument::new(kind, text.text);
    document.truncated = text.truncated;
    let core = relationships
        .iter()
        .find(|relationship| relationship.kind == "core-properties");
    if let Some(core) = core
        && let Some(xml) = package.read_xml(&core.target)?
    {
        properties::read_core_properties(package, &xml, &mut document)?;
    }
    Ok(document)
}

/// Returns the local name of the outermost element.
fn find_root_element(package: &ZipPackage<'_>, xml: &str) -> Result<String, ExtractError> {
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    loop {
        match reader.next()? {
            Some(XmlEvent::Start(element)) => return Ok(element.name().to_string()),
            Some(_) => {}
            None => return Err(package.malformed("its main part is empty")),
        }
    }
}

#[cfg(test)]
mod tests;
