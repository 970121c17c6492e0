//! How much memory an evaluation may take.
//!
//! An expression can make more of a document than it is given: `$concatArrays` doubles an array, and a
//! stage after it doubles it again. MongoDB ends that with ExceededMemoryLimit where an operator holds
//! values (100 MB, as `$range` and the accumulators have it), and with 13548 where a document outgrows
//! the buffer that it is written into (125 MB). Documents that leave are asked for their 16 MB where they
//! leave.
//!
//! What lives is counted by thread ([`Held`]), since values of one evaluation live at many levels of its
//! tree at once, and each by itself may be within its limit.

use std::cell::Cell;
use std::marker::PhantomData;

use windrow_document::{ArrayBuf, ArrayBuilder, DocumentBuf, DocumentBuilder, ValueRef};

use crate::Error;
use crate::interrupt::Pace;

/// Bytes that one value may take.
pub(crate) const VALUE_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Bytes of all values that the evaluations of a thread hold at one time.
const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of the values that one function gives to a partition.
const WINDOWS_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Bytes that a document between stages may take.
const DOCUMENT_BYTES_MAX: usize = 125 * 1024 * 1024;
/// A list is counted anew each time that it has grown by so much.
const COUNTED_STEP: usize = 4096;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that live on this thread, until it is dropped. It cannot leave the thread.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: usize,
    of_this_thread: PhantomData<*const ()>,
}

impl Held {
    #[inline]
    pub fn of(bytes: usize) -> Held {
        if bytes > 0 {
            HELD.set(HELD.get() + bytes);
        }
        Held {
            bytes,
            of_this_thread: PhantomData,
        }
    }

    fn grow_to(&mut self, bytes: usize) {
        *self = Held::of(bytes);
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        if self.bytes > 0 {
            HELD.set(HELD.get() - self.bytes);
        }
    }
}

impl Clone for Held {
    fn clone(&self) -> Held {
        Held::of(self.bytes)
    }
}

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

fn within(what: &str, bytes: usize, bytes_max: usize) -> Result<(), Error> {
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

/// 146 where the variables of a `let` come to so much.
pub(crate) fn check_variables(bytes: usize) -> Result<(), Error> {
    within("let", bytes, HELD_BYTES_MAX)
}

/// 146 where the values of the windows of a partition come to so much.
pub(crate) fn check_windows(bytes: usize) -> Result<(), Error> {
    within("$setWindowFields", bytes, WINDOWS_BYTES_MAX)
}

/// 146 where all that lives on this thread is too much.
pub(crate) fn check_held(what: &str) -> Result<(), Error> {
    within(what, HELD.get(), HELD_BYTES_MAX)
}

/// 13548 where a document that is being written has so many bytes.
pub fn check_document(bytes: usize) -> Result<(), Error> {
    if bytes <= DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("BufBuilder attempted to grow() to {bytes} bytes, past the 125MB limit.");
    Err(Error::new(13548, message))
}

/// 13548 where the parts of a document that are to be written come to so much.
pub(crate) fn check_written() -> Result<(), Error> {
    check_document(HELD.get())
}

/// An array that is being made.
pub(crate) struct List<'n> {
    what: &'n str,
    builder: ArrayBuilder,
    held: Held,
    pace: Pace,
}

impl<'n> List<'n> {
    /// `what` makes it, as an error says.
    pub fn new(what: &'n str) -> List<'n> {
        List {
            what,
            builder: ArrayBuilder::new(),
            held: Held::of(0),
            pace: Pace::default(),
        }
    }

    pub fn push(&mut self, value: ValueRef<'_>) -> Result<(), Error> {
        self.pace.step()?;
        check_value(self.what, self.builder.len() + heap_bytes(value))?;
        self.builder.push(value);
        count(&mut self.held, self.builder.len(), self.what)
    }

    pub fn extend<'v>(
        &mut self,
        values: impl IntoIterator<Item = ValueRef<'v>>,
    ) -> Result<(), Error> {
        values.into_iter().try_for_each(|value| self.push(value))
    }

    /// The number of elements so far.
    pub fn count(&self) -> usize {
        self.builder.count()
    }

    pub fn finish(self) -> ArrayBuf {
        self.builder.finish()
    }
}

/// A document that is being made within an expression.
pub(crate) struct Fields<'n> {
    what: &'n str,
    builder: DocumentBuilder,
    held: Held,
}

impl<'n> Fields<'n> {
    /// `what` makes it, as an error says.
    pub fn new(what: &'n str) -> Fields<'n> {
        Fields {
            what,
            builder: DocumentBuilder::new(),
            held: Held::of(0),
        }
    }

    pub fn append(&mut self, name: &str, value: ValueRef<'_>) -> Result<(), Error> {
        let added = name.len() + heap_bytes(value);
        check_value(self.what, self.builder.len() + added)?;
        self.builder.append(name, value);
        count(&mut self.held, self.builder.len(), self.what)
    }

    pub fn finish(self) -> DocumentBuf {
        self.builder.finish()
    }
}

#[inline]
fn count(held: &mut Held, bytes: usize, what: &str) -> Result<(), Error> {
    if bytes < held.bytes + COUNTED_STEP {
        return Ok(());
    }
    held.grow_to(bytes);
    check_held(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_is_counted_until_it_is_dropped() {
        let before = HELD.get();
        let one = Held::of(HELD_BYTES_MAX);
        check_held("a test").unwrap();
        let other = one.clone();
        assert_eq!(check_held("a test").unwrap_err().code, 146);
        drop(one);
        check_held("a test").unwrap();
        drop(other);
        assert_eq!(HELD.get(), before);
    }

    #[test]
    fn a_list_ends_before_it_is_too_long() {
        let before = HELD.get();
        let large = "x".repeat(VALUE_BYTES_MAX / 3);
        let mut list = List::new("$test");
        list.push(ValueRef::String(&large)).unwrap();
        list.push(ValueRef::String(&large)).unwrap();
        let error = list.push(ValueRef::String(&large)).unwrap_err();
        assert_eq!(error.code, 146);
        assert_eq!(list.count(), 2);
        assert_eq!(list.finish().as_array().count(), 2);
        assert_eq!(HELD.get(), before);
    }
}
