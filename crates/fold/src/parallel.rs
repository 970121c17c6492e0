//! Work on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the results of `work` for all items, in the order of the items. Up to `threads` threads,
/// one of which is the caller, each take the next item when they have finished one.
///
/// ```
/// use windrow_fold::parallel::map_items;
///
/// assert_eq!(map_items(&[1, 2, 3], 2, |number| 10 * number), [10, 20, 30]);
/// ```
///
/// # Panics
///
/// Panics if `work` panics.
pub fn map_items<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    work: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take_items = || {
        let mut results = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else {
                return results;
            };
            results.push((number, work(item)));
        }
    };
    let mut results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(items.len()))
            .map(|_| scope.spawn(take_items))
            .collect();
        let mut results = take_items();
        for other in others {
            match other.join() {
                Ok(more) => results.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
