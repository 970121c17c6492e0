//! Extracts text from PDF. The page interpreter draws to a device that records glyphs.

mod direction;
mod interactive;
mod layout;
mod text_device;

use std::panic::resume_unwind;
use std::sync::Arc;

use hayro_interpret::hayro_syntax::metadata::Metadata;
use hayro_interpret::hayro_syntax::object::DateTime;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, Rect};
use hayro_interpret::{
    Context, InterpreterCache, InterpreterSettings, RenderContent, interpret_page,
};

use crate::encoding::{self, truncate};
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location, catch_panic};
use crate::format::{Input, split_extension, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::{CalendarTime, append_keywords, clean_property};
use crate::output::{DocumentKind, DocumentMetadata, ExtractedDocument};
use crate::xmp::read_xmp;
use text_device::TextDevice;

const FORMAT: &str = "PDF";
/// The maximum number of bytes before the header, which PDF readers accept.
const HEADER_BYTES_MAX: usize = 1024;
/// The maximum length of a note or form value. Longer ones are truncated.
const TEXT_STRING_BYTES_MAX: usize = 64 << 10;

/// Returns `true` if the file has the extension of PDF and bytes before its header.
pub(crate) fn has_late_header(input: &Input<'_>) -> bool {
    let extension = split_extension(input.name).unwrap_or_default();
    let head = take_prefix(input.bytes, HEADER_BYTES_MAX);
    extension.eq_ignore_ascii_case("pdf") && memchr::memmem::find(head, b"%PDF-").is_some()
}

/// Emits the document and its attachments. A scanned document is emitted without text, and
/// [`ExtractError::NoText`] is returned.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let limits = extraction.limits.clone();
    let pdf = catch_panic(FORMAT, || {
        Pdf::new(Arc::new(bytes.to_vec())).map_err(convert_load_error)
    })?;
    let threads = extraction.thread_count();
    let content = catch_panic(FORMAT, || read(&pdf, &limits, threads))?;
    extraction.emit_document(location, content.document);
    extract_attachments(extraction, location, &pdf)?;
    if content.is_scan {
        return Err(ExtractError::NoText(FORMAT));
    }
    Ok(())
}

fn extract_attachments(
    extraction: &mut Extraction<'_>,
    location: &Location,
    pdf: &Pdf,
) -> Result<(), ExtractError> {
    let limits = extraction.limits.clone();
    let pages_max = limits.pages_max as usize;
    let find = || interactive::find_attachments(pdf, pages_max, &limits);
    for (name, stream) in catch_panic(FORMAT, find)? {
        extraction.usage.count_member(&extraction.limits)?;
        let member = extraction.member_location(location, &name);
        let compressed_bytes = stream.raw_data().len() as u64;
        let budget = extraction.usage.expansion_budget(compressed_bytes, &limits);
        let decoded = catch_panic(FORMAT, || {
            let decoded = stream.decoded();
            decoded.map_err(|_| ExtractError::malformed(FORMAT, "an embedded file is not readable"))
        });
        let result = match decoded {
            Ok(decoded) if decoded.len() as u64 > budget.bytes_max => Err(budget.error),
            Ok(decoded) => {
                extraction.usage.add_expanded(decoded.len(), &limits)?;
                extraction.extract_bytes(&member, &decoded)
            }
            Err(error) => Err(error),
        };
        extraction.record_result(&member, result)?;
    }
    Ok(())
}

struct PdfContent {
    document: ExtractedDocument,
    /// The pages are scanned.
    is_scan: bool,
}

/// Reads the text of all pages, form fields, notes and metadata.
fn read(pdf: &Pdf, limits: &Limits, threads: usize) -> Result<PdfContent, ExtractError> {
    let page_count = pdf.pages().len();
    if page_count == 0 {
        return Err(ExtractError::malformed(FORMAT, "it has no pages"));
    }
    let pages_max = limits.pages_max as usize;
    let read = pdf.pages().get(..page_count.min(pages_max));
    let pages = read_pages(read.unwrap_or_default(), limits, threads)?;
    let has_images = pages.has_images;
    let pages = pages.layout.finish();
    let mut text = pages.text;
    for line in interactive::read_notes(pdf, pages_max, limits)? {
        text.push('\n');
        text.push_str(&line);
    }
    let is_scan = text.is_empty() && has_images;
    let is_cut = truncate(&mut text, limits.text_bytes_max);
    let mut document = ExtractedDocument::new(DocumentKind::Pdf, text);
    document.truncated = is_cut || pages.truncated || page_count > pages_max;
    document.title = decode_property(pdf.metadata().title.as_deref());
    document.metadata = build_metadata(pdf.metadata(), page_count);
    if let Some(packet) = interactive::read_metadata_stream(pdf) {
        read_xmp(&packet, limits, &mut document);
    }
    Ok(PdfContent { document, is_scan })
}

fn convert_load_error(error: LoadPdfError) -> ExtractError {
    match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            ExtractError::Encrypted("PDF")
        }
        LoadPdfError::Decryption(error) => {
            ExtractError::malformed("PDF", format!("its encryption is not readable ({error:?})"))
        }
        LoadPdfError::Invalid => ExtractError::malformed("PDF", "it has no readable page tree"),
    }
}

/// The stack size of threads that read pages: that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// Reads the pages in `threads` threads, each of which reads consecutive pages.
fn read_pages(
    pages: &[Page<'_>],
    limits: &Limits,
    threads: usize,
) -> Result<TextDevice, ExtractError> {
    let mut parts = pages.chunks(pages.len().div_ceil(threads).max(1));
    let first = parts.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let spawn = |part| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, move || interpret_pages(part, limits))
        };
        let others: Vec<_> = parts.map(|part| (part, spawn(part))).collect();
        let mut reader = interpret_pages(first, limits)?;
        for (part, thread) in others {
            let read = match thread {
                // A panic is converted by the caller.
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The thread could not be created, because of limits on threads or memory.
                Err(_) => interpret_pages(part, limits),
            };
            let next = read?;
            reader.has_images |= next.has_images;
            if !reader.layout.is_full() {
                reader.layout.append_pages(next.layout);
            }
        }
        Ok(reader)
    })
}

fn interpret_pages(pages: &[Page<'_>], limits: &Limits) -> Result<TextDevice, ExtractError> {
    let cache = InterpreterCache::new();
    let settings = InterpreterSettings {
        render_content: RenderContent::PAGE,
        ..Default::default()
    };
    let mut reader = TextDevice::new(limits.text_bytes_max);
    for page in pages {
        limits.check_deadline()?;
        let bounds = Rect::new(0.0, 0.0, 1.0, 1.0);
        let mut context = Context::new(
            Affine::IDENTITY,
            bounds,
            &cache,
            page.xref(),
            settings.clone(),
        );
        interpret_page(page, &mut context, &mut reader);
        reader.end_page();
        if reader.layout.is_full() {
            break;
        }
    }
    Ok(reader)
}

fn build_metadata(metadata: &Metadata, page_count: usize) -> DocumentMetadata {
    let mut keywords = Vec::new();
    if let Some(text) = decode_property(metadata.keywords.as_deref()) {
        append_keywords(&mut keywords, &text);
    }
    DocumentMetadata {
        author: decode_property(metadata.author.as_deref()),
        subject: decode_property(metadata.subject.as_deref()),
        keywords,
        date_ms: metadata.creation_date.as_ref().map(to_unix_ms),
        pages: u32::try_from(page_count).ok(),
        ..DocumentMetadata::default()
    }
}

fn decode_property(bytes: Option<&[u8]>) -> Option<String> {
    clean_property(&decode_text_string(bytes?)?)
}

/// Decodes a text string: UTF-16 or UTF-8 with a byte order mark, or else PDFDocEncoding, which
/// Windows-1252 approximates. The text is too short for the encoding detector.
fn decode_text_string(bytes: &[u8]) -> Option<String> {
    let marked = encoding_rs::Encoding::for_bom(bytes).is_some();
    let declared = (!marked).then_some(encoding_rs::WINDOWS_1252);
    let decoded = encoding::decode_with(bytes, declared, TEXT_STRING_BYTES_MAX);
    let text = decoded.text.trim().replace('\r', "\n");
    (!text.is_empty()).then_some(text)
}

fn to_unix_ms(date: &DateTime) -> i64 {
    let hours = i64::from(date.utc_offset_hour);
    let minutes = i64::from(date.utc_offset_minute) * if hours < 0 { -1 } else { 1 };
    let time = CalendarTime {
        year: date.year.into(),
        month: date.month.into(),
        day: date.day.into(),
        hour: date.hour.into(),
        minute: date.minute.into(),
        second: date.second.into(),
        offset_minutes: hours * 60 + minutes,
    };
    time.to_unix_ms()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{build_pdf, build_pdf_with, extract_outputs};
    use crate::output::Output;

    fn read(bytes: &[u8], limits: &Limits) -> Result<ExtractedDocument, ExtractError> {
        let mut documents = Vec::new();
        crate::extract("", bytes, limits, &mut |output| {
            if let Output::Document(document) = output {
                documents.push(*document);
            }
        })?;
        Ok(documents.remove(0))
    }

    fn document(info: &str, pages: &[&str]) -> ExtractedDocument {
        read(&build_pdf(info, pages), &Limits::default()).unwrap()
    }

    #[test]
    fn words_and_lines_are_reconstructed() {
        let cases = [
            ("BT /F 12 Tf 50 700 Td (Hello world) Tj ET", "Hello world"),
            (
                "BT /F 12 Tf 50 700 Td [(Hel) 20 (lo) -400 (world)] TJ ET",
                "Hello world",
            ),
            (
                "BT /F 12 Tf 50 700 Td (one) Tj 0 -14 Td (two) Tj ET",
                "one\ntwo",
            ),
            (
                "BT /F 12 Tf 50 700 Td (exam-) Tj 0 -14 Td (ple) Tj ET",
                "exam\u{ad}ple",
            ),
            ("BT /F 12 Tf 50 700 Td (A-) Tj 0 -14 Td (Z) Tj ET", "A-\nZ"),
            (
                "BT /F 12 Tf 50 700 Td (x) Tj 6 4 Td /F 8 Tf (2) Tj ET",
                "x2",
            ),
            (
                "BT /F 12 Tf 0 1 -1 0 50 100 Tm (turned text) Tj ET",
                "turned text",
            ),
            ("BT /F 12 Tf 2 Tr 50 700 Td (once) Tj ET", "once"),
            ("BT /F 12 Tf 50 700 Td (caf\\351) Tj ET", "café"),
        ];
        for (content, expected) in cases {
            assert_eq!(document("<< >>", &[content]).text, expected, "{content}");
        }
    }

    /// TeX draws accents as glyphs of their own, before the letter and above it.
    #[test]
    fn drawn_accents_are_combined() {
        let check = |drawn: &str, expected: &str| {
            let content = format!("BT /F 10 Tf 50 700 Td {drawn} ET");
            assert_eq!(document("<< >>", &[&content]).text, expected, "{drawn}");
        };
        // In thousandths: z is 500 wide, the accents 333, and a is 556.
        check("[(z) -111 (\\250) 444 (ahler)] TJ", "zähler");
        check("[(z) -111 (\\250) 444 (ahler) 300 (x)] TJ", "zählerx");
        check("[(caf) (e) 444 (\\264) -111 (s)] TJ", "cafés");
        check("[(a) -400 (\\250) 444 (ahler)] TJ", "a ähler");
        check("(a\\250 b) Tj", "a¨ b");
        check("(\\250) Tj", "¨");
        check("[(\\250) -1000 (x)] TJ", "¨ x");
        check("[(`) 444 (a)] TJ", "à");
        check("(`a` ~b) Tj", "`a` ~b");
    }

    /// A search for a Hebrew or Arabic word found only documents whose letters are drawn from right
    /// to left, with drawn spaces.
    #[test]
    fn words_from_right_to_left_are_in_reading_order() {
        // The font has letters of Hebrew instead of capitals: A is א, and B is ב.
        let map = "/CIDInit begincmap 1 begincodespacerange <00> <FF> endcodespacerange \
            2 beginbfrange <20> <40> <0020> <41> <5A> <05D0> endbfrange \
            1 beginbfrange <61> <7A> <0061> endbfrange endcmap";
        let map = format!("<< /Length {} >>\nstream\n{map}\nendstream", map.len());
        let check = |drawn: &str, expected: &str| {
            let content = format!("BT /F 10 Tf 50 700 Td {drawn} ET");
            let file = build_pdf_with("<< >>", &[&content], "", "", std::slice::from_ref(&map));
            let file = String::from_utf8(file).unwrap();
            let file = file.replace(
                "/WinAnsiEncoding >>",
                "/WinAnsiEncoding /ToUnicode 7 0 R >>",
            );
            let found = read(file.as_bytes(), &Limits::default()).unwrap();
            assert_eq!(found.text, expected, "{drawn}");
        };
        check("(CBA word) Tj", "אבג word");
        check("[(FED) -400 (CBA)] TJ", "אבג דהו");
        check(
            "(FED CBA) Tj 0 -14 Td (word 12 CB) Tj",
            "אבג דהו\nword 12 בג",
        );
        // A is 667 wide, the others 667 or 722.
        let letter = |letter: char, x: u32| format!("1 0 0 1 {x} 700 Tm ({letter}) Tj ");
        let word = |letters: [char; 3], x: u32| {
            let places = letters.into_iter().zip([x, x - 7, x - 14]);
            places.map(|(it, x)| letter(it, x)).collect::<String>()
        };
        let words = word(['A', 'B', 'A'], 300) + &word(['B', 'A', 'B'], 275);
        check(&words, "אבא באב");
    }

    /// Among them are pages without text, with spaces only, and with a hyphen at their end.
    #[test]
    fn threads_read_what_one_reads() {
        let text = |word: &str| format!("BT /F 12 Tf 50 700 Td ({word}) Tj ET");
        let words = [
            "", "one", "", " ", "two ", " three", "exam-", "ple", "", "end", "", "",
        ];
        let pages = words.map(text);
        let bytes = build_pdf("<< >>", &pages.each_ref().map(String::as_str));
        let pdf = Pdf::new(Arc::new(bytes)).unwrap();
        let read = |bytes_max, threads| {
            let limits = Limits {
                text_bytes_max: bytes_max,
                ..Limits::default()
            };
            let document = super::read(&pdf, &limits, threads).unwrap().document;
            (document.text, document.truncated)
        };
        let (whole, is_cut) = read(1_000, 1);
        let expected = "_one\n___two\n_three\n_exam-\n_ple\n__end".replace('_', "\u{c}");
        assert_eq!((&whole, is_cut), (&expected, false));
        for threads in 2..16 {
            assert_eq!(read(1_000, threads), (whole.clone(), false), "{threads}");
            assert!(read(9, threads).1);
            assert_eq!(read(9, threads), read(9, 1), "{threads}");
        }
    }

    #[test]
    fn fields_notes_and_attachments_are_read() {
        let page = "BT /F 12 Tf 50 700 Td (page) Tj ET";
        let form = "/AcroForm << /Fields [<< /T (name) /V (Ada) >> << /T (group) /Kids [<< /T (part) /V /Yes >> << /V /Off >>] >>] >> \
            /Names << /EmbeddedFiles << /Names [(n) << /UF (note.txt) /EF << /F 7 0 R >> >>] >> >>";
        let notes = "/Annots [<< /Subtype /Text /Contents (A note) >> << /Subtype /Widget /Contents (no) >> \
            << /Subtype /Link /Contents (A note) >>]";
        let file = "<< /Length 5 >>\nstream\nwords\nendstream";
        let bytes = build_pdf_with(
            "<< /Keywords (one; two) >>",
            &[page],
            form,
            notes,
            &[file.into()],
        );
        let (outputs, counts) = extract_outputs("a.pdf", &bytes);
        assert_eq!(counts.unwrap().documents, 2);
        let documents: Vec<_> = outputs
            .into_iter()
            .filter_map(|output| match output {
                Output::Document(document) => Some(document),
                Output::Failure(failure) => panic!("{failure:?}"),
                Output::Skipped(_) => None,
            })
            .collect();
        assert_eq!(documents[0].text, "page\nname: Ada\npart: Yes\nA note");
        assert_eq!(documents[0].metadata.keywords, ["one", "two"]);
        assert_eq!(documents[1].inner_path.as_deref(), Some("!/note.txt"));
        assert_eq!(documents[1].text, "words");
    }

    #[test]
    fn pages_that_are_pictures_are_reported() {
        let picture = "BI /W 1 /H 1 /BPC 8 /CS /G ID x EI";
        let (outputs, counts) =
            extract_outputs("a.pdf", &build_pdf("<< /Title (Scan) >>", &[picture]));
        assert_eq!(counts, Err(ExtractError::NoText("PDF")));
        assert_eq!(outputs.len(), 1);
        assert_eq!(
            ExtractError::NoText("PDF").to_string(),
            "the PDF has no text, its pages are pictures"
        );
        assert_eq!(document("<< >>", &["0 0 9 9 re f"]).text, "");
    }

    #[test]
    fn metadata_and_pages_are_read() {
        let info =
            "<< /Title (A title) /Author <FEFF00C9> /CreationDate (D:20240102030405+01'00') >>";
        let text = |word: &str| format!("BT /F 12 Tf 50 700 Td ({word}) Tj ET");
        let found = document(info, &[&text("first"), &text("second")]);
        assert_eq!(found.text, "first\n\u{c}second");
        assert_eq!(found.title.as_deref(), Some("A title"));
        assert_eq!(found.metadata.author.as_deref(), Some("É"));
        assert_eq!(found.metadata.date_ms, Some(1_704_161_045_000));
        assert_eq!(
            (found.metadata.pages, found.kind),
            (Some(2), DocumentKind::Pdf)
        );
    }

    #[test]
    fn bitmap_fonts_without_glyph_names_are_read() {
        let drawing = "BT /F 12 Tf 50 700 Td (e\\016cient) Tj 60 0 Td (TeX) Tj ET";
        let text = String::from_utf8(build_pdf("<< >>", &[drawing])).unwrap();
        let names: Vec<String> = (0..128).map(|code| format!("/a{code}")).collect();
        let font = format!(
            "/Type3 /FontMatrix [0.01 0 0 0.01 0 0] /FontBBox [0 0 50 50] /FirstChar 0 \
             /LastChar 127 /Widths [{}] /CharProcs << >> /Encoding << /Differences [0 {}] >> >>",
            "50 ".repeat(128),
            names.concat(),
        );
        let helvetica = "/Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
        let bitmap = text.replace(helvetica, &font).into_bytes();
        assert_eq!(
            read(&bitmap, &Limits::default()).unwrap().text,
            "efficient TeX"
        );
    }

    #[test]
    fn a_self_referencing_form_terminates() {
        let mut bytes = build_pdf("<< >>", &["BT /F 12 Tf 50 700 Td (x) Tj ET /X Do"]);
        let text = String::from_utf8(bytes.clone()).unwrap();
        let looping = text.replace("/F 3 0 R >>", "/F 3 0 R >> /XObject << /X 6 0 R >>");
        let form = looping.replace(
            "<< /Length",
            "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length",
        );
        bytes = form.into_bytes();
        assert!(read(&bytes, &Limits::default()).unwrap().text.contains('x'));
    }

    #[test]
    fn limits_cut_pages_and_text() {
        let page = "BT /F 12 Tf 50 700 Td (word) Tj ET";
        let bytes = build_pdf("<< >>", &[page, page, page]);
        let few = Limits {
            pages_max: 1,
            ..Limits::default()
        };
        let cut = read(&bytes, &few).unwrap();
        assert_eq!((cut.text.as_str(), cut.truncated), ("word", true));
        assert_eq!(
            read(b"%PDF-1.4 nothing", &few).map_err(|e| e.code()),
            Err("malformed")
        );
    }
}
