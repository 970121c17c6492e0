//! Builds text from fragments: collapses white space and separates blocks.

use crate::encoding::truncate;

/// A text under construction, limited in length.
pub(crate) struct Flow {
    text: String,
    gap: Gap,
    bytes_max: usize,
    truncated: bool,
}

/// The separator before the next word. Of several requested separators the largest is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gap {
    Nothing,
    Space,
    Line,
    Paragraph,
}

impl Flow {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Flow {
            text: String::new(),
            gap: Gap::Nothing,
            bytes_max,
            truncated: false,
        }
    }

    /// Requests at least this separator before the next word.
    pub(crate) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Appends text with its white space collapsed.
    pub(crate) fn words(&mut self, text: &str) {
        let is_space = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
        if is_space(text.as_bytes().first()) {
            self.gap(Gap::Space);
        }
        for word in text.split_ascii_whitespace() {
            self.push(word);
            self.gap = Gap::Space;
        }
        if !is_space(text.as_bytes().last()) && !text.is_empty() {
            self.gap = Gap::Nothing;
        }
    }

    /// Appends text unchanged.
    pub(crate) fn verbatim(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(text);
        }
    }

    /// Returns `true` if the length limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.truncated
    }

    /// Returns the text and whether it was cut.
    pub(crate) fn finish(mut self) -> (String, bool) {
        self.text.truncate(self.text.trim_end().len());
        (self.text, self.truncated)
    }

    fn push(&mut self, piece: &str) {
        if self.truncated {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(match self.gap {
                Gap::Nothing => "",
                Gap::Space => " ",
                Gap::Line => "\n",
                Gap::Paragraph => "\n\n",
            });
        }
        self.gap = Gap::Nothing;
        self.text.push_str(piece);
        self.truncated = truncate(&mut self.text, self.bytes_max);
    }
}
