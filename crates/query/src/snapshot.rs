//! A [`Source`] over a collection of the engine.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{Collection, CollectionUuid, Position, Reader, Scans, Transaction};
use windrow_document::{Collation, ValueRef};
use windrow_index::{Definition, Multikey};

use crate::Error;
use crate::plan_cache::PlanCache;
use crate::planner_settings::PlannerSettings;
use crate::source::{
    Direction, EntryCursor, KeyLists, PostingList, RecordCursor, RecordId, RecordPart, SearchIndex,
    Source,
};

/// A reader of a collection, with the properties of the collection that queries need.
#[derive(Clone, Debug)]
pub struct Snapshot {
    reader: Reader,
    namespace: String,
    uuid: CollectionUuid,
    count: u64,
    scans: Arc<Scans>,
    planner_settings: Option<Arc<PlannerSettings>>,
    /// `true` if the snapshot is older than the current state of the collection. Its indexes can
    /// differ from those of the cached plans.
    is_historical: bool,
}

impl Snapshot {
    /// Returns a snapshot of the current state of the collection.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use windrow_collection::{Engine, EngineOptions, InsertOrder, Namespace};
    /// use windrow_document::doc;
    /// use windrow_mql::filter::Filter;
    /// use windrow_query::{Find, Snapshot, Uninterrupted};
    /// use windrow_storage::MemoryDisk;
    ///
    /// let options = EngineOptions::with_memory(64 << 20);
    /// let engine = Engine::open(Arc::new(MemoryDisk::new()), options)?;
    /// let collection = engine.collection_or_create(&Namespace::new("test", "c")?)?;
    /// let document = doc! { "_id": 1, "n": 7 };
    /// collection.insert(document.as_bytes().to_vec().into(), InsertOrder::Ordered)?;
    ///
    /// let source = Snapshot::open(&collection)?;
    /// let filter = Filter::parse(doc! { "n": { "$gt": 5 } }.as_document())?;
    /// let mut cursor = Find::new(filter).open(&source)?;
    /// let found = cursor.next(&Uninterrupted)?.map(|content| content.into_buf());
    /// assert_eq!(found, Some(document));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(collection: &Collection) -> Result<Arc<dyn Source>, Error> {
        Snapshot::within(collection, None, None)
    }

    /// Returns a snapshot of the current state of the collection, or of the state that the
    /// transaction sees. `planner_settings` are the planner settings.
    pub fn within(
        collection: &Collection,
        transaction: Option<&Transaction>,
        planner_settings: Option<Arc<PlannerSettings>>,
    ) -> Result<Arc<dyn Source>, Error> {
        let reader = match transaction {
            None => collection.reader()?,
            Some(transaction) => transaction.reader(collection)?,
        };
        let snapshot = Snapshot::with(collection, reader, planner_settings);
        Ok(Arc::new(snapshot))
    }

    /// Returns a snapshot of an earlier state of the collection. Its indexes and its number of
    /// documents can differ from the current ones, so it does not use the plan cache.
    pub fn before(
        collection: &Collection,
        reader: Reader,
        planner_settings: Option<Arc<PlannerSettings>>,
    ) -> Arc<dyn Source> {
        Arc::new(Snapshot {
            is_historical: true,
            ..Snapshot::with(collection, reader, planner_settings)
        })
    }

    fn with(
        collection: &Collection,
        reader: Reader,
        planner_settings: Option<Arc<PlannerSettings>>,
    ) -> Snapshot {
        Snapshot {
            planner_settings,
            reader,
            namespace: collection.namespace().to_string(),
            uuid: collection.uuid(),
            count: collection.count(),
            scans: collection.scans().clone(),
            is_historical: false,
        }
    }
}

impl Source for Snapshot {
    fn namespace(&self) -> String {
        self.namespace.clone()
    }

    fn uuid(&self) -> Option<CollectionUuid> {
        Some(self.uuid)
    }

    fn collation(&self) -> Option<Arc<Collation>> {
        let id_index = self.reader.indexes().first()?;
        id_index.definition().collation.clone()
    }

    fn count(&self) -> u64 {
        if self.is_historical {
            self.reader.approximate_document_count()
        } else {
            self.count
        }
    }

    fn is_clustered(&self) -> bool {
        self.reader.is_clustered()
    }

    fn indexes(&self) -> Vec<Arc<Definition>> {
        self.reader
            .ordinary_indexes()
            .iter()
            .map(|index| index.definition().clone())
            .collect()
    }

    fn search_index(&self, name: &str) -> Option<SearchIndex> {
        self.reader.search_index(name)
    }

    fn planner_settings(&self) -> Option<&PlannerSettings> {
        self.planner_settings.as_deref()
    }

    fn plans(&self) -> Option<&PlanCache> {
        let planner_settings = self
            .planner_settings
            .as_deref()
            .filter(|_| !self.is_historical);
        planner_settings.map(|planner_settings| &planner_settings.plans)
    }

    fn position(&self) -> Option<Position> {
        Some(self.reader.position())
    }

    fn record_use(&self, index: usize) {
        if let Some(index) = self.reader.indexes().get(index) {
            index.record_use();
        }
    }

    fn record_scan(&self) {
        self.scans.record();
    }

    fn multikey(&self, index: usize) -> Result<Multikey, Error> {
        Ok(self.reader.multikey(index)?)
    }

    fn get(&self, id: RecordId) -> Result<Option<Bytes>, Error> {
        Ok(self.reader.get(id)?)
    }

    fn get_all(&self, ids: &[RecordId]) -> Result<Vec<Option<Bytes>>, Error> {
        Ok(self.reader.get_all(ids)?)
    }

    fn find(&self, id: ValueRef<'_>) -> Result<Option<(RecordId, Bytes)>, Error> {
        Ok(self.reader.find(id)?)
    }

    fn records(&self, direction: Direction) -> Result<Box<dyn RecordCursor>, Error> {
        Ok(Box::new(self.reader.records(direction)))
    }

    fn parts(&self, count: u64) -> Result<Vec<RecordPart>, Error> {
        let cuts = self.reader.split_keys(count)?.into_iter().skip(1).map(Some);
        let ends: Vec<Option<Vec<u8>>> = cuts.chain([None]).collect();
        let firsts = [None].into_iter().chain(ends.clone());
        let part = |(first, end): (Option<Vec<u8>>, Option<Vec<u8>>)| {
            let reader = self.reader.clone();
            Box::new(move || {
                let records = reader.range(first.as_deref(), end.as_deref())?;
                Ok(Box::new(records) as Box<dyn RecordCursor>)
            }) as RecordPart
        };
        Ok(firsts.zip(ends.clone()).map(part).collect())
    }

    fn entries(&self, index: usize, direction: Direction) -> Result<Box<dyn EntryCursor>, Error> {
        Ok(Box::new(self.reader.entries(index, direction)?))
    }

    fn postings(&self, index: usize, key: &[u8]) -> Result<Box<dyn EntryCursor>, Error> {
        Ok(Box::new(self.reader.postings(index, key)?))
    }

    fn posting_list(&self, index: usize, key: &[u8]) -> Result<PostingList, Error> {
        Ok(self.reader.posting_list(index, key)?)
    }

    fn key_lists(&self, index: usize, from: &[u8], to: &[u8]) -> Result<KeyLists, Error> {
        Ok(self.reader.key_lists(index, from, to)?)
    }

    fn count_entries(&self, index: usize, from: &[u8], to: &[u8]) -> Result<Option<u64>, Error> {
        Ok(self.reader.count_entries(index, from, to)?)
    }

    fn entry_split_keys(&self, index: usize, count: u64) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.reader.entry_split_keys(index, count)?)
    }

    fn approximate_count(&self, index: usize, from: &[u8], to: &[u8]) -> Result<u64, Error> {
        Ok(self.reader.approximate_count(index, from, to)?)
    }
}

impl RecordCursor for windrow_collection::RecordCursor {
    fn next(&mut self) -> Result<bool, Error> {
        Ok(windrow_collection::RecordCursor::next(self)?)
    }

    fn id(&self) -> RecordId {
        windrow_collection::RecordCursor::id(self)
    }

    fn document(&self) -> &[u8] {
        windrow_collection::RecordCursor::document(self)
    }

    fn document_bytes(&mut self) -> Bytes {
        windrow_collection::RecordCursor::document_bytes(self)
    }
}

impl EntryCursor for windrow_collection::EntryCursor {
    fn next(&mut self) -> Result<bool, Error> {
        Ok(windrow_collection::EntryCursor::next(self)?)
    }

    fn key(&self) -> &[u8] {
        windrow_collection::EntryCursor::key(self)
    }

    fn payload(&self) -> &[u8] {
        windrow_collection::EntryCursor::payload(self)
    }

    fn payload_bytes(&mut self) -> Bytes {
        windrow_collection::EntryCursor::payload_bytes(self)
    }

    fn id(&self) -> RecordId {
        windrow_collection::EntryCursor::id(self)
    }

    fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), Error> {
        Ok(windrow_collection::EntryCursor::seek(self, key, id)?)
    }

    fn seek_key(&mut self, key: &[u8]) -> Result<(), Error> {
        Ok(windrow_collection::EntryCursor::seek_key(self, key)?)
    }
}
