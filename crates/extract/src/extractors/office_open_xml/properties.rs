//! The properties of a document (`docProps/core.xml`).

use crate::error::ExtractError;
use crate::metadata_text::{append_keywords, clean_property, parse_iso_date, parse_language};
use crate::output::ExtractedDocument;
use crate::xml::{XmlEvent, XmlReader};
use crate::zip_package::ZipPackage;

/// Sets the title, language and metadata of `document`.
pub(super) fn read_core_properties(
    package: &ZipPackage<'_>,
    xml: &str,
    document: &mut ExtractedDocument,
) -> Result<(), ExtractError> {
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    let metadata = &mut document.metadata;
    while let Some(event) = reader.next()? {
        let XmlEvent::Start(element) = event else {
            continue;
        };
        match element.name() {
            "title" => document.title = clean_property(&reader.read_element_text()?),
            "creator" => metadata.author = clean_property(&reader.read_element_text()?),
            "subject" => metadata.subject = clean_property(&reader.read_element_text()?),
            "description" => metadata.description = clean_property(&reader.read_element_text()?),
            "keywords" => append_keywords(&mut metadata.keywords, &reader.read_element_text()?),
            "language" => document.language = parse_language(&reader.read_element_text()?),
            "created" => metadata.date_ms = parse_iso_date(&reader.read_element_text()?),
            _ => {}
        }
    }
    Ok(())
}
