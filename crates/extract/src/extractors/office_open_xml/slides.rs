//! Presentations of PowerPoint.

use super::relationships::read_relationships;
use super::text_part::{append_part, append_related_parts};
use crate::error::ExtractError;
use crate::text_builder::FlowBuilder;
use crate::xml::{XmlEvent, XmlReader};
use crate::zip_package::ZipPackage;

/// The parts after each slide, in this order: charts and diagrams, notes, comments.
const PART_KINDS: [&str; 3] = ["diagramData", "notesSlide", "comments"];

/// Appends the slides in their order, each with its notes and comments. `xml` is the content of
/// the part `main`.
pub(super) fn append_presentation(
    package: &mut ZipPackage<'_>,
    main: &str,
    xml: &str,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    let relationships = read_relationships(package, main)?;
    let ids = read_slide_ids(package, xml)?;
    let find = |id: &String| relationships.iter().find(|slide| slide.id == *id);
    for slide in ids.iter().filter_map(find) {
        package.limits.check_deadline()?;
        if text.is_full() {
            break;
        }
        append_part(package, &slide.target, text)?;
        append_related_parts(package, &slide.target, &PART_KINDS, text)?;
    }
    Ok(())
}

/// Returns the ids of the relationships to the slides, in the order of the slides.
fn read_slide_ids(package: &ZipPackage<'_>, xml: &str) -> Result<Vec<String>, ExtractError> {
    let mut reader = XmlReader::new(package.format, xml, package.limits);
    let mut ids = Vec::new();
    while let Some(event) = reader.next()? {
        if let XmlEvent::Start(element) = event
            && element.name() == "sldId"
        {
            ids.extend(element.prefixed_attribute("id"));
        }
    }
    Ok(ids)
}
