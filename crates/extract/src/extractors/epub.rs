//! EPUB books. Source: EPUB 3.3, <https://www.w3.org/TR/epub-33/>.
//!
//! A book is a zip archive. `META-INF/container.xml` names the package document, which has the
//! properties, a list of all files (the manifest) and the order of the chapters (the spine).

use std::collections::HashMap;

use super::html;
use crate::error::ExtractError;
use crate::format::Input;
use crate::metadata_text::{append_keywords, clean_property, parse_iso_date, parse_language};
use crate::output::{DocumentKind, ExtractedDocument};
use crate::text_builder::{Separator, TextBuilder};
use crate::xml::{XmlElement, XmlEvent, XmlReader};
use crate::zip_package::{ZipPackage, resolve_target};

const ENCRYPTION: &str = "META-INF/encryption.xml";
/// Font obfuscation algorithms, which do not affect text.
const FONT_ALGORITHMS: [&str; 2] = [
    "http://www.idpf.org/2008/embedding",
    "http://ns.adobe.com/pdf/enc#RC",
];

/// Extracts the chapters in the order of the spine. Missing chapters are skipped.
pub(crate) fn extract(package: &mut ZipPackage<'_>) -> Result<ExtractedDocument, ExtractError> {
    if has_encrypted_text(package)? {
        return Err(ExtractError::Encrypted(package.format));
    }
    let container = package.read_required_xml("META-INF/container.xml")?;
    let path = find_package_document(package, &container)?;
    let xml = package.read_required_xml(&path)?;
    let book = Book::read(package, &path, &xml)?;
    let mut text = TextBuilder::new(package.limits.text_bytes_max);
    let mut chapter_count = 0;
    for chapter in book.spine.iter().filter_map(|id| book.manifest.get(id)) {
        package.limits.check_deadline()?;
        if text.is_full() {
            break;
        }
        if package.is_first_use(chapter)
            && let Some(bytes) = package.read(chapter)?
        {
            chapter_count += 1;
            append_chapter(package, chapter, &bytes, &mut text)?;
        }
    }
    if chapter_count == 0 {
        return Err(package.malformed("it has no chapters"));
    }
    let text = text.finish();
    let mut document = book.document;
    document.truncated = text.truncated;
    document.text = text.text;
    Ok(document)
}

fn append_chapter(
    package: &ZipPackage<'_>,
    name: &str,
    bytes: &[u8],
    text: &mut TextBuilder,
) -> Result<(), ExtractError> {
    let chapter = html::extract(&Input { name, bytes }, package.limits)?;
    text.separate(Separator::Paragraph);
    text.push_verbatim(&chapter.text);
    Ok(())
}

/// Returns `true` if files other than fonts are encrypted.
fn has_encrypted_text(package: &mut ZipPackage<'_>) -> Result<bool, ExtractError> {
    let Some(xml) = package.read_xml(ENCRYPTION)? else {
        return Ok(false);
    };
    let mut reader = XmlReader::new(package.format, &xml, package.limits);
    let mut in_key = false;
    while let Some(event) = reader.next()? {
        match event {
            XmlEvent::Start(element) => match element.name() {
                "EncryptedKey" => in_key = true,
                "EncryptionMethod" if !in_key => {
                    let algorithm = element.attribute("Algorithm").unwrap_or_default();
                    if !FONT_ALGORITHMS.contains(&algorithm.as_str()) {
                        return Ok(true);
                    }
                }
                _ => {}
            },
            XmlEvent::End(name) if name == "EncryptedKey" => in_key = false,
            XmlEvent::End(_) | XmlEvent::Text(_) => {}
        }
    }
    Ok(false)
}

/// Returns the path of the package document.
fn find_package_document(
    package: &ZipPackage<'_>,
    container: &str,
) -> Result<String, ExtractError> {
    let mut reader = XmlReader::new(package.format, container, package.limits);
    while let Some(event) = reader.next()? {
        if let XmlEvent::Start(element) = event
            && element.name() == "rootfile"
            && let Some(path) = element.attribute("full-path")
        {
            return Ok(path);
        }
    }
    Err(package.malformed("it has no package document"))
}

struct Book {
    /// Title, language and metadata. The text is added later.
    document: ExtractedDocument,
    /// The names of chapters in the archive, by their ids.
    manifest: HashMap<String, String>,
    /// The ids of the chapters in their order.
    spine: Vec<String>,
}

impl Book {
    /// Reads a package document. `path` is its name in the archive.
    fn read(package: &ZipPackage<'_>, path: &str, xml: &str) -> Result<Self, ExtractError> {
        let mut book = Book {
            document: ExtractedDocument::new(DocumentKind::Book, String::new()),
            manifest: HashMap::new(),
            spine: Vec::new(),
        };
        let mut reader = XmlReader::new(package.format, xml, package.limits);
        while let Some(event) = reader.next()? {
            if let XmlEvent::Start(element) = event {
                match element.name() {
                    "item" => book.add_file(path, &element),
                    "itemref" => book.spine.extend(element.attribute("idref")),
                    name if is_property(name) => {
                        let name = name.to_string();
                        book.add_property(&name, &reader.read_element_text()?);
                    }
                    _ => {}
                }
            }
        }
        Ok(book)
    }

    fn add_file(&mut self, path: &str, element: &XmlElement<'_>) {
        let media_type = element.attribute("media-type").unwrap_or_default();
        let is_chapter = media_type.contains("html") || media_type.contains("dtbook");
        if let (true, Some(id), Some(href)) = (
            is_chapter,
            element.attribute("id"),
            element.attribute("href"),
        ) {
            self.manifest.insert(id, resolve_target(path, &href));
        }
    }

    /// Sets a property. The first title, language and date take precedence.
    fn add_property(&mut self, name: &str, text: &str) {
        let document = &mut self.document;
        let metadata = &mut document.metadata;
        match name {
            "title" if document.title.is_none() => document.title = clean_property(text),
            "language" if document.language.is_none() => document.language = parse_language(text),
            "date" if metadata.date_ms.is_none() => metadata.date_ms = parse_iso_date(text),
            "creator" => append_name(&mut metadata.author, text),
            "subject" => append_keywords(&mut metadata.keywords, text),
            "description" if metadata.description.is_none() => {
                metadata.description = clean_property(text);
            }
            _ => {}
        }
    }
}

fn is_property(name: &str) -> bool {
    matches!(
        name,
        "title" | "language" | "date" | "creator" | "subject" | "description"
    )
}

/// Appends one of several authors.
fn append_name(author: &mut Option<String>, name: &str) {
    let names: Vec<&str> = author.as_deref().into_iter().chain([name]).collect();
    *author = clean_property(&names.join(", "));
}

#[cfg(test)]
mod tests {
    use crate::error::ExtractError;
    use crate::fixtures::{build_zip, extract_documents, extract_outputs};

    const CONTAINER: (&str, &[u8]) = (
        "META-INF/container.xml",
        b"<container><rootfiles><rootfile full-path='o/p.opf'/></rootfiles></container>",
    );
    const MIMETYPE: (&str, &[u8]) = ("mimetype", b"application/epub+zip");
    const PACKAGE: (&str, &[u8]) = (
        "o/p.opf",
        b"<package><metadata><dc:title>A &amp; B</dc:title><dc:title>Sub</dc:title>\
          <dc:creator>Ada</dc:creator><dc:creator>Bob</dc:creator><dc:language>de-AT</dc:language>\
          <dc:date>2020-01-02</dc:date><dc:subject>Bread</dc:subject></metadata><manifest>\
          <item id='b' href='two%20b.xhtml' media-type='application/xhtml+xml'/>\
          <item id='a' href='../one.html' media-type='text/html'/>\
          <item id='i' href='i.svg' media-type='image/svg+xml'/>\
          <item id='m' href='missing.html' media-type='text/html'/></manifest>\
          <spine><itemref idref='a'/><itemref idref='i'/><itemref idref='m'/><itemref idref='b'/>\
          <itemref idref='a'/></spine></package>",
    );
    const ONE: (&str, &[u8]) = ("one.html", b"<html><title>t</title><h1>One</h1><p>first");

    #[test]
    fn chapters_are_read_in_the_order_of_the_spine() {
        let two: &[u8] =
            b"<?xml version='1.0' encoding='iso-8859-1'?><html><p>s\xe9cond</p></html>";
        let file = build_zip(&[MIMETYPE, CONTAINER, PACKAGE, ("o/two b.xhtml", two), ONE]);
        let [document] = &extract_documents("a.epub", &file)[..] else {
            panic!("one book")
        };
        assert_eq!(document.text, "One\n\nfirst\n\nsécond");
        assert_eq!(document.title.as_deref(), Some("A & B"));
        assert_eq!(document.language.as_deref(), Some("de"));
        assert_eq!(document.metadata.author.as_deref(), Some("Ada, Bob"));
        assert_eq!(document.metadata.keywords, ["Bread"]);
        assert_eq!(document.metadata.date_ms, Some(1_577_923_200_000));
    }

    #[test]
    fn encrypted_and_damaged_books_fail() {
        let check = |members: &[(&str, &[u8])], expected: ExtractError| {
            assert_eq!(
                extract_outputs("a.epub", &build_zip(members)).1,
                Err(expected)
            );
        };
        let encryption = |algorithm: &str| {
            format!(
                "<encryption><EncryptedData><EncryptionMethod Algorithm='{algorithm}'/>\
                 </EncryptedData></encryption>"
            )
        };
        let aes = encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc");
        check(
            &[
                MIMETYPE,
                CONTAINER,
                PACKAGE,
                ONE,
                (super::ENCRYPTION, aes.as_bytes()),
            ],
            ExtractError::Encrypted("EPUB book"),
        );
        let fonts = encryption(super::FONT_ALGORITHMS[0]);
        let members = [
            MIMETYPE,
            CONTAINER,
            PACKAGE,
            ONE,
            (super::ENCRYPTION, fonts.as_bytes()),
        ];
        assert_eq!(extract_documents("a.epub", &build_zip(&members)).len(), 1);
        let malformed = |reason| ExtractError::malformed("EPUB book", reason);
        check(
            &[MIMETYPE, CONTAINER],
            malformed("the part \"o/p.opf\" is missing"),
        );
        check(
            &[MIMETYPE, CONTAINER, PACKAGE],
            malformed("it has no chapters"),
        );
    }
}
