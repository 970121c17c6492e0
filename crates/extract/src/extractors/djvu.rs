//! DjVu: scanned documents. A text layer, if present, was recognized when the file was created.

use djvu_rs::DjVuDocument;
use djvu_rs::metadata::DjVuMetadata;

use crate::encoding::truncate;
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location, catch_panic};
use crate::limits::Limits;
use crate::metadata_text::{append_keywords, clean_property};
use crate::output::{DocumentKind, DocumentMetadata, ExtractedDocument};

const FORMAT: &str = "DjVu document";

/// Emits the document. If it has no text, it is emitted with its metadata, and
/// [`ExtractError::NoText`] is returned.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let limits = extraction.limits.clone();
    let document = catch_panic(FORMAT, || read(bytes, &limits))?;
    let is_scan = document.text.is_empty();
    extraction.emit_document(location, document);
    if is_scan {
        return Err(ExtractError::NoText(FORMAT));
    }
    Ok(())
}

fn read(bytes: &[u8], limits: &Limits) -> Result<ExtractedDocument, ExtractError> {
    let malformed = |error| ExtractError::malformed(FORMAT, error);
    let file = DjVuDocument::parse(bytes).map_err(|error| malformed(error.to_string()))?;
    let pages_max = limits.pages_max as usize;
    let (mut text, mut is_cut) = (String::new(), file.page_count() > pages_max);
    for number in 0..file.page_count().min(pages_max) {
        limits.check_deadline()?;
        // The number of form feeds before a word determines its page.
        if number > 0 {
            text.push('\x0c');
        }
        let page = file.page(number).and_then(|page| page.text());
        // A damaged page is skipped; the other pages are read.
        if let Ok(Some(page)) = page {
            push_page(&page, &mut text);
        }
        if truncate(&mut text, limits.text_bytes_max) {
            is_cut = true;
            break;
        }
    }
    text.truncate(text.trim_end().len());
    let properties = file.metadata().ok().flatten().unwrap_or_default();
    let mut document = ExtractedDocument::new(DocumentKind::Djvu, text);
    document.truncated = is_cut;
    document.title = clean(properties.title.as_deref());
    document.metadata = build_metadata(&properties, file.page_count());
    Ok(document)
}

/// Appends the text of a page. Form feeds and other separators of lines and columns become line
/// breaks.
fn push_page(page: &str, text: &mut String) {
    let is_separator = |character| matches!(character, '\n' | '\x0b' | '\x0c' | '\x1d' | '\x1f');
    for line in page.split(is_separator).map(str::trim_end) {
        let is_first = text.is_empty() || text.ends_with(['\n', '\x0c']);
        if line.is_empty() && is_first {
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
}

fn build_metadata(properties: &DjVuMetadata, pages: usize) -> DocumentMetadata {
    let mut keywords = Vec::new();
    if let Some(text) = clean(properties.keywords.as_deref()) {
        append_keywords(&mut keywords, &text);
    }
    DocumentMetadata {
        author: clean(properties.author.as_deref()),
        subject: clean(properties.subject.as_deref()),
        keywords,
        pages: u32::try_from(pages).ok(),
        ..DocumentMetadata::default()
    }
}

fn clean(property: Option<&str>) -> Option<String> {
    clean_property(property?)
}
