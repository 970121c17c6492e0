//! Long values of constant expressions, which are made once.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use windrow_document::Value;

use super::limits::heap_bytes;

/// Bytes of all of them: `$range` makes much of little, and a pipeline can have as many as it likes.
const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A value that all copies of an expression share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept(Arc<Counted>);

#[derive(Debug, PartialEq)]
struct Counted(Value);

impl Kept {
    /// None where there is no room: then it is made anew for each document.
    pub fn new(value: Value) -> Option<Kept> {
        let bytes = heap_bytes(value.as_ref());
        let room = |kept: usize| kept.checked_add(bytes).filter(|all| *all <= KEPT_BYTES_MAX);
        KEPT.fetch_update(Relaxed, Relaxed, room).ok()?;
        Some(Kept(Arc::new(Counted(value))))
    }

    pub fn value(&self) -> &Value {
        &self.0.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        KEPT.fetch_sub(heap_bytes(self.0.as_ref()), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_an_end() {
        let text = || Value::from("x".repeat(KEPT_BYTES_MAX / 3 - (1 << 20)));
        let kept: Vec<Kept> = std::iter::from_fn(|| Kept::new(text())).collect();
        assert_eq!(kept.len(), 3);
        let copies = kept.clone();
        drop(kept);
        assert!(Kept::new(text()).is_none());
        drop(copies);
        assert_eq!(
            Kept::new(text()).map(|kept| kept.value() == &text()),
            Some(true)
        );
    }
}
