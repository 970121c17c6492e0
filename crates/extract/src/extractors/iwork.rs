//! Pages, Numbers and Keynote since 2013. Apple does not document the format. Source:
//! <https://github.com/obriensp/iWorkFileFormat/blob/master/Docs/index.md>; the numbers of types and
//! fields are those of numbers-parser 4 and keynote-parser 1.
//!
//! A file is a zip archive. Its members `Index/….iwa` contain objects:
//!
//! ```text
//! member    chunk*                         chunk    00, length in 3 bytes, a block of Snappy
//! content   (length, ArchiveInfo, object*)*         all chunks, decompressed
//!           ArchiveInfo: 2 = MessageInfo for each object: 1 = type, 3 = length
//! ```
//!
//! Lengths, `ArchiveInfo` and objects are encoded as protocol buffers. Texts, strings in tables,
//! table names and comments are read. Numbers in tables are not read, because they are packed by
//! row in a proprietary encoding.

mod messages;

use crate::error::{ExtractError, Limit};
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};
use crate::zip_package::ZipPackage;
use messages::{Field, Fields, read_varint};

/// The member with the root of the objects.
pub(crate) const ROOT_MEMBER: &str = "Index/Document.iwa";
/// Members with the words of styles and of templates, which are no text of the document.
const SKIPPED_MEMBERS: [&str; 4] = [
    "Index/DocumentStylesheet",
    "Index/MasterSlide",
    "Index/TemplateSlide",
    "Index/ThemeStylesheet",
];
/// Files with a password have this member.
const PASSWORD_MEMBER: &str = ".iwpv2";
/// A chunk is decompressed from and to about 64 KiB.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Extracts the text of all objects, in the order of the archive.
pub(crate) fn extract(package: &mut ZipPackage<'_>) -> Result<ExtractedDocument, ExtractError> {
    let mut names = package.member_names();
    if names.iter().any(|name| name == PASSWORD_MEMBER) {
        return Err(ExtractError::Encrypted(package.format));
    }
    let is_text = |name: &String| {
        let is_skipped = SKIPPED_MEMBERS.iter().any(|start| name.starts_with(start));
        name.starts_with("Index/") && name.ends_with(".iwa") && !is_skipped
    };
    names.retain(is_text);
    // The root comes first, because it has the text of a Pages document.
    names.sort_by_key(|name| name != ROOT_MEMBER);
    let has_slides = names.iter().any(|name| name.starts_with("Index/Slide"));
    let mut reader = ObjectReader {
        text: TextBuilder::new(package.limits.text_bytes_max),
        kind: if has_slides {
            DocumentKind::Presentation
        } else {
            DocumentKind::Spreadsheet
        },
    };
    for name in names {
        package.limits.check_deadline()?;
        let Some(bytes) = package.read(&name)? else {
            continue;
        };
        let content =
            decompress(&bytes, package.limits).map_err(|error| error.into_error(package, &name))?;
        reader
            .read_objects(&content, package.limits)
            .map_err(|error| error.into_error(package, &name))?;
    }
    let kind = reader.kind;
    Ok(reader.text.into_document(kind, false))
}

/// The reason why a member cannot be read.
enum MemberError {
    Damaged(&'static str),
    Other(ExtractError),
}

impl MemberError {
    fn into_error(self, package: &ZipPackage<'_>, name: &str) -> ExtractError {
        match self {
            MemberError::Damaged(reason) => package.malformed(format!("{name}: {reason}")),
            MemberError::Other(error) => error,
        }
    }
}

impl From<ExtractError> for MemberError {
    fn from(error: ExtractError) -> Self {
        MemberError::Other(error)
    }
}

/// Decompresses all chunks of a member.
fn decompress(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, MemberError> {
    let mut content = Vec::new();
    let mut rest = bytes;
    while let Some((head, after)) = rest.split_first_chunk::<4>() {
        limits.check_deadline()?;
        let [0, low, middle, high] = *head else {
            return Err(MemberError::Damaged("a chunk has another compression"));
        };
        let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
        let chunk = after.split_at_checked(length);
        let (chunk, after) = chunk.ok_or(MemberError::Damaged("a chunk is cut"))?;
        let expanded = snap::raw::decompress_len(chunk);
        if expanded.is_err() || expanded.is_ok_and(|length| length > CHUNK_BYTES_MAX) {
            return Err(MemberError::Damaged("the length of a chunk is invalid"));
        }
        let decompressed = snap::raw::Decoder::new().decompress_vec(chunk);
        let decompressed = decompressed.map_err(|_| MemberError::Damaged("a chunk is damaged"))?;
        content.extend_from_slice(&decompressed);
        if content.len() as u64 > limits.input_bytes_max {
            return Err(ExtractError::limit(Limit::InputSize, limits.input_bytes_max).into());
        }
        rest = after;
    }
    if rest.is_empty() {
        Ok(content)
    } else {
        Err(MemberError::Damaged("a chunk is cut"))
    }
}

struct ObjectReader {
    text: TextBuilder,
    kind: DocumentKind,
}

impl ObjectReader {
    fn read_objects(&mut self, content: &[u8], limits: &Limits) -> Result<(), MemberError> {
        const CUT: MemberError = MemberError::Damaged("an object is cut");
        let mut rest = content;
        while !rest.is_empty() {
            limits.check_deadline()?;
            let length = read_varint(&mut rest).ok_or(CUT)?;
            let length = usize::try_from(length).map_err(|_| CUT)?;
            let (info, after) = rest.split_at_checked(length).ok_or(CUT)?;
            rest = after;
            for field in Fields::new(info) {
                let Field::Bytes(2, message_info) = field else {
                    continue;
                };
                let number = |wanted| Fields::new(message_info).find_number(wanted);
                let length = usize::try_from(number(3).ok_or(CUT)?).map_err(|_| CUT)?;
                let (object, after) = rest.split_at_checked(length).ok_or(CUT)?;
                rest = after;
                self.read_object(number(1).unwrap_or_default(), object);
            }
        }
        Ok(())
    }

    fn read_object(&mut self, object_type: u64, object: &[u8]) {
        const PAGES_DOCUMENT: u64 = 10_000;
        const SHEET: u64 = 2;
        const STRINGS: u64 = 1;
        match object_type {
            PAGES_DOCUMENT => self.kind = DocumentKind::Document,
            // Texts of the body, text boxes, notes, and cells with formatted text.
            2001 | 2005 => self.push_strings(object, 3),
            // The text of a comment.
            3056 => self.push_strings(object, 1),
            // The name of a table.
            6001 => self.push_strings(object, 8),
            // The strings of a table. Other lists contain formats, formulas and references.
            6005 | 6011 | 6201 if Fields::new(object).find_number(1) == Some(STRINGS) => {
                for field in Fields::new(object) {
                    if let Field::Bytes(3, entry) = field {
                        self.push_strings(entry, 3);
                    }
                }
            }
            SHEET if self.kind == DocumentKind::Spreadsheet => self.push_strings(object, 1),
            _ => {}
        }
    }

    fn push_strings(&mut self, message: &[u8], number: u32) {
        /// Breaks of pages, columns and sections, and the separators of Unicode.
        const BREAKS: [char; 5] = ['\u{4}', '\u{5}', '\u{c}', '\u{2028}', '\u{2029}'];
        for field in Fields::new(message) {
            let Field::Bytes(found, bytes) = field else {
                continue;
            };
            if let Ok(text) = std::str::from_utf8(bytes)
                && found == number
            {
                // A placeholder of a picture, table or note.
                let text = text.replace('\u{fffc}', "");
                for line in text.split(|letter| letter == '\n' || BREAKS.contains(&letter)) {
                    self.text.push_words(line);
                    self.text.separate(Separator::Line);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{build_zip, extract_documents, extract_outputs};

    fn varint(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push((number as u8) | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
        [
            varint(number << 3 | 2),
            varint(bytes.len() as u64),
            bytes.to_vec(),
        ]
        .concat()
    }

    fn number(number: u64, value: u64) -> Vec<u8> {
        [varint(number << 3), varint(value)].concat()
    }

    /// A member with these objects, each with its type.
    fn member(objects: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut content = Vec::new();
        for (object_type, object) in objects {
            let message = [number(1, *object_type), number(3, object.len() as u64)].concat();
            let info = [number(1, 7), field(2, &message)].concat();
            content.extend([varint(info.len() as u64), info, object.clone()].concat());
        }
        let chunks = content.chunks(40).flat_map(|part| {
            let chunk = snap::raw::Encoder::new().compress_vec(part).unwrap();
            [&[0, chunk.len() as u8, 0, 0], &chunk[..]].concat()
        });
        chunks.collect()
    }

    #[test]
    fn texts_of_a_document_are_read() {
        let body = field(3, "Bread\nrises\u{fffc}.\u{4}Next page".as_bytes());
        let document = member(&[(10_000, number(1, 5)), (2001, body)]);
        let style = member(&[(2001, field(3, b"Heading 1"))]);
        let comment = member(&[(3056, field(1, b"A comment")), (99, field(3, b"other"))]);
        let zip = build_zip(&[
            ("Index/DocumentStylesheet.iwa", &style),
            ("Index/Comments.iwa", &comment),
            ("Index/Document.iwa", &document),
            ("preview.jpg", b"x"),
        ]);
        let [document] = &extract_documents("a.pages", &zip)[..] else {
            panic!("one document");
        };
        assert_eq!(document.text, "Bread\nrises.\nNext page\nA comment");
        assert_eq!(document.kind, DocumentKind::Document);
    }

    #[test]
    fn slides_are_read_without_their_templates() {
        let slide = member(&[(2001, field(3, b"A slide"))]);
        let template = member(&[(2001, field(3, b"Title Text"))]);
        let zip = build_zip(&[
            ("Index/Document.iwa", &member(&[(1, Vec::new())])),
            ("Index/TemplateSlide-1.iwa", &template),
            ("Index/Slide-2.iwa", &slide),
        ]);
        let [document] = &extract_documents("a.key", &zip)[..] else {
            panic!("one document");
        };
        assert_eq!(
            (document.text.as_str(), document.kind),
            ("A slide", DocumentKind::Presentation)
        );
    }

    #[test]
    fn damaged_and_encrypted_files_fail() {
        let cut = [0, 200, 0, 0, 1];
        let large = [&[0, 5, 0, 0][..], &[0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
        let odd = [1, 0, 0, 0];
        for bytes in [&cut[..], &large, &odd, b"\0"] {
            let zip = build_zip(&[(ROOT_MEMBER, bytes)]);
            let (outputs, counts) = extract_outputs("a.pages", &zip);
            assert_eq!(counts.unwrap_err().code(), "malformed", "{bytes:?}");
            assert!(outputs.is_empty());
        }
        let zip = build_zip(&[(ROOT_MEMBER, b"x"), (PASSWORD_MEMBER, b"x")]);
        assert_eq!(
            extract_outputs("a.pages", &zip).1.unwrap_err().code(),
            "encrypted"
        );
    }
}
