//! Tokens on their way through the filters of an analyzer.

use std::ops::Range;

/// A token on its way through the filters.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    pub term: String,
    /// The byte range in the filtered text.
    pub range: Range<usize>,
    /// The step from the position of the token before.
    pub increment: u32,
}

impl Word {
    /// Returns the word at a range of a text, at the next position.
    pub fn at(text: &str, range: Range<usize>) -> Word {
        Word {
            term: text.get(range.clone()).unwrap_or_default().to_owned(),
            range,
            increment: 1,
        }
    }

    /// Returns the word with another term and step.
    pub fn with(&self, term: String, increment: u32) -> Word {
        Word {
            term,
            range: self.range.clone(),
            increment,
        }
    }
}

/// Returns a word without `'s` at its end.
pub fn without_possessive(term: &str) -> &str {
    let stem = term.strip_suffix(['s', 'S']);
    let stem = stem.and_then(|stem| stem.strip_suffix(['\'', '’', '＇']));
    stem.unwrap_or(term)
}
