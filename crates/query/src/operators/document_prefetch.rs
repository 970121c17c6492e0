//! Documents that are read together, before they are needed.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::Error;
use crate::source::{RecordId, Source};

/// The largest number of documents that are read together.
pub(crate) const TOGETHER_MAX: usize = 64;

/// The documents of the next records, in order. `None`: the record was deleted.
#[derive(Default)]
pub(crate) struct PrefetchedDocuments(VecDeque<Option<Bytes>>);

impl PrefetchedDocuments {
    /// Returns the document of the first of `ids`, which are the next records. Documents of the
    /// others are read with it.
    pub fn next(
        &mut self,
        source: &dyn Source,
        ids: impl Iterator<Item = RecordId>,
    ) -> Result<Option<Bytes>, Error> {
        if self.0.is_empty() {
            let ids: Vec<RecordId> = ids.take(TOGETHER_MAX).collect();
            let Some(first) = ids.first() else {
                return Ok(None);
            };
            self.0 = source.get_all(&ids)?.into();
            if self.0.is_empty() {
                return source.get(*first);
            }
        }
        Ok(self.0.pop_front().flatten())
    }
}
