//! Cached values of constant expressions.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use windrow_document::Value;

use super::limits::heap_bytes;

/// The budget of all cached constants. It limits them because `$range` creates a large value from a
/// short expression, and a pipeline can contain any number of expressions.
static ROOM: Room = Room::of(256 * 1024 * 1024);

/// The number of free bytes.
#[derive(Debug)]
struct Room(AtomicUsize);

impl Room {
    const fn of(bytes: usize) -> Room {
        Room(AtomicUsize::new(bytes))
    }
}

/// The value of a constant expression. Copies of the expression share it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    value: Value,
    room: &'static Room,
}

impl Kept {
    /// Returns `None` if the budget is exhausted. The expression is then evaluated for each
    /// document.
    pub fn new(value: Value) -> Option<Kept> {
        Kept::within(&ROOM, value)
    }

    fn within(room: &'static Room, value: Value) -> Option<Kept> {
        let bytes = heap_bytes(value.as_ref());
        let take = |free: usize| free.checked_sub(bytes);
        room.0.fetch_update(Relaxed, Relaxed, take).ok()?;
        Some(Kept(Arc::new(Counted { value, room })))
    }

    pub fn value(&self) -> &Value {
        &self.0.value
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let bytes = heap_bytes(self.value.as_ref());
        self.room.0.fetch_add(bytes, Relaxed);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Counted) -> bool {
        self.value == other.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_constants_stay_within_their_budget() {
        static SMALL: Room = Room::of(1000);
        let text = || Value::from("x".repeat(330));
        let keep = || Kept::within(&SMALL, text());
        let kept: Vec<Kept> = std::iter::from_fn(keep).collect();
        assert_eq!(kept.len(), 3);
        let copies = kept.clone();
        drop(kept);
        assert!(keep().is_none());
        drop(copies);
        assert_eq!(keep().map(|kept| kept.value() == &text()), Some(true));
    }
}
