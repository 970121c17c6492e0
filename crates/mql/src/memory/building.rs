//! Builders whose size is counted and limited while they grow.

use std::ops::{Deref, DerefMut};

use windrow_document::{ArrayBuf, ArrayBuilder, DocumentBuf, DocumentBuilder, ValueRef};

use super::limits::{check_value, field_bytes, heap_bytes};
use super::live::LiveBytes;
use crate::Error;
use crate::interrupt::count_work;

/// A builder of an array.
pub(crate) struct List<'n> {
    what: &'n str,
    builder: ArrayBuilder,
    live: LiveBytes,
}

impl<'n> List<'n> {
    /// `what` names the operator in errors.
    pub fn new(what: &'n str) -> List<'n> {
        List {
            what,
            builder: ArrayBuilder::new(),
            live: LiveBytes::of(0),
        }
    }

    /// Appends an element. Fails with 146 if the array or all live values of the thread are too
    /// large.
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<(), Error> {
        count_work(1)?;
        check_value(self.what, self.builder.len() + heap_bytes(value))?;
        self.builder.push(value);
        self.live.grow_to(self.builder.len(), self.what)
    }

    /// Appends several elements. Fails as [`List::push`] does.
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

    /// Returns the array.
    pub fn finish(self) -> ArrayBuf {
        self.builder.finish()
    }
}

/// A builder of a document.
pub(crate) struct Fields<'n> {
    what: &'n str,
    builder: DocumentBuilder,
    live: LiveBytes,
}

impl<'n> Fields<'n> {
    /// `what` names the operator in errors.
    pub fn new(what: &'n str) -> Fields<'n> {
        Fields {
            what,
            builder: DocumentBuilder::new(),
            live: LiveBytes::of(0),
        }
    }

    /// Appends a field. Fails with 146 if the document or all live values of the thread are too
    /// large.
    pub fn append(&mut self, name: &str, value: ValueRef<'_>) -> Result<(), Error> {
        check_value(self.what, self.builder.len() + field_bytes(name, value))?;
        self.builder.append(name, value);
        self.live.grow_to(self.builder.len(), self.what)
    }

    /// Returns the document.
    pub fn finish(self) -> DocumentBuf {
        self.builder.finish()
    }
}

/// A vector, for example of references into values. Its memory counts as live bytes.
pub(crate) struct References<'n, R> {
    what: &'n str,
    all: Vec<R>,
    live: LiveBytes,
}

impl<'n, R> References<'n, R> {
    /// `what` names the operator in errors.
    pub fn new(what: &'n str) -> References<'n, R> {
        References {
            what,
            all: Vec::new(),
            live: LiveBytes::of(0),
        }
    }

    /// Collects the items. Fails as [`References::push`] does.
    pub fn of(
        references: impl IntoIterator<Item = R>,
        what: &'n str,
    ) -> Result<References<'n, R>, Error> {
        let mut all = References::new(what);
        references.into_iter().try_for_each(|one| all.push(one))?;
        Ok(all)
    }

    /// Appends an item. Fails with 146 if all live values of the thread are too large.
    pub fn push(&mut self, reference: R) -> Result<(), Error> {
        self.all.push(reference);
        let bytes = self.all.capacity() * size_of::<R>();
        self.live.grow_to(bytes, self.what)
    }
}

impl<R> Deref for References<'_, R> {
    type Target = Vec<R>;

    fn deref(&self) -> &Vec<R> {
        &self.all
    }
}

impl<R> DerefMut for References<'_, R> {
    fn deref_mut(&mut self) -> &mut Vec<R> {
        &mut self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::VALUE_BYTES_MAX;

    #[test]
    fn an_array_that_would_be_too_large_fails() {
        let before = LiveBytes::all();
        let large = "x".repeat(VALUE_BYTES_MAX / 3);
        let mut list = List::new("$test");
        list.push(ValueRef::String(&large)).unwrap();
        list.push(ValueRef::String(&large)).unwrap();
        let error = list.push(ValueRef::String(&large)).unwrap_err();
        assert_eq!(error.code, 146);
        assert_eq!(list.count(), 2);
        assert_eq!(list.finish().as_array().count(), 2);
        assert_eq!(LiveBytes::all(), before);
    }

    #[test]
    fn a_vector_counts_as_live_until_it_is_dropped() {
        let before = LiveBytes::all();
        let mut references = References::new("$test");
        let error = (0..1000u32)
            .map(|_| references.push([0u8; 1 << 20]))
            .find_map(Result::err);
        assert_eq!(error.map(|error| error.code), Some(146));
        drop(references);
        assert_eq!(LiveBytes::all(), before);
    }
}
