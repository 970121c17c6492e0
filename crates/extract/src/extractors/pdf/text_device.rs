//! A drawing device that records glyphs.

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro_interpret::kurbo::{BezPath, Rect, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask,
};

use super::layout::{GlyphBox, TextLayout};

/// A drawing device that records glyphs and ignores everything else.
pub(super) struct TextDevice {
    pub(super) layout: TextLayout,
    /// The page contains a picture.
    pub(super) has_images: bool,
    last_run: Option<RunPosition>,
}

/// The position and length of a glyph run.
#[derive(PartialEq)]
struct RunPosition {
    origin: Vec2,
    glyph_count: usize,
}

impl TextDevice {
    pub(super) fn new(bytes_max: usize) -> Self {
        TextDevice {
            layout: TextLayout::new(bytes_max),
            has_images: false,
            last_run: None,
        }
    }

    /// Ends the page. Duplicate glyphs are detected only within a page.
    pub(super) fn end_page(&mut self) {
        self.last_run = None;
        self.layout.end_page();
    }

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

impl<'a> Device<'a> for TextDevice {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _mode: &DrawMode) {
        let Some(first) = run.glyphs().first() else {
            return;
        };
        let position = RunPosition {
            origin: (props.transform * first.transform()).translation(),
            glyph_count: run.glyphs().len(),
        };
        // Text that is filled and stroked, or artificially emboldened, is drawn twice at the same
        // position.
        if self.last_run.as_ref() == Some(&position) {
            return;
        }
        self.last_run = Some(position);
        let vertical = run.writing_mode() != WritingMode::Horizontal;
        for glyph in run.glyphs() {
            let transform = props.transform * glyph.transform();
            let advance = measure_advance(glyph);
            let mut position = GlyphBox::new(transform, advance, vertical);
            if let Glyph::Type3(drawn) = &**glyph {
                let em = advance / typical_width(drawn.char_code());
                position.enlarge(em / 1000.0);
            }
            self.layout.place_glyph(position);
            self.push_characters(glyph);
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn draw_rect(&mut self, _: &Rect, _: DrawProps<'a>, _: &DrawMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {
        self.has_images = true;
    }
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_clip_rect(&mut self, _: &Rect) {}
    fn pop_clip(&mut self) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn pop_transparency_group(&mut self) {}
}

/// Returns the character of a glyph in a bitmap font without glyph names, as created by TeX. Most
/// codes are ASCII, with ligatures and accents instead of control characters. Fonts in the Cork
/// encoding have Latin letters in the upper half. Ligatures are returned as Unicode ligatures,
/// which the layout splits.
fn decode_bitmap_font_code(code: u32) -> Option<char> {
    Some(match code {
        0x0b | 0x1b => '\u{fb00}',
        0x0c | 0x1c => '\u{fb01}',
        0x0d | 0x1d => '\u{fb02}',
        0x0e | 0x1e => '\u{fb03}',
        0x0f | 0x1f => '\u{fb04}',
        0x10 => 'ı',
        0x12 => '\u{2cb}',
        0x13 => '\u{b4}',
        0x14 => '\u{2c7}',
        0x15 => '\u{2d8}',
        0x16 => '\u{af}',
        0x17 => '\u{2da}',
        0x18 => '\u{b8}',
        0x19 => 'ß',
        0x7f => '\u{a8}',
        0xd7 => 'Œ',
        0xf7 => 'œ',
        0xff => 'ß',
        0x21..=0x7e | 0xc0..=0xfe => return char::from_u32(code),
        _ => return None,
    })
}

/// Returns the width of a glyph in thousandths of its size.
fn measure_advance(glyph: &Glyph<'_>) -> f64 {
    let width = match glyph {
        Glyph::Outline(glyph) => glyph.advance_width(),
        Glyph::Type3(glyph) => glyph.advance_width(),
    };
    width.map_or(0.0, f64::from)
}

/// Returns the typical width of a character, as a fraction of the font size.
fn typical_width(code: u32) -> f64 {
    match char::from_u32(code) {
        Some('i' | 'j' | 'l' | '.' | ',' | '\'' | ':' | ';' | '!' | '|' | 'I') => 0.28,
        Some('f' | 't' | 'r' | '(' | ')' | '-' | '[' | ']' | 's') => 0.4,
        Some('m' | 'w' | 'M' | 'W') => 0.85,
        Some(letter) if letter.is_ascii_uppercase() => 0.7,
        _ => 0.5,
    }
}
