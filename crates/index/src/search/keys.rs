//! The keys of entries:
//!
//! ```text
//! path | 00 | 't' | term         a term of a text; payload: frequency, length, positions
//! path | 00 | 'e'                the record has the field; payload: frequency 1, length
//! path | 00 | 'v' | value        key bytes of a value; payload: frequency 1, length
//! path | 00 | 'p' | cell         the leaf cell of a point, u64 BE; payload: frequency 1, length
//! path | 00 | 's' | cell         a cell of another shape, u64 BE; payload: frequency 1, length
//! ```
//!
//! The path has dots between the names. Positions in arrays are left out. The length is the number
//! of tokens of the field's text in the record, at least 1. All entries of a field and a record
//! have the same one. Another analysis of a field (`multi`) has a path of its own, see
//! [`multi_path`], and so have the grams of a field of type `autocomplete`, see
//! [`autocomplete_path`].

use windrow_document::{ValueRef, key};

use super::mapping::{MULTI, Normalizer};

/// The kind of key of a term.
pub const TERM: u8 = b't';
/// The kind of key that says that a record has a field.
pub const EXISTS: u8 = b'e';
/// The kind of key of a value.
pub const VALUE: u8 = b'v';
/// The kind of key of a point.
pub const POINT: u8 = b'p';
/// The kind of key of a shape that is not a point.
pub const SHAPE: u8 = b's';

/// Longer terms are not indexed, in bytes. Lucene's limit, which MongoDB documents for the analyzer
/// `lucene.keyword`.
pub const TERM_BYTES_MAX: usize = 32_766;

/// Longer strings have no value entry, in bytes.
pub const VALUE_STRING_BYTES_MAX: usize = 8_191;

/// Appends the first bytes of all keys of one kind of a path. The end of their range is the prefix
/// with its last byte increased by one.
pub fn append_prefix(key: &mut Vec<u8>, path: &str, kind: u8) {
    append_path(key, path);
    key.push(kind);
}

/// Returns the first bytes of all keys of one kind of a path, which are text.
///
/// ```
/// use windrow_index::search::{TERM, append_prefix, prefix};
///
/// let mut key = Vec::new();
/// append_prefix(&mut key, "a.b", TERM);
/// assert_eq!(prefix("a.b", TERM).as_bytes(), key);
/// ```
pub fn prefix(path: &str, kind: u8) -> String {
    format!("{path}\0{}", char::from(kind))
}

/// Returns the path of a key's first bytes that [`prefix`] made.
pub fn path_of(prefix: &str) -> &str {
    prefix.split_once('\0').map_or(prefix, |(path, _)| path)
}

/// Appends the first bytes of all keys of a path.
pub(super) fn append_path(key: &mut Vec<u8>, path: &str) {
    key.extend_from_slice(path.as_bytes());
    key.push(0);
}

/// Appends the key of a term.
///
/// ```
/// let mut key = Vec::new();
/// windrow_index::search::append_term_key(&mut key, "a.b", "fox");
/// assert_eq!(key, b"a.b\0tfox");
/// ```
pub fn append_term_key(key: &mut Vec<u8>, path: &str, term: &str) {
    append_prefix(key, path, TERM);
    key.extend_from_slice(term.as_bytes());
}

/// Appends the key that says that a record has a field.
pub fn append_exists_key(key: &mut Vec<u8>, path: &str) {
    append_prefix(key, path, EXISTS);
}

/// Appends the key of a value. Equal numbers of different types have the same key. A string must be
/// normalized before, see [`Normalizer::apply`].
pub fn append_value_key(key: &mut Vec<u8>, path: &str, value: ValueRef<'_>) {
    append_prefix(key, path, VALUE);
    key::append(key, value);
}

/// Appends the key of a cell of the sphere, of the kind [`POINT`] or [`SHAPE`]. The order of the
/// keys is that of the cells.
///
/// ```
/// use windrow_index::search::{POINT, append_cell_key};
///
/// let mut key = Vec::new();
/// append_cell_key(&mut key, "at", POINT, 0x0102);
/// assert_eq!(key, b"at\0p\0\0\0\0\0\0\x01\x02");
/// ```
pub fn append_cell_key(key: &mut Vec<u8>, path: &str, kind: u8, cell: u64) {
    append_prefix(key, path, kind);
    key.extend_from_slice(&cell.to_be_bytes());
}

/// Returns the path of a `multi` analyzer of a field.
///
/// ```
/// assert_eq!(windrow_index::search::multi_path("title", "exact"), "title\u{1}exact");
/// ```
pub fn multi_path(path: &str, name: &str) -> String {
    format!("{path}{MULTI}{name}")
}

/// Returns the path of the grams of a field of type `autocomplete`. No `multi` analyzer has it.
///
/// ```
/// assert_eq!(windrow_index::search::autocomplete_path("title"), "title\u{1}\u{1}");
/// ```
pub fn autocomplete_path(path: &str) -> String {
    format!("{path}{MULTI}{MULTI}")
}

impl Normalizer {
    /// Returns the string as value keys contain it, or `None` if it is too long to be indexed.
    /// `buffer` holds it if it changes.
    pub fn apply<'s>(self, text: &'s str, buffer: &'s mut String) -> Option<&'s str> {
        let normalized = match self {
            Normalizer::None => text,
            Normalizer::Lowercase => {
                buffer.clear();
                windrow_text::SearchAnalyzer::Standard.normalize(text, buffer);
                buffer
            }
        };
        (normalized.len() <= VALUE_STRING_BYTES_MAX).then_some(normalized)
    }
}
