//! Collections that had a name and have it no more, for those who read at a position at which they had.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use windrow_fold::Position;

use crate::collection::Collection;
use crate::error::Error;
use crate::namespace::Namespace;

/// So many history are remembered at most.
const NAMES_MAX: usize = 10_000;
/// About what a collection holds in memory besides its tails, in bytes.
const COLLECTION_BYTES: u64 = 16 << 10;

/// See the module. They are remembered while a snapshot is open that is older than their end.
#[derive(Default)]
pub(crate) struct NameHistory(Mutex<History>);

#[derive(Default)]
struct History {
    all: BTreeMap<Name, FormerName>,
    /// The same in the order in which they ended.
    ends: BTreeSet<(Position, Name)>,
    /// Which history there were before this position is not known any more.
    forgotten_before: Position,
    /// What was let go of since somebody looked through all.
    gone: Vec<FormerName>,
}

/// A name, and the position from which on a collection had it.
type Name = (Namespace, Position);

struct FormerName {
    /// It had the name up to, without, this position.
    until: Position,
    /// None where there was no room to keep it.
    collection: Option<Arc<Collection>>,
    /// What it holds in memory that nobody else does: of one that was dropped.
    bytes: u64,
}

impl NameHistory {
    /// Remembers that a collection has its name up to, without, `until`. `is_dropped`: it has none from then
    /// on.
    pub fn add(&self, collection: &Arc<Collection>, until: Position, is_dropped: bool) {
        let bytes = COLLECTION_BYTES + collection.tail_bytes();
        let name = (collection.namespace(), collection.named_from());
        let former = FormerName {
            until,
            collection: Some(collection.clone()),
            bytes: if is_dropped { bytes } else { 0 },
        };
        let mut history = self.0.lock();
        history.ends.insert((until, name.clone()));
        history.all.insert(name, former);
        debug_assert!(history.ends.len() >= history.all.len());
        if history.all.len() > NAMES_MAX {
            // There is one at least, which was added above.
            history.forgotten_before = history.forget_first().unwrap_or(until);
        }
    }

    /// The collection that had a name at a position and has it no more. Error where it is not kept.
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
        let place = (namespace.clone(), position);
        let found = history.all.range(..=place).next_back();
        match found.filter(|((name, _), it)| name == namespace && position < it.until) {
            None => Ok(None),
            Some((_, former)) => former.collection.clone().map(Some).ok_or_else(not_kept),
        }
    }

    pub fn is_empty(&self) -> bool {
        let history = self.0.lock();
        history.all.is_empty() && history.gone.is_empty()
    }

    /// Forgets what nobody reads any more, since all read at `oldest` or later, and lets go of the
    /// collections that were dropped first where all of them hold more than so many bytes of memory.
    pub fn forget(&self, oldest: Position, bytes_max: u64) {
        let mut history = self.0.lock();
        while history
            .ends
            .first()
            .is_some_and(|(until, _)| *until <= oldest)
        {
            history.forget_first();
        }
        history.release_over(bytes_max);
        let gone = std::mem::take(&mut history.gone);
        drop(history);
        // Files may go with them, which nobody is to wait for.
        drop(gone);
    }
}

impl History {
    /// Forgets the name that ended first; where that was.
    fn forget_first(&mut self) -> Option<Position> {
        let (until, name) = self.ends.pop_first()?;
        self.gone.extend(self.all.remove(&name));
        Some(until)
    }

    /// Lets go of the collections that were dropped first, until the others hold no more than this.
    fn release_over(&mut self, bytes_max: u64) {
        let mut bytes: u64 = self.all.values().map(|it| it.bytes).sum();
        let mut release_over = BTreeSet::new();
        for (_, name) in &self.ends {
            if bytes <= bytes_max {
                break;
            }
            let former = self.all.get(name).filter(|it| it.bytes > 0);
            let collection = former.and_then(|it| Some((it.bytes, it.collection.as_ref()?.id)));
            if let Some((own, id)) = collection {
                bytes -= own;
                release_over.insert(id);
            }
        }
        if release_over.is_empty() {
            return;
        }
        // Under other history, too.
        for former in self.all.values_mut() {
            let id = former.collection.as_ref().map(|it| it.id);
            if id.is_some_and(|id| release_over.contains(&id)) {
                self.gone.push(FormerName {
                    until: former.until,
                    collection: former.collection.take(),
                    bytes: 0,
                });
                former.bytes = 0;
            }
        }
    }
}
