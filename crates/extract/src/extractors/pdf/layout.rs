//! Reconstructs words and lines from the positions of glyphs.
//!
//! A PDF page consists of glyphs at positions, not of words. Each glyph has a writing direction. A
//! distance along this direction is a space, a distance across it a new line. This works for
//! rotated and vertical text. Columns are emitted in the order in which the page draws them, which
//! is almost always the reading order.

use hayro_interpret::kurbo::{Affine, Vec2};

use super::direction::{DrawingOrder, is_right_to_left, is_vowel_sign};
use crate::accents::{add_accent, combining_mark, typed_accent};
use crate::encoding::{BoundedText, truncate};
use crate::hyphenation::join_divided_words;

/// A distance of this many glyph sizes along the line is a space.
const SPACE_MIN: f64 = 0.15;
/// A distance of this many glyph sizes across the line is a new line. Smaller ones are
/// superscripts.
const LINE_STEP_MIN: f64 = 0.5;
/// A glyph that is this many times larger than its size has another size.
const CREDIBLE_SIZE_MAX: f64 = 3.0;
/// A step back of this many glyph sizes is a new line, even at the same height.
const BACK_STEP_MIN: f64 = 2.0;

/// The position of a glyph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlyphBox {
    origin: Vec2,
    /// The writing direction as a unit vector.
    direction: Vec2,
    /// The width of the glyph along the direction.
    advance: f64,
    size: f64,
}

impl GlyphBox {
    /// `transform` is the affine transformation from glyph space (1,000 units per glyph size) to
    /// the page. `advance` is the glyph's width in glyph space.
    pub(crate) fn new(transform: Affine, advance: f64, vertical: bool) -> Self {
        let [a, b, c, d, x, y] = transform.as_coeffs();
        let (along, upward) = (Vec2::new(a, b), Vec2::new(c, d));
        let (width, height) = (along.hypot(), upward.hypot());
        let size = height * 1000.0;
        let (direction, advance) = if vertical {
            (-upward / height, size)
        } else {
            (along / width, advance * width)
        };
        GlyphBox {
            origin: Vec2::new(x, y),
            direction,
            advance,
            size,
        }
    }

    /// Corrects the size of a glyph of a bitmap font, whose nominal size can be a fraction of the
    /// size of its glyphs. `factor` is the ratio of height to width, in nominal sizes.
    pub(crate) fn enlarge(&mut self, factor: f64) {
        if factor > CREDIBLE_SIZE_MAX {
            self.size *= factor;
        }
    }

    fn end(&self) -> Vec2 {
        self.origin + self.direction * self.advance
    }

    /// Returns `true` if this glyph is right of another one, seen along the line.
    fn is_after(&self, other: &GlyphBox) -> bool {
        (self.origin - other.origin).dot(self.direction) > 0.0
    }

    /// Returns `true` if the middle of the accent is above this glyph.
    fn is_below(&self, accent: &GlyphBox) -> bool {
        let middle = accent.origin + accent.direction * (accent.advance / 2.0);
        let offset = middle - self.origin;
        let along = offset.dot(self.direction);
        let across = offset.cross(self.direction).abs();
        (0.0..=self.advance).contains(&along) && across < self.size * LINE_STEP_MIN
    }
}

#[derive(Clone, Copy, PartialEq)]
enum GlyphGap {
    Nothing,
    Space,
    Line,
    Page,
}

/// The text of the pages so far.
pub(crate) struct TextLayout {
    text: String,
    last_glyph: Option<GlyphBox>,
    /// The glyph before the last one.
    previous_glyph: Option<GlyphBox>,
    gap: GlyphGap,
    /// The last glyph is left of the glyph before it, seen along the line.
    is_backward: bool,
    /// The position of the current line in the text.
    line_start: usize,
    drawing_order: DrawingOrder,
    /// The last glyph if it is an accent that may belong to the next letter.
    accent: Option<Accent>,
    /// Ended pages since the last character.
    ended_pages: usize,
    bytes_max: usize,
    truncated: bool,
}

/// An accent that is drawn as a glyph of its own.
struct Accent {
    character: char,
    mark: char,
    position: GlyphBox,
    /// The preceding glyph, and the distance to it.
    before: Option<GlyphBox>,
    gap: GlyphGap,
    /// The next glyph is below it.
    is_above_next: bool,
}

impl TextLayout {
    pub(crate) fn new(bytes_max: usize) -> Self {
        TextLayout {
            text: String::new(),
            last_glyph: None,
            previous_glyph: None,
            gap: GlyphGap::Nothing,
            is_backward: false,
            line_start: 0,
            drawing_order: DrawingOrder::default(),
            accent: None,
            ended_pages: 0,
            bytes_max,
            truncated: false,
        }
    }

    /// Sets the position of the following characters.
    pub(crate) fn place_glyph(&mut self, glyph: GlyphBox) {
        if let Some(accent) = &mut self.accent {
            if glyph.is_below(&accent.position) {
                // The letter replaces the accent.
                accent.is_above_next = true;
                self.last_glyph = Some(glyph);
                self.gap = match accent.before {
                    Some(before) => measure_gap(&before, &glyph, false),
                    None => accent.gap,
                };
                return;
            }
            self.flush_accent();
        }
        self.previous_glyph = self.last_glyph.replace(glyph);
        if let Some(last) = self.previous_glyph
            && self.gap != GlyphGap::Page
        {
            self.is_backward = last.is_after(&glyph);
            let is_reversed = self.is_backward
                && (self.drawing_order.is_backward() || self.text.ends_with(is_right_to_left));
            self.gap = measure_gap(&last, &glyph, is_reversed);
        }
    }

    /// Appends a character of the glyph that was placed last.
    pub(crate) fn push_character(&mut self, character: char) {
        if self.truncated || character == '\0' {
            return;
        }
        if let Some(accent) = self.accent.take() {
            if accent.is_above_next && character.is_alphabetic() {
                let combined = add_accent(character, accent.mark);
                combined.chars().for_each(|it| self.append(it));
                return;
            }
            self.accent = Some(accent);
            self.flush_accent();
        }
        match find_mark(character).zip(self.last_glyph) {
            Some((mark, position)) => self.push_accent(character, mark, position),
            None => self.append(character),
        }
    }

    /// Adds an accent to the preceding letter, or keeps it for the next one.
    fn push_accent(&mut self, character: char, mark: char, position: GlyphBox) {
        let before = self.previous_glyph;
        let letter = self
            .text
            .chars()
            .next_back()
            .filter(|it| it.is_alphabetic());
        if let (Some(below), Some(letter)) = (before.filter(|it| it.is_below(&position)), letter) {
            self.text.pop();
            self.text.push_str(&add_accent(letter, mark));
            self.last_glyph = Some(below);
            self.gap = GlyphGap::Nothing;
            return;
        }
        self.accent = Some(Accent {
            character,
            mark,
            position,
            before,
            gap: self.gap,
            is_above_next: false,
        });
    }

    fn flush_accent(&mut self) {
        if let Some(accent) = self.accent.take() {
            self.gap = accent.gap;
            self.append(accent.character);
        }
    }

    fn append(&mut self, character: char) {
        if character.is_whitespace() {
            // Pages begin without white space.
            if self.gap == GlyphGap::Page {
                return;
            }
            // A drawn space always separates words, however close the next glyph is.
            self.close_gap();
            if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
                self.text.push(' ');
            }
            return;
        }
        if is_right_to_left(character) {
            self.append_right_to_left(character);
            return;
        }
        self.close_gap();
        match split_ligature(character) {
            Some(letters) => self.text.push_str(letters),
            None => self.text.push(character),
        }
        self.truncated = truncate(&mut self.text, self.bytes_max);
    }

    /// Appends a character of a script that is written from right to left.
    fn append_right_to_left(&mut self, character: char) {
        if is_vowel_sign(character) && self.previous_glyph.is_some() {
            // The next letter is placed beside the last one, and not beside the sign.
            self.last_glyph = self.previous_glyph;
            self.gap = GlyphGap::Nothing;
        } else {
            let last = self.text.chars().next_back();
            let last = last.filter(|_| matches!(self.gap, GlyphGap::Nothing | GlyphGap::Space));
            self.close_gap();
            self.drawing_order.add_step(last, self.is_backward);
        }
        self.text.push(character);
        self.truncated = truncate(&mut self.text, self.bytes_max);
    }

    /// Brings the last line into the order of reading.
    fn end_line(&mut self) {
        let order = std::mem::take(&mut self.drawing_order);
        // A text that was cut may end before the line.
        let line = self.text.get(self.line_start..);
        if let Some(read) = line.and_then(|line| order.read_line(line)) {
            self.text.truncate(self.line_start);
            self.text.push_str(&read);
        }
        self.line_start = self.text.len();
    }

    pub(crate) fn end_page(&mut self) {
        self.flush_accent();
        self.end_line();
        self.last_glyph = None;
        self.previous_glyph = None;
        self.gap = GlyphGap::Page;
        self.ended_pages += 1;
    }

    /// Appends the text of further pages, which were read by another thread. The last page has
    /// ended.
    pub(crate) fn append_pages(&mut self, next: TextLayout) {
        let TextLayout {
            text, ended_pages, ..
        } = next;
        if text.is_empty() {
            self.ended_pages += ended_pages;
            return;
        }
        self.close_gap();
        self.text.push_str(&text);
        self.line_start = self.text.len();
        (self.gap, self.ended_pages) = (GlyphGap::Page, ended_pages);
        self.truncated = next.truncated || truncate(&mut self.text, self.bytes_max);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.truncated
    }

    /// Returns the text without trailing white space, with divided words joined. Pages are
    /// separated by form feeds, so the number of form feeds before a word determines its page.
    pub(crate) fn finish(mut self) -> BoundedText {
        self.flush_accent();
        self.end_line();
        let is_cut = truncate(&mut self.text, self.bytes_max);
        BoundedText::from_trimmed(join_divided_words(self.text), self.truncated || is_cut)
    }

    fn close_gap(&mut self) {
        let gap = std::mem::replace(&mut self.gap, GlyphGap::Nothing);
        let ended_pages = std::mem::take(&mut self.ended_pages);
        if gap == GlyphGap::Nothing || (self.text.is_empty() && ended_pages == 0) {
            return;
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        match gap {
            GlyphGap::Nothing => {}
            GlyphGap::Space => self.text.push(' '),
            GlyphGap::Line => {
                self.end_line();
                self.text.push('\n');
                self.line_start = self.text.len();
            }
            GlyphGap::Page => {
                if !self.text.is_empty() {
                    self.text.push('\n');
                }
                self.text.extend(std::iter::repeat_n('\u{c}', ended_pages));
                self.line_start = self.text.len();
            }
        }
    }
}

/// Returns the combining mark of a character that can be an accent over a letter. ASCII accents are
/// also ordinary characters.
fn find_mark(character: char) -> Option<char> {
    let typed = typed_accent(character).filter(|_| matches!(character, '`' | '^' | '~'));
    combining_mark(character).or(typed)
}

/// Returns the separator between two glyphs. `is_reversed` is `true` if they are written from right
/// to left.
fn measure_gap(last: &GlyphBox, next: &GlyphBox, is_reversed: bool) -> GlyphGap {
    let size = last.size.max(next.size);
    let step = if is_reversed {
        last.origin - next.end()
    } else {
        next.origin - last.end()
    };
    let along = step.dot(last.direction);
    let across = step.cross(last.direction).abs();
    let turned = last.direction.dot(next.direction) < 0.9;
    if turned || across > size * LINE_STEP_MIN || along < -size * BACK_STEP_MIN {
        GlyphGap::Line
    } else if along > size * SPACE_MIN {
        GlyphGap::Space
    } else {
        GlyphGap::Nothing
    }
}

/// Splits a ligature into its letters, so that searches find the word.
fn split_ligature(character: char) -> Option<&'static str> {
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
