//! Relationships between the parts of a file.

use crate::error::ExtractError;
use crate::xml::{XmlEvent, XmlReader};
use crate::zip_package::{ZipPackage, resolve_target};

/// A reference from a part to another one.
#[derive(Debug)]
pub(super) struct Relationship {
    /// Identifies the relationship within its source.
    pub(super) id: String,
    /// The last component of its type, which is a URL: `officeDocument`, `header`. The first
    /// components depend on the edition of the standard.
    pub(super) kind: String,
    /// The name of the part.
    pub(super) target: String,
}

/// Returns the references of the part `source` to parts of the file, or those of the file itself
/// if `source` is empty.
pub(super) fn read_relationships(
    package: &mut ZipPackage<'_>,
    source: &str,
) -> Result<Vec<Relationship>, ExtractError> {
    let (folder, name) = source.rsplit_once('/').unwrap_or(("", source));
    let separator = if folder.is_empty() { "" } else { "/" };
    let Some(xml) = package.read_xml(&format!("{folder}{separator}_rels/{name}.rels"))? else {
        return Ok(Vec::new());
    };
    let mut reader = XmlReader::new(package.format, &xml, package.limits);
    let mut relationships = Vec::new();
    while let Some(event) = reader.next()? {
        let XmlEvent::Start(element) = event else {
            continue;
        };
        let is_external = element.attribute("TargetMode").as_deref() == Some("External");
        if element.name() != "Relationship" || is_external {
            continue;
        }
        let attribute = |name| element.attribute(name).unwrap_or_default();
        let type_url = attribute("Type");
        relationships.push(Relationship {
            id: attribute("Id"),
            kind: type_url.rsplit('/').next().unwrap_or_default().to_string(),
            target: resolve_target(source, &attribute("Target")),
        });
    }
    Ok(relationships)
}
