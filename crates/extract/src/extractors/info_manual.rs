//! Info files, the compiled form of Texinfo. Each node is a document. Source:
//! <https://www.gnu.org/software/texinfo/manual/texinfo/html_node/Info-Files.html>.

use crate::encoding;
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location};
use crate::format::{Input, take_prefix};
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, ExtractedDocument};

/// Precedes the header of each node.
const SEPARATOR: char = '\x1f';
/// Bytes that are searched for the first node.
const DETECTION_BYTES: usize = 8192;

/// Returns `true` if the beginning of the file contains a node.
pub(crate) fn is_info(input: &Input<'_>) -> bool {
    let head = take_prefix(input.bytes, DETECTION_BYTES);
    memchr::memmem::find(head, b"\x1f\nFile: ").is_some()
        || (memchr::memmem::find(head, b"This is ").is_some()
            && memchr::memmem::find(head, b"\x1f\nIndirect:").is_some())
}

/// Emits the nodes.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let source = encoding::decode_with(
        bytes,
        find_declared_encoding(bytes),
        extraction.limits.text_bytes_max,
    );
    for part in source.text.split(SEPARATOR).skip(1) {
        extraction.limits.check_deadline()?;
        let (header, content) = part.trim_start().split_once('\n').unwrap_or((part, ""));
        // Tables of offsets are not nodes.
        let Some(name) = header
            .starts_with("File: ")
            .then(|| find_node_name(header))
            .flatten()
        else {
            continue;
        };
        extraction.usage.count_member(&extraction.limits)?;
        let member = extraction.member_location(location, &name.replace('/', "_"));
        let mut document = ExtractedDocument::new(DocumentKind::Manual, content.trim().to_owned());
        let heading = content.lines().find(|line| !line.trim().is_empty());
        let is_heading = heading.is_some_and(|line| line.contains(name));
        document.title = clean_property(heading.filter(|_| is_heading).unwrap_or(name));
        extraction.emit_document(&member, document);
    }
    Ok(())
}

/// Returns the encoding that the local variables at the end of the file declare.
fn find_declared_encoding(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let key = b"\ncoding: ";
    let at = memchr::memmem::rfind(bytes, key)? + key.len();
    let label = bytes.get(at..)?.split(|byte| *byte == b'\n').next()?;
    encoding_rs::Encoding::for_label(label)
}

fn find_node_name(header: &str) -> Option<&str> {
    let (_, rest) = header.split_once("Node: ")?;
    let name = rest.split(",  ").next().unwrap_or(rest).trim();
    Some(name.trim_matches('\x7f')).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::fixtures::extract_documents;

    #[test]
    fn nodes_are_documents() {
        let source = "This is a.info\n\n\x1f\nFile: a.info,  Node: Top,  Next: One,  Up: (dir)\n\nThe manual\n**********\n\n\
            * Menu:\n\n* One::\n\x1f\nFile: a.info,  Node: One,  Prev: Top\n\n1 One\n=====\n\nWords.\n\x1f\nTag Table:\nNode: Top\x7f16\n\x1f\nEnd Tag Table\n";
        let documents = extract_documents("a.info", source.as_bytes());
        let found: Vec<_> = documents
            .iter()
            .map(|it| {
                (
                    it.inner_path.as_deref().unwrap(),
                    it.title.as_deref().unwrap(),
                )
            })
            .collect();
        assert_eq!(found, [("!/Top", "Top"), ("!/One", "1 One")]);
        assert_eq!(documents[1].text, "1 One\n=====\n\nWords.");
    }
}
