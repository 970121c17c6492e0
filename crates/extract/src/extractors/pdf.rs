//! Extracts text from PDF. The page interpreter draws into a device that records glyphs.

mod layout;

use std::sync::Arc;

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro_interpret::hayro_syntax::metadata::Metadata;
use hayro_interpret::hayro_syntax::object::DateTime;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, BezPath, Rect, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, RenderContent, SoftMask, interpret_page,
};

use crate::encoding::{self, BoundedText};
use crate::error::ExtractError;
use crate::format::{Input, split_extension, take_prefix};
use crate::limits::Limits;
use crate::metadata_text::CalendarTime;
use crate::output::{DocumentKind, DocumentMetadata, ExtractedDocument};
use layout::{GlyphBox, TextLayout};

/// PDF readers accept other bytes before the header, up to this many.
const HEADER_BYTES_MAX: usize = 1024;
const METADATA_TEXT_BYTES_MAX: usize = 4096;

/// Returns `true` if the file has the extension of PDF, and other bytes before its header.
pub(crate) fn has_late_header(input: &Input<'_>) -> bool {
    let extension = split_extension(input.name).unwrap_or_default();
    let head = take_prefix(input.bytes, HEADER_BYTES_MAX);
    extension.eq_ignore_ascii_case("pdf") && memchr::memmem::find(head, b"%PDF-").is_some()
}

/// Extracts the text of all pages.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let pdf = Pdf::new(Arc::new(input.bytes.to_vec())).map_err(convert_load_error)?;
    let page_count = pdf.pages().len();
    if page_count == 0 {
        return Err(ExtractError::malformed("PDF", "it has no pages"));
    }
    let pages_max = limits.pages_max as usize;
    let text = extract_pages(pdf.pages().iter().take(pages_max), limits)?;
    let mut document = ExtractedDocument::new(DocumentKind::Pdf, text.text);
    document.truncated = text.truncated || page_count > pages_max;
    document.title = decode_metadata_text(pdf.metadata().title.as_deref());
    document.metadata = build_metadata(pdf.metadata(), page_count);
    Ok(document)
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

fn extract_pages<'p>(
    pages: impl Iterator<Item = &'p Page<'p>>,
    limits: &Limits,
) -> Result<BoundedText, ExtractError> {
    let cache = InterpreterCache::new();
    let settings = InterpreterSettings {
        render_content: RenderContent::PAGE,
        ..Default::default()
    };
    let mut reader = TextDevice {
        layout: TextLayout::new(limits.text_bytes_max),
        last_run: None,
    };
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
        reader.layout.end_page();
        if reader.layout.is_full() {
            break;
        }
    }
    Ok(reader.layout.finish())
}

/// A drawing device that records glyphs and ignores everything else.
struct TextDevice {
    layout: TextLayout,
    last_run: Option<RunPosition>,
}

/// The position and length of a glyph run.
#[derive(PartialEq)]
struct RunPosition {
    origin: Vec2,
    glyph_count: usize,
}

impl<'a> Device<'a> for TextDevice {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _mode: &DrawMode) {
        let Some(first) = run.glyphs().first() else {
            return;
        };
        let position = RunPosition {
            origin: (props.transform * first.transform()).translation(),
            glyph_count: run.glyphs().len(),
        };
        // Text that is filled and stroked, or emboldened artificially, is drawn twice at the same
        // position.
        if self.last_run.as_ref() == Some(&position) {
            return;
        }
        self.last_run = Some(position);
        let vertical = run.writing_mode() != WritingMode::Horizontal;
        for glyph in run.glyphs() {
            let transform = props.transform * glyph.transform();
            self.layout
                .place_glyph(GlyphBox::new(transform, measure_advance(glyph), vertical));
            self.push_characters(glyph);
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn draw_rect(&mut self, _: &Rect, _: DrawProps<'a>, _: &DrawMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_clip_rect(&mut self, _: &Rect) {}
    fn pop_clip(&mut self) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn pop_transparency_group(&mut self) {}
}

impl TextDevice {
    fn push_characters(&mut self, glyph: &Glyph<'_>) {
        match glyph.as_unicode() {
            Some(BfString::Char(c)) => self.layout.push_character(c),
            Some(BfString::String(s)) => s.chars().for_each(|c| self.layout.push_character(c)),
            None => {
                if let Glyph::Type3(drawn) = glyph {
                    let character = decode_bitmap_font_code(drawn.char_code());
                    character
                        .into_iter()
                        .for_each(|c| self.layout.push_character(c));
                }
            }
        }
    }
}

/// Returns the character of a glyph in a bitmap font without glyph names. Such fonts are made by
/// TeX. Their codes are ASCII, with ligatures among the control characters. Ligatures are returned
/// as Unicode ligatures, which the layout splits.
fn decode_bitmap_font_code(code: u32) -> Option<char> {
    match code {
        0x0b => Some('\u{fb00}'),
        0x0c => Some('\u{fb01}'),
        0x0d => Some('\u{fb02}'),
        0x0e => Some('\u{fb03}'),
        0x0f => Some('\u{fb04}'),
        0x21..=0x7e => char::from_u32(code),
        _ => None,
    }
}

/// Returns the width of a glyph in thousandths of its size.
fn measure_advance(glyph: &Glyph<'_>) -> f64 {
    let width = match glyph {
        Glyph::Outline(glyph) => glyph.advance_width(),
        Glyph::Type3(glyph) => glyph.advance_width(),
    };
    width.map_or(0.0, f64::from)
}

fn build_metadata(metadata: &Metadata, page_count: usize) -> DocumentMetadata {
    DocumentMetadata {
        author: decode_metadata_text(metadata.author.as_deref()),
        subject: decode_metadata_text(metadata.subject.as_deref()),
        date_ms: metadata.creation_date.as_ref().map(to_unix_ms),
        pages: u32::try_from(page_count).ok(),
        ..DocumentMetadata::default()
    }
}

/// Decodes a text string: UTF-16 or UTF-8 with a byte order mark, otherwise PDFDocEncoding, which
/// Windows-1252 approximates. The encoding detector would have too few bytes.
fn decode_metadata_text(bytes: Option<&[u8]>) -> Option<String> {
    let bytes = bytes?;
    let marked = encoding_rs::Encoding::for_bom(bytes).is_some();
    let declared = (!marked).then_some(encoding_rs::WINDOWS_1252);
    let decoded = encoding::decode_with(bytes, declared, METADATA_TEXT_BYTES_MAX);
    let text = decoded
        .text
        .trim_matches(|c: char| c.is_whitespace() || c == '\0')
        .to_string();
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
    use crate::fixtures::build_pdf;

    fn read(bytes: &[u8], limits: &Limits) -> Result<ExtractedDocument, ExtractError> {
        extract(&Input { name: "", bytes }, limits)
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
                "example",
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

    #[test]
    fn metadata_and_pages_are_read() {
        let info =
            "<< /Title (A title) /Author <FEFF00C9> /CreationDate (D:20240102030405+01'00') >>";
        let text = |word: &str| format!("BT /F 12 Tf 50 700 Td ({word}) Tj ET");
        let found = document(info, &[&text("first"), &text("second")]);
        assert_eq!(found.text, "first\n\nsecond");
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
