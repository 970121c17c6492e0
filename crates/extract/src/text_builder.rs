//! Builds text from fragments: collapses white space and separates blocks.

use crate::encoding::{BoundedText, truncate};
use crate::output::{DocumentKind, ExtractedDocument};

/// A text under construction, limited in length.
pub(crate) struct TextBuilder {
    text: String,
    separator: Separator,
    bytes_max: usize,
    truncated: bool,
}

/// The separator before the next word. The largest requested separator is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Separator {
    None,
    Space,
    Tab,
    Line,
    Paragraph,
}

impl TextBuilder {
    pub(crate) fn new(bytes_max: usize) -> Self {
        TextBuilder {
            text: String::new(),
            separator: Separator::None,
            bytes_max,
            truncated: false,
        }
    }

    /// Requests at least this separator before the next word.
    pub(crate) fn separate(&mut self, separator: Separator) {
        self.separator = self.separator.max(separator);
    }

    /// Appends text with its white space collapsed.
    pub(crate) fn push_words(&mut self, text: &str) {
        let is_space = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
        if is_space(text.as_bytes().first()) {
            self.separate(Separator::Space);
        }
        for word in text.split_ascii_whitespace() {
            self.push(word);
            self.separator = Separator::Space;
        }
        if !is_space(text.as_bytes().last()) && !text.is_empty() {
            self.separator = Separator::None;
        }
    }

    /// Appends text unchanged.
    pub(crate) fn push_verbatim(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(text);
        }
    }

    /// Returns `true` if the maximum length is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.truncated
    }

    /// Returns the text without trailing white space.
    pub(crate) fn finish(self) -> BoundedText {
        BoundedText::from_trimmed(self.text, self.truncated)
    }

    /// Returns a document with the text. `is_cut` is `true` if the source was truncated.
    pub(crate) fn into_document(self, kind: DocumentKind, is_cut: bool) -> ExtractedDocument {
        let text = self.finish();
        ExtractedDocument {
            truncated: text.truncated || is_cut,
            ..ExtractedDocument::new(kind, text.text)
        }
    }

    fn push(&mut self, piece: &str) {
        if self.truncated {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(match self.separator {
                Separator::None => "",
                Separator::Space => " ",
                Separator::Tab => "\t",
                Separator::Line => "\n",
                Separator::Paragraph => "\n\n",
            });
        }
        self.separator = Separator::None;
        self.text.push_str(piece);
        self.truncated = truncate(&mut self.text, self.bytes_max);
    }
}

/// Builds text with paragraphs and tables: a line for each paragraph and row, and tabs between
/// cells.
pub(crate) struct FlowBuilder {
    builder: TextBuilder,
    /// The next paragraph is the first one of its cell and remains in the line of the row.
    begins_cell: bool,
}

impl FlowBuilder {
    pub(crate) fn new(bytes_max: usize) -> Self {
        FlowBuilder {
            builder: TextBuilder::new(bytes_max),
            begins_cell: false,
        }
    }

    /// Starts a page, a sheet, or another part that is preceded by an empty line.
    pub(crate) fn start_section(&mut self) {
        self.begins_cell = false;
        self.builder.separate(Separator::Paragraph);
    }

    pub(crate) fn start_paragraph(&mut self) {
        if !std::mem::take(&mut self.begins_cell) {
            self.builder.separate(Separator::Line);
        }
    }

    /// Starts or ends a row of a table.
    pub(crate) fn break_row(&mut self) {
        self.begins_cell = false;
        self.builder.separate(Separator::Line);
    }

    pub(crate) fn start_cell(&mut self) {
        self.begins_cell = true;
    }

    pub(crate) fn end_cell(&mut self) {
        self.begins_cell = false;
        self.builder.separate(Separator::Tab);
    }

    /// Requests at least this separator before the next word.
    pub(crate) fn separate(&mut self, separator: Separator) {
        self.builder.separate(separator);
    }

    /// Appends text with its white space collapsed.
    pub(crate) fn push_words(&mut self, text: &str) {
        self.builder.push_words(text);
    }

    /// Appends text unchanged.
    pub(crate) fn push_verbatim(&mut self, text: &str) {
        self.builder.push_verbatim(text);
    }

    /// Appends words that are separate from the surrounding text.
    pub(crate) fn push_separate_words(&mut self, text: &str) {
        self.builder.separate(Separator::Space);
        self.builder.push_words(text);
        self.builder.separate(Separator::Space);
    }

    /// Returns `true` if the maximum length is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.builder.is_full()
    }

    /// Returns the text without trailing white space.
    pub(crate) fn finish(self) -> BoundedText {
        self.builder.finish()
    }
}
