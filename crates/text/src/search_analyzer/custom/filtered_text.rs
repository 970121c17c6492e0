//! A text that character filters have changed, with its offsets in the original.

use std::borrow::Cow;
use std::ops::Range;

/// A text that character filters have changed.
#[derive(Debug)]
pub struct FilteredText<'t> {
    text: Cow<'t, str>,
    /// The changes of each filter.
    changes: Vec<Vec<OffsetPair>>,
}

/// An offset in a changed text, and the same one in the text before. Each replacement has two: its
/// start and its end. Behind that both texts are equal up to the next replacement.
#[derive(Clone, Copy, Debug)]
struct OffsetPair {
    after: usize,
    before: usize,
}

/// Collects the changes of a filter, in order.
pub struct Rewrite<'t> {
    source: &'t str,
    /// The end of what has been copied of the source.
    copied: usize,
    text: String,
    offsets: Vec<OffsetPair>,
}

impl<'t> FilteredText<'t> {
    pub fn new(text: &'t str) -> FilteredText<'t> {
        FilteredText {
            text: Cow::Borrowed(text),
            changes: Vec::new(),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Changes the text.
    pub fn rewrite(&mut self, filter: impl FnOnce(&str, &mut Rewrite<'_>)) {
        let mut rewrite = Rewrite {
            source: &self.text,
            copied: 0,
            text: String::new(),
            offsets: Vec::new(),
        };
        filter(&self.text, &mut rewrite);
        if rewrite.offsets.is_empty() {
            return;
        }
        rewrite.copy_up_to(self.text.len());
        let Rewrite { text, offsets, .. } = rewrite;
        self.text = Cow::Owned(text);
        self.changes.push(offsets);
    }

    /// Returns the range of the original text that a range of this text comes from.
    pub fn original_range(&self, range: Range<usize>) -> Range<usize> {
        let (mut start, mut end) = (range.start, range.end);
        for offsets in self.changes.iter().rev() {
            start = before(offsets, start);
            // The end belongs to the last byte of the range.
            end = if range.is_empty() {
                start
            } else {
                end_before(offsets, end)
            };
        }
        start..end.max(start)
    }
}

/// Returns the offset in the text before a change. Inside a replacement this is the start of what
/// was replaced.
fn before(offsets: &[OffsetPair], after: usize) -> usize {
    let next = offsets.partition_point(|pair| pair.after <= after);
    let Some((at, pair)) = next
        .checked_sub(1)
        .and_then(|at| Some((at, offsets.get(at)?)))
    else {
        return after;
    };
    if is_replacement(at) {
        pair.before
    } else {
        pair.before + (after - pair.after)
    }
}

/// Returns the end in the text before a change of a range that ends at `after`. Inside a
/// replacement and at its end this is the end of what was replaced.
fn end_before(offsets: &[OffsetPair], after: usize) -> usize {
    let next = offsets.partition_point(|pair| pair.after < after);
    let in_replacement = next.checked_sub(1).is_some_and(is_replacement);
    match offsets.get(next) {
        Some(pair) if in_replacement || pair.after == after => pair.before,
        _ => before(offsets, after),
    }
}

/// Returns `true` if a replacement begins at the pair with this number. It ends at the next one.
fn is_replacement(number: usize) -> bool {
    number.is_multiple_of(2)
}

impl Rewrite<'_> {
    /// Replaces a range of the source, which is behind those before.
    pub fn replace(&mut self, range: Range<usize>, replacement: &str) {
        self.copy_up_to(range.start);
        self.offsets.push(OffsetPair {
            after: self.text.len(),
            before: range.start,
        });
        self.text.push_str(replacement);
        self.offsets.push(OffsetPair {
            after: self.text.len(),
            before: range.end,
        });
        self.copied = range.end;
    }

    fn copy_up_to(&mut self, end: usize) {
        let rest = self.source.get(self.copied..end).unwrap_or_default();
        self.text.push_str(rest);
        self.copied = end;
    }
}
