//! Renders texts with highlighted matches and classified parts of source code.

use std::fmt::Write as _;
use std::ops::Range;

use maud::{Markup, PreEscaped};

/// A range of a text with a style class, such as that of comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassedRange {
    /// The range in bytes.
    pub range: Range<usize>,
    /// The class in the style sheet.
    pub class: &'static str,
}

/// Renders a text. Matches become `mark` elements with the ids `hit-1`, `hit-2` and so on;
/// classified ranges become `span` elements. Each list is in ascending order without overlaps. All
/// text is escaped.
pub fn marked_text(text: &str, hits: &[Range<usize>], classes: &[ClassedRange]) -> Markup {
    let mut bounds: Vec<usize> = vec![0, text.len()];
    bounds.extend(hits.iter().flat_map(|hit| [hit.start, hit.end]));
    bounds.extend(classes.iter().flat_map(|it| [it.range.start, it.range.end]));
    bounds.retain(|at| text.is_char_boundary(*at));
    bounds.sort_unstable();
    bounds.dedup();
    let (mut hits, mut classes) = (
        NumberedHits::new(hits.iter().cloned()),
        classes.iter().peekable(),
    );
    let mut shown = String::with_capacity(text.len() + text.len() / 4);
    for pair in bounds.windows(2) {
        let &[start, end] = pair else { continue };
        let piece = text.get(start..end).unwrap_or_default();
        while classes.next_if(|it| it.range.end <= start).is_some() {}
        let class = classes
            .peek()
            .filter(|it| it.range.start <= start)
            .map(|it| it.class);
        let hit = hits.hit_at(start);
        // Writing to a string cannot fail.
        let _ = match (&hit, class) {
            (Some(hit), _) if hit.is_start => write!(shown, "<mark id=\"hit-{}\">", hit.number),
            (Some(_), _) => write!(shown, "<mark>"),
            (None, Some(class)) => write!(shown, "<span class=\"{class}\">"),
            (None, None) => Ok(()),
        };
        escape(piece, &mut shown);
        shown.push_str(match (&hit, class) {
            (Some(_), _) => "</mark>",
            (None, Some(_)) => "</span>",
            (None, None) => "",
        });
    }
    PreEscaped(shown)
}

/// A part of a match.
struct HitPart {
    /// The number of the match.
    number: usize,
    /// The part is the first one of the match.
    is_start: bool,
}

/// Matches with consecutive numbers, counted from 1.
struct NumberedHits<I: Iterator<Item = Range<usize>>> {
    ranges: std::iter::Peekable<I>,
    number: usize,
}

impl<I: Iterator<Item = Range<usize>>> NumberedHits<I> {
    fn new(ranges: I) -> NumberedHits<I> {
        NumberedHits {
            ranges: ranges.peekable(),
            number: 1,
        }
    }

    /// Returns the match at a position. Positions must ascend from call to call.
    fn hit_at(&mut self, position: usize) -> Option<HitPart> {
        while self.ranges.next_if(|range| range.end <= position).is_some() {
            self.number += 1;
        }
        let range = self.ranges.peek().filter(|range| range.start <= position)?;
        Some(HitPart {
            number: self.number,
            is_start: range.start == position,
        })
    }
}

/// Appends a text with HTML escapes.
pub fn escape(text: &str, into: &mut String) {
    for character in text.chars() {
        match character {
            '&' => into.push_str("&amp;"),
            '<' => into.push_str("&lt;"),
            '>' => into.push_str("&gt;"),
            '"' => into.push_str("&quot;"),
            _ => into.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_classes_are_nested_correctly() {
        let text = "// <b> cake & cake";
        let comment = ClassedRange {
            range: 0..text.len(),
            class: "c",
        };
        let shown = marked_text(text, &[7..11, 14..18], &[comment]);
        assert_eq!(
            shown.into_string(),
            "<span class=\"c\">// &lt;b&gt; </span><mark id=\"hit-1\">cake</mark>\
             <span class=\"c\"> &amp; </span><mark id=\"hit-2\">cake</mark>"
        );
        assert_eq!(marked_text("", &[], &[]).into_string(), "");
        // A range within a character is no bound.
        assert_eq!(
            marked_text("ä", std::slice::from_ref(&(1..2)), &[]).into_string(),
            "ä"
        );
        let inside = ClassedRange {
            range: 1..2,
            class: "s",
        };
        assert_eq!(
            marked_text("abc", std::slice::from_ref(&(0..3)), &[inside]).into_string(),
            "<mark id=\"hit-1\">a</mark><mark>b</mark><mark>c</mark>"
        );
    }
}
