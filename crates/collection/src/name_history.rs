//! Former names of collections, for snapshots from a time when the collections had them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use windrow_fold::Position;

use crate::catalog::namespace::Namespace;
use crate::collection::Collection;
use crate::error::Error;

/// The maximal number of names.
const NAMES_MAX: usize = 10_000;
/// The estimated memory of a collection besides its tails, in bytes.
const COLLECTION_BYTES: u64 = 16 << 10;

/// The former names. A name is remembered while a snapshot from before its end is open.
#[derive(Default)]
pub(crate) struct NameHistory(Mutex<History>);

#[derive(Default)]
struct History {
    all: BTreeMap<NameStart, EarlierName>,
    /// The names in the order in which they ended.
    ends: BTreeSet<NameStop>,
    /// Names that ended before this position may be missing.
    forgotten_before: Position,
    /// The names that were removed since the last call of [`NameHistory::forget`].
    removed: Vec<EarlierName>,
}

/// The time from which a collection had a name. Ordered by name, then by position.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NameStart {
    namespace: Namespace,
    from: Position,
}

/// The end of a name. Ordered by position.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NameStop {
    until: Position,
    name: NameStart,
}

/// Why a collection lost a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameEnd {
    /// It was renamed.
    Renamed,
    /// It was dropped, so only the history holds it.
    Dropped,
}

struct EarlierName {
    /// The collection had the name before this position.
    until: Position,
    /// `None` if there was no memory to keep it.
    collection: Option<Arc<Collection>>,
    /// The memory that only this entry holds, if the collection was dropped.
    bytes: u64,
}

impl NameHistory {
    /// Adds the name that a collection had before `until`.
    pub fn add(&self, collection: &Arc<Collection>, until: Position, end: NameEnd) {
        let bytes = COLLECTION_BYTES + collection.tail_bytes();
        let name = NameStart {
            namespace: collection.namespace(),
            from: collection.named_from(),
        };
        let earlier = EarlierName {
            until,
            collection: Some(collection.clone()),
            bytes: match end {
                NameEnd::Dropped => bytes,
                NameEnd::Renamed => 0,
            },
        };
        let mut history = self.0.lock();
        history.ends.insert(NameStop {
            until,
            name: name.clone(),
        });
        history.all.insert(name, earlier);
        debug_assert!(history.ends.len() >= history.all.len());
        if history.all.len() > NAMES_MAX {
            // An entry exists, as one was added above.
            history.forgotten_before = history.forget_first().unwrap_or(until);
        }
    }

    /// Returns the collection that had a name at a position and has lost it since. Fails if it was
    /// not kept.
    pub fn at(
        &self,
        namespace: &Namespace,
        position: Position,
    ) -> Result<Option<Arc<Collection>>, Error> {
        let not_kept = || Error::CollectionChanged(namespace.to_string());
        let history = self.0.lock();
        if position < history.forgotten_before {
            return Err(not_kept());
        }
        let latest = NameStart {
            namespace: namespace.clone(),
            from: position,
        };
        let found = history.all.range(..=latest).next_back();
        match found.filter(|(name, it)| name.namespace == *namespace && position < it.until) {
            None => Ok(None),
            Some((_, former)) => former.collection.clone().map(Some).ok_or_else(not_kept),
        }
    }

    pub fn is_empty(&self) -> bool {
        let history = self.0.lock();
        history.all.is_empty() && history.removed.is_empty()
    }

    /// Removes what no snapshot can read, because all are at `oldest` or later. Then releases
    /// dropped collections, the oldest first, until all of them take at most `bytes_max`.
    pub fn forget(&self, oldest: Position, bytes_max: u64) {
        let mut history = self.0.lock();
        while history.ends.first().is_some_and(|end| end.until <= oldest) {
            history.forget_first();
        }
        history.release_over(bytes_max);
        let removed = std::mem::take(&mut history.removed);
        drop(history);
        // This may delete files, so it happens outside the lock.
        drop(removed);
    }
}

impl History {
    /// Removes the name that ended first, and returns its end.
    fn forget_first(&mut self) -> Option<Position> {
        let NameStop { until, name } = self.ends.pop_first()?;
        self.removed.extend(self.all.remove(&name));
        Some(until)
    }

    /// Releases dropped collections, the oldest first, until the rest takes at most `bytes_max`.
    fn release_over(&mut self, bytes_max: u64) {
        let mut bytes: u64 = self.all.values().map(|it| it.bytes).sum();
        let mut released = BTreeSet::new();
        for NameStop { name, .. } in &self.ends {
            if bytes <= bytes_max {
                break;
            }
            let former = self.all.get(name).filter(|it| it.bytes > 0);
            let collection = former.and_then(|it| Some((it.bytes, it.collection.as_ref()?.id)));
            if let Some((own, id)) = collection {
                bytes -= own;
                released.insert(id);
            }
        }
        if released.is_empty() {
            return;
        }
        // The collection may be under other names, too.
        for former in self.all.values_mut() {
            let id = former.collection.as_ref().map(|it| it.id);
            if id.is_some_and(|id| released.contains(&id)) {
                self.removed.push(EarlierName {
                    until: former.until,
                    collection: former.collection.take(),
                    bytes: 0,
                });
                former.bytes = 0;
            }
        }
    }
}
