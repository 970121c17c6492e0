//! Cached values of constant expressions.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use windrow_document::Value;

use super::limits::heap_bytes;

/// The budget of all cached constants. It limits them because `$range` creates a large value from a
/// short expression, and a pipeline can contain any number of expressions.
static BUDGET: Budget = Budget::with_bytes(256 * 1024 * 1024);

/// The number of free bytes.
#[derive(Debug)]
struct Budget(AtomicUsize);

impl Budget {
    const fn with_bytes(bytes: usize) -> Budget {
        Budget(AtomicUsize::new(bytes))
    }
}

/// The value of a constant expression. Copies of the expression share it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CachedConstant(Arc<BudgetedValue>);

#[derive(Debug)]
struct BudgetedValue {
    value: Value,
    budget: &'static Budget,
}

impl CachedConstant {
    /// Returns `None` if the budget is exhausted. The expression is then evaluated for each
    /// document.
    pub fn new(value: Value) -> Option<CachedConstant> {
        CachedConstant::new_within(&BUDGET, value)
    }

    fn new_within(budget: &'static Budget, value: Value) -> Option<CachedConstant> {
        let bytes = heap_bytes(value.as_ref());
        let reserve = |free: usize| free.checked_sub(bytes);
        budget.0.fetch_update(Relaxed, Relaxed, reserve).ok()?;
        Some(CachedConstant(Arc::new(BudgetedValue { value, budget })))
    }

    pub fn value(&self) -> &Value {
        &self.0.value
    }
}

impl Drop for BudgetedValue {
    fn drop(&mut self) {
        let bytes = heap_bytes(self.value.as_ref());
        self.budget.0.fetch_add(bytes, Relaxed);
    }
}

impl PartialEq for BudgetedValue {
    fn eq(&self, other: &BudgetedValue) -> bool {
        self.value == other.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_constants_stay_within_their_budget() {
        static SMALL: Budget = Budget::with_bytes(1000);
        let text = || Value::from("x".repeat(330));
        let cache = || CachedConstant::new_within(&SMALL, text());
        let cached: Vec<CachedConstant> = std::iter::from_fn(cache).collect();
        assert_eq!(cached.len(), 3);
        let copies = cached.clone();
        drop(cached);
        assert!(cache().is_none());
        drop(copies);
        assert_eq!(cache().map(|cached| cached.value() == &text()), Some(true));
    }
}
