//! How many bytes a value, a document and what an operator holds may have; and how deeply a value nests.

use windrow_document::ValueRef;

use crate::Error;

/// Bytes that one value may take.
pub(crate) const VALUE_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Bytes of all values that the evaluations of a thread hold at one time.
pub(crate) const LIVE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of the values that one function gives to a partition.
const WINDOWS_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Bytes that a document between stages may take.
const DOCUMENT_BYTES_MAX: usize = 125 * 1024 * 1024;

/// The bytes of a value that do not stand in the value itself.
pub fn heap_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::String(text) | ValueRef::JavaScript(text) | ValueRef::Symbol(text) => text.len(),
        ValueRef::Document(document) => document.as_bytes().len(),
        ValueRef::Array(array) => array.as_bytes().len(),
        ValueRef::Binary { bytes, .. } => bytes.len(),
        ValueRef::JavaScriptWithScope { code, scope } => code.len() + scope.as_bytes().len(),
        ValueRef::Regex { pattern, options } => pattern.len() + options.len(),
        _ => 0,
    }
}

/// How deeply a value nests: 0 for a number, 1 for {a: 1}.
pub(crate) fn depth(value: ValueRef<'_>) -> usize {
    let inner = match value {
        ValueRef::Document(document) => document,
        ValueRef::Array(array) => array.as_document(),
        ValueRef::JavaScriptWithScope { scope, .. } => scope,
        _ => return 0,
    };
    let depths = inner.iter().map(|(_, value)| depth(value));
    1 + depths.max().unwrap_or(0)
}

/// The bytes of a field, but for those that every field has.
pub(super) fn field_bytes(name: impl AsRef<[u8]>, value: ValueRef<'_>) -> usize {
    name.as_ref().len() + heap_bytes(value)
}

/// 146 where so many bytes are too many.
pub(crate) fn within(what: &str, bytes: usize, bytes_max: usize) -> Result<(), Error> {
    match bytes > bytes_max {
        true => Err(exceeded(what, bytes, bytes_max)),
        false => Ok(()),
    }
}

/// The error of what would take so many bytes.
pub(crate) fn exceeded(what: &str, bytes: usize, bytes_max: usize) -> Error {
    let message = format!(
        "{what} would use too much memory ({bytes} bytes) and cannot spill to disk. Memory limit: {bytes_max} bytes"
    );
    Error::new(146, message)
}

/// 146 where one value of so many bytes is too large.
pub(crate) fn check_value(what: &str, bytes: usize) -> Result<(), Error> {
    within(what, bytes, VALUE_BYTES_MAX)
}

/// 146 where what an accumulator has taken in for one group is too much.
pub(crate) fn check_accumulated(name: &str, bytes: usize) -> Result<(), Error> {
    if bytes <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "{name} used too much memory and cannot spill to disk. Used: {bytes} bytes. Memory limit: {VALUE_BYTES_MAX} bytes"
    );
    Err(Error::new(146, message))
}

/// 146 where the values of the windows of a partition come to so much.
pub(crate) fn check_windows(bytes: usize) -> Result<(), Error> {
    within("$setWindowFields", bytes, WINDOWS_BYTES_MAX)
}

/// 13548 where a document that is being written has so many bytes.
pub fn check_document(bytes: usize) -> Result<(), Error> {
    if bytes <= DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("BufBuilder attempted to grow() to {bytes} bytes, past the 125MB limit.");
    Err(Error::new(13548, message))
}

/// The same of a document of so many bytes that is to get this field.
pub fn check_growth(
    bytes: usize,
    name: impl AsRef<[u8]>,
    value: ValueRef<'_>,
) -> Result<(), Error> {
    check_document(bytes + field_bytes(name, value))
}
