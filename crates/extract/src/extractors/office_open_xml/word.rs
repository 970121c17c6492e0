//! Documents of Word.

use super::relationships::read_relationships;
use super::text_part::{append_part, append_xml};
use crate::error::ExtractError;
use crate::text_builder::FlowBuilder;
use crate::zip_package::ZipPackage;

/// The parts after the body, in this order.
const PART_KINDS: [&str; 5] = ["footnotes", "endnotes", "comments", "header", "footer"];

/// Appends the body, then notes, comments, headers and footers. `xml` is the content of the part
/// `main`.
pub(super) fn append_document(
    package: &mut ZipPackage<'_>,
    main: &str,
    xml: &str,
    text: &mut FlowBuilder,
) -> Result<(), ExtractError> {
    append_xml(package, xml, text)?;
    let relationships = read_relationships(package, main)?;
    for kind in PART_KINDS {
        for part in relationships.iter().filter(|part| part.kind == kind) {
            append_part(package, &part.target, text)?;
        }
    }
    Ok(())
}
