//! A source with an index filter: all indexes that the filter does not allow look hidden.

use std::sync::Arc;

use bytes::Bytes;
use windrow_document::{Collation, ValueRef};
use windrow_index::{Definition, Multikey};

use crate::Error;
use crate::restrictions::IndexFilter;
use crate::source::{
    CollectionUuid, Direction, EntryCursor, KeyLists, PostingList, RecordCursor, RecordId, Source,
    ViewParts,
};

/// A source whose indexes are restricted by an index filter.
pub struct FilteredIndexes<'s> {
    source: &'s dyn Source,
    filter: IndexFilter,
}

impl<'s> FilteredIndexes<'s> {
    pub fn new(source: &'s dyn Source, filter: IndexFilter) -> FilteredIndexes<'s> {
        FilteredIndexes { source, filter }
    }

    fn visible(&self, definition: Arc<Definition>) -> Arc<Definition> {
        if self.filter.allows(&definition) {
            definition
        } else {
            Arc::new(Definition {
                hidden: true,
                ..Definition::clone(&definition)
            })
        }
    }
}

impl Source for FilteredIndexes<'_> {
    fn indexes(&self) -> Vec<Arc<Definition>> {
        let all = self.source.indexes().into_iter();
        all.map(|definition| self.visible(definition)).collect()
    }

    fn prefers_indexes(&self) -> bool {
        true
    }

    fn namespace(&self) -> String {
        self.source.namespace()
    }

    fn uuid(&self) -> Option<CollectionUuid> {
        self.source.uuid()
    }

    fn exists(&self) -> bool {
        self.source.exists()
    }

    fn view(&self) -> Option<ViewParts<'_>> {
        self.source.view()
    }

    fn collation(&self) -> Option<Arc<Collation>> {
        self.source.collation()
    }

    fn count(&self) -> u64 {
        self.source.count()
    }

    fn is_clustered(&self) -> bool {
        self.source.is_clustered()
    }

    fn multikey(&self, index: usize) -> Result<Multikey, Error> {
        self.source.multikey(index)
    }

    fn posting_list(&self, index: usize, key: &[u8]) -> Result<PostingList, Error> {
        self.source.posting_list(index, key)
    }

    fn key_lists(&self, index: usize, from: &[u8], to: &[u8]) -> Result<KeyLists, Error> {
        self.source.key_lists(index, from, to)
    }

    fn get(&self, id: RecordId) -> Result<Option<Bytes>, Error> {
        self.source.get(id)
    }

    fn get_all(&self, ids: &[RecordId]) -> Result<Vec<Option<Bytes>>, Error> {
        self.source.get_all(ids)
    }

    fn find(&self, id: ValueRef<'_>) -> Result<Option<(RecordId, Bytes)>, Error> {
        self.source.find(id)
    }

    fn records(&self, direction: Direction) -> Result<Box<dyn RecordCursor>, Error> {
        self.source.records(direction)
    }

    fn entries(&self, index: usize, direction: Direction) -> Result<Box<dyn EntryCursor>, Error> {
        self.source.entries(index, direction)
    }

    fn entry_split_keys(&self, index: usize, count: u64) -> Result<Vec<Vec<u8>>, Error> {
        self.source.entry_split_keys(index, count)
    }

    fn approximate_count(&self, index: usize, from: &[u8], to: &[u8]) -> Result<u64, Error> {
        self.source.approximate_count(index, from, to)
    }
}
