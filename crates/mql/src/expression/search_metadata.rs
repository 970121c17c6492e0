//! `$$SEARCH_META`: what a `$search` stage says of its result as a whole.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use windrow_document::{Value, ValueRef};

/// The name of the variable.
pub const SEARCH_META: &str = "SEARCH_META";

/// The value of `$$SEARCH_META` in one pipeline. The expressions of the pipeline are parsed before
/// its `$search` stage runs, so the value is set later. It is computed only if an expression reads
/// it.
#[derive(Debug, Default)]
pub struct SearchMetadata {
    is_read: AtomicBool,
    value: OnceLock<Value>,
}

impl SearchMetadata {
    /// Returns `true` if an expression reads the value.
    pub fn is_read(&self) -> bool {
        self.is_read.load(Ordering::Acquire)
    }

    /// Records that an expression reads the value.
    pub(super) fn record_reader(&self) {
        self.is_read.store(true, Ordering::Release);
    }

    /// Sets the value, if it is not known yet.
    pub fn set(&self, value: Value) {
        self.value.get_or_init(|| value);
    }

    /// Returns the value. It is missing until the stage has set it.
    pub(super) fn get(&self) -> Option<ValueRef<'_>> {
        self.value.get().map(Value::as_ref)
    }
}

/// Two pipelines never have the same metadata.
impl PartialEq for SearchMetadata {
    fn eq(&self, other: &SearchMetadata) -> bool {
        std::ptr::eq(self, other)
    }
}
