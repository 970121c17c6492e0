//! Positions of glyphs to words and lines.
//!
//! A PDF has no words, only glyphs at places. Each glyph has a direction of writing; seen along it,
//! a gap is a space, and a step across it is a new line. So turned and vertical text reads well,
//! and columns come in the order in which the page draws them, which is almost always theirs.

use crate::encoding::truncate;

/// A gap this wide, in sizes of the glyphs, is a space.
const SPACE: f64 = 0.15;
/// A step this far across the direction of writing, in sizes, is a new line; less is a superscript.
const NEW_LINE: f64 = 0.5;
/// A step back this far, in sizes, is a new line even at the same height.
const STEP_BACK: f64 = 2.0;

/// Where a glyph stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlyphBox {
    origin: (f64, f64),
    /// The unit vector in which the text goes on.
    direction: (f64, f64),
    advance: f64,
    size: f64,
}

impl GlyphBox {
    /// `place` maps the glyph's space, of 1,000 units to its size, to the page; `advance` is in that
    /// space.
    pub(crate) fn new(place: [f64; 6], advance: f64, vertical: bool) -> Self {
        let [a, b, c, d, x, y] = place;
        let (width, height) = (a.hypot(b), c.hypot(d));
        let size = height * 1000.0;
        let along = if vertical {
            (-c / height, -d / height)
        } else {
            (a / width, b / width)
        };
        let advance = if vertical { size } else { advance * width };
        GlyphBox {
            origin: (x, y),
            direction: along,
            advance,
            size,
        }
    }

    fn end(&self) -> (f64, f64) {
        let (dx, dy) = self.direction;
        (
            self.origin.0 + dx * self.advance,
            self.origin.1 + dy * self.advance,
        )
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Gap {
    Nothing,
    Space,
    Line,
    Page,
}

/// The text of the pages so far.
pub(crate) struct Layout {
    text: String,
    last: Option<GlyphBox>,
    gap: Gap,
    bytes_max: usize,
    truncated: bool,
}

impl Layout {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Layout {
            text: String::new(),
            last: None,
            gap: Gap::Nothing,
            bytes_max,
            truncated: false,
        }
    }

    /// The next characters belong to this glyph.
    pub(crate) fn glyph(&mut self, glyph: GlyphBox) {
        if let Some(last) = self.last.replace(glyph) {
            self.gap = gap(&last, &glyph);
        }
    }

    pub(crate) fn character(&mut self, character: char) {
        if self.truncated || matches!(character, '\u{ad}' | '\0') {
            return;
        }
        if character.is_whitespace() {
            // A drawn space counts as one even if the next glyph stands close to it.
            self.close_gap(' ');
            if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
                self.text.push(' ');
            }
            return;
        }
        self.close_gap(character);
        match ligature(character) {
            Some(letters) => self.text.push_str(letters),
            None => self.text.push(character),
        }
        self.truncated = truncate(&mut self.text, self.bytes_max);
    }

    pub(crate) fn end_page(&mut self) {
        self.last = None;
        self.gap = Gap::Page;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.truncated
    }

    /// The text, and whether it was cut.
    pub(crate) fn finish(mut self) -> (String, bool) {
        self.text.truncate(self.text.trim_end().len());
        (self.text, self.truncated)
    }

    fn close_gap(&mut self, next: char) {
        let gap = std::mem::replace(&mut self.gap, Gap::Nothing);
        if gap == Gap::Nothing || self.text.is_empty() {
            return;
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        match gap {
            Gap::Line if next.is_lowercase() && hyphenated(&self.text) => {
                self.text.pop();
            }
            Gap::Nothing => {}
            Gap::Space => self.text.push(' '),
            Gap::Line => self.text.push('\n'),
            Gap::Page => self.text.push_str("\n\n"),
        }
    }
}

/// What stands between two glyphs.
fn gap(last: &GlyphBox, next: &GlyphBox) -> Gap {
    let size = last.size.max(next.size);
    let end = last.end();
    let step = (next.origin.0 - end.0, next.origin.1 - end.1);
    let (dx, dy) = last.direction;
    let along = step.0 * dx + step.1 * dy;
    let across = (step.0 * dy - step.1 * dx).abs();
    let turned = dx * next.direction.0 + dy * next.direction.1 < 0.9;
    if turned || across > size * NEW_LINE || along < -size * STEP_BACK {
        Gap::Line
    } else if along > size * SPACE {
        Gap::Space
    } else {
        Gap::Nothing
    }
}

/// A word that the end of the line broke: a lower-case letter and a hyphen.
fn hyphenated(text: &str) -> bool {
    let mut back = text.chars().rev();
    matches!(back.next(), Some('-' | '\u{2010}')) && back.next().is_some_and(char::is_lowercase)
}

/// Letters that a font joins are searched for apart.
fn ligature(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}
