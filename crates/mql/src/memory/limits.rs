//! Limits in bytes of values, documents and the state of operators, and the nesting depth of
//! values.

use windrow_document::ValueRef;

use crate::Error;

/// Maximum bytes of one value.
pub(crate) const VALUE_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Maximum bytes of all values that the evaluations of a thread hold at one time.
pub(crate) const LIVE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Maximum bytes of the values that one window function computes for a partition.
const WINDOWS_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Maximum bytes of a document between stages.
const DOCUMENT_BYTES_MAX: usize = 125 * 1024 * 1024;

/// Returns the bytes of a value besides the enum itself.
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

/// Returns the nesting depth of a value: 0 for a number, 1 for `{a: 1}`.
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

/// Returns the bytes of a field without the constant overhead of a field.
pub(super) fn field_bytes(name: impl AsRef<[u8]>, value: ValueRef<'_>) -> usize {
    name.as_ref().len() + heap_bytes(value)
}

/// Fails with 146 if `bytes` exceeds `bytes_max`. `operator` names the operator in the message.
pub(crate) fn check_limit(operator: &str, bytes: usize, bytes_max: usize) -> Result<(), Error> {
    if bytes > bytes_max {
        Err(limit_error(operator, bytes, bytes_max))
    } else {
        Ok(())
    }
}

/// Returns the error 146 of an operator that would use `bytes`.
pub(crate) fn limit_error(operator: &str, bytes: usize, bytes_max: usize) -> Error {
    let message = format!(
        "{operator} would use too much memory ({bytes} bytes) and cannot spill to disk. Memory limit: {bytes_max} bytes"
    );
    Error::new(146, message)
}

/// Fails with 146 if `bytes` is too much for one value.
pub(crate) fn check_value(operator: &str, bytes: usize) -> Result<(), Error> {
    check_limit(operator, bytes, VALUE_BYTES_MAX)
}

/// Fails with 146 if `bytes` is too much for the state of an accumulator in one group.
pub(crate) fn check_accumulated(name: &str, bytes: usize) -> Result<(), Error> {
    if bytes <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "{name} used too much memory and cannot spill to disk. Used: {bytes} bytes. Memory limit: {VALUE_BYTES_MAX} bytes"
    );
    Err(Error::new(146, message))
}

/// Fails with 146 if `bytes` is too much for the values of the windows of a partition.
pub(crate) fn check_window_values(bytes: usize) -> Result<(), Error> {
    check_limit("$setWindowFields", bytes, WINDOWS_BYTES_MAX)
}

/// Fails with 13548 if `bytes` is too much for a document between stages.
pub fn check_document(bytes: usize) -> Result<(), Error> {
    if bytes <= DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("BufBuilder attempted to grow() to {bytes} bytes, past the 125MB limit.");
    Err(Error::new(13548, message))
}

/// Fails with 13548 if a document of `bytes` would become too large with this field.
pub fn check_growth(
    bytes: usize,
    name: impl AsRef<[u8]>,
    value: ValueRef<'_>,
) -> Result<(), Error> {
    check_document(bytes + field_bytes(name, value))
}
