//! Collections that had a name and have it no more, for those who read at a position at which they had.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::collection::Collection;
use crate::error::Error;
use crate::namespace::Namespace;

/// See the module. They are remembered while a snapshot is open that is older than their end.
#[derive(Default)]
pub(crate) struct Past(Mutex<Vec<Former>>);

struct Former {
    namespace: Namespace,
    /// It had the name at positions from this one on,
    from: u64,
    /// up to, without, this one.
    until: u64,
    /// None where there was no room to keep it.
    collection: Option<Arc<Collection>>,
    /// What it holds in memory that nobody else does: of one that was dropped.
    bytes: u64,
}

impl Past {
    /// Remembers that a collection has its name up to, without, `until`. `is_dropped`: it has none from then
    /// on.
    pub fn add(&self, collection: &Arc<Collection>, until: u64, is_dropped: bool) {
        let bytes = collection.tail_bytes();
        self.0.lock().push(Former {
            namespace: collection.namespace(),
            from: collection.named_from(),
            until,
            collection: Some(collection.clone()),
            bytes: if is_dropped { bytes } else { 0 },
        });
    }

    /// The collection that had a name at a position and has it no more. Error where it is not kept.
    pub fn at(
        &self,
        namespace: &Namespace,
        position: u64,
    ) -> Result<Option<Arc<Collection>>, Error> {
        let former = self.0.lock();
        let had =
            |it: &&Former| (it.from..it.until).contains(&position) && it.namespace == *namespace;
        let Some(found) = former.iter().find(had) else {
            return Ok(None);
        };
        let collection = found.collection.clone();
        collection.map_or_else(
            || Err(Error::CollectionChanged(namespace.to_string())),
            |it| Ok(Some(it)),
        )
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Forgets what nobody reads any more, since all read at `oldest` or later, and lets go of the
    /// collections that were dropped first where all of them hold more than so many bytes of memory.
    pub fn forget(&self, oldest: u64, bytes_max: u64) {
        let mut former = self.0.lock();
        let (mut kept, gone) = former
            .drain(..)
            .partition::<Vec<Former>, _>(|it| it.until > oldest);
        let mut let_go = Vec::new();
        let mut bytes: u64 = kept.iter().map(|it| it.bytes).sum();
        for number in 0..kept.len() {
            let dropped = kept
                .get(number)
                .filter(|it| bytes > bytes_max && it.bytes > 0);
            let Some((of, id)) =
                dropped.and_then(|it| Some((it.bytes, it.collection.as_ref()?.id)))
            else {
                continue;
            };
            bytes -= of;
            // Under other names, too.
            for it in &mut kept {
                if it.collection.as_ref().is_some_and(|it| it.id == id) {
                    it.bytes = 0;
                    let_go.push(it.collection.take());
                }
            }
        }
        *former = kept;
        drop(former);
        // Files may go with them, which nobody is to wait for.
        drop((gone, let_go));
    }
}
