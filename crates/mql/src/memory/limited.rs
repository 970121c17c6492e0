//! Builders whose size is counted and limited while they grow.

use std::ops::{Deref, DerefMut};

use windrow_document::{ArrayBuf, ArrayBuilder, DocumentBuf, DocumentBuilder, ValueRef};

use super::limits::{check_value, field_bytes, heap_bytes};
use super::live::LiveBytes;
use crate::Error;
use crate::interrupt::count_work;

/// A builder of an array.
pub(crate) struct LimitedArrayBuilder<'n> {
    operator: &'n str,
    builder: ArrayBuilder,
    live: LiveBytes,
}

impl<'n> LimitedArrayBuilder<'n> {
    /// `operator` names the operator in errors.
    pub fn new(operator: &'n str) -> LimitedArrayBuilder<'n> {
        LimitedArrayBuilder {
            operator,
            builder: ArrayBuilder::new(),
            live: LiveBytes::new(0),
        }
    }

    /// Appends an element. Fails with 146 if the array or all live values of the thread are too
    /// large.
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<(), Error> {
        count_work(1)?;
        check_value(self.operator, self.builder.len() + heap_bytes(value))?;
        self.builder.push(value);
        self.live.grow_to(self.builder.len(), self.operator)
    }

    /// Appends several elements. Fails as [`LimitedArrayBuilder::push`] does.
    pub fn extend<'v>(
        &mut self,
        values: impl IntoIterator<Item = ValueRef<'v>>,
    ) -> Result<(), Error> {
        values.into_iter().try_for_each(|value| self.push(value))
    }

    /// Returns the number of elements so far.
    pub fn count(&self) -> usize {
        self.builder.count()
    }

    /// Returns the array.
    pub fn finish(self) -> ArrayBuf {
        self.builder.finish()
    }
}

/// A builder of a document.
pub(crate) struct LimitedDocumentBuilder<'n> {
    operator: &'n str,
    builder: DocumentBuilder,
    live: LiveBytes,
}

impl<'n> LimitedDocumentBuilder<'n> {
    /// `operator` names the operator in errors.
    pub fn new(operator: &'n str) -> LimitedDocumentBuilder<'n> {
        LimitedDocumentBuilder {
            operator,
            builder: DocumentBuilder::new(),
            live: LiveBytes::new(0),
        }
    }

    /// Appends a field. Fails with 146 if the document or all live values of the thread are too
    /// large.
    pub fn append(&mut self, name: &str, value: ValueRef<'_>) -> Result<(), Error> {
        check_value(self.operator, self.builder.len() + field_bytes(name, value))?;
        self.builder.append(name, value);
        self.live.grow_to(self.builder.len(), self.operator)
    }

    /// Returns the document.
    pub fn finish(self) -> DocumentBuf {
        self.builder.finish()
    }
}

/// A vector, for example of references into values. Its memory counts as live bytes.
pub(crate) struct LimitedVec<'n, R> {
    operator: &'n str,
    items: Vec<R>,
    live: LiveBytes,
}

impl<'n, R> LimitedVec<'n, R> {
    /// `operator` names the operator in errors.
    pub fn new(operator: &'n str) -> LimitedVec<'n, R> {
        LimitedVec {
            operator,
            items: Vec::new(),
            live: LiveBytes::new(0),
        }
    }

    /// Collects the items. Fails as [`LimitedVec::push`] does.
    pub fn collect_from(
        references: impl IntoIterator<Item = R>,
        operator: &'n str,
    ) -> Result<LimitedVec<'n, R>, Error> {
        let mut items = LimitedVec::new(operator);
        references.into_iter().try_for_each(|one| items.push(one))?;
        Ok(items)
    }

    /// Appends an item. Fails with 146 if all live values of the thread are too large.
    pub fn push(&mut self, reference: R) -> Result<(), Error> {
        self.items.push(reference);
        let bytes = self.items.capacity() * size_of::<R>();
        self.live.grow_to(bytes, self.operator)
    }
}

impl<R> Deref for LimitedVec<'_, R> {
    type Target = Vec<R>;

    fn deref(&self) -> &Vec<R> {
        &self.items
    }
}

impl<R> DerefMut for LimitedVec<'_, R> {
    fn deref_mut(&mut self) -> &mut Vec<R> {
        &mut self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::VALUE_BYTES_MAX;

    #[test]
    fn an_array_that_would_be_too_large_fails() {
        let before = LiveBytes::current_thread();
        let large = "x".repeat(VALUE_BYTES_MAX / 3);
        let mut list = LimitedArrayBuilder::new("$test");
        list.push(ValueRef::String(&large)).unwrap();
        list.push(ValueRef::String(&large)).unwrap();
        let error = list.push(ValueRef::String(&large)).unwrap_err();
        assert_eq!(error.code, 146);
        assert_eq!(list.count(), 2);
        assert_eq!(list.finish().as_array().count(), 2);
        assert_eq!(LiveBytes::current_thread(), before);
    }

    #[test]
    fn a_vector_counts_as_live_until_it_is_dropped() {
        let before = LiveBytes::current_thread();
        let mut references = LimitedVec::new("$test");
        let error = (0..1000u32)
            .map(|_| references.push([0u8; 1 << 20]))
            .find_map(Result::err);
        assert_eq!(error.map(|error| error.code), Some(146));
        drop(references);
        assert_eq!(LiveBytes::current_thread(), before);
    }
}
