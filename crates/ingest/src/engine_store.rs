//! A store whose data folder is open in the same process.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    BuildControl, Change, Collection, Direction, Engine, Error, InsertOrder, Namespace,
    Uninterrupted,
};
use windrow_collection::{Reader, RecordId};
use windrow_document::object_id::ObjectIdSource;
use windrow_document::{Document, DocumentBuf, Value, ValueRef, key};
use windrow_index::Definition;
use windrow_index::search::SearchDefinition;

use crate::file_signature::FileSigner;
use crate::pipeline::BackgroundTimes;
use crate::store::{
    DATABASE_NAME, DocumentVisitor, INDEX_NAME, InsertError, RUNS_NAME, STAMP_INDEX_NAME,
    StampVisitor, Store, StoreCollection, StoreError,
};
use crate::stored_document::now_ms;
use crate::walk::FileStamp;

/// The collections of an open data folder.
#[derive(Debug)]
pub struct EngineStore {
    engine: Arc<Engine>,
    documents: Arc<Collection>,
    failures: Arc<Collection>,
    skipped: Arc<Collection>,
    signer: FileSigner,
}

impl EngineStore {
    /// Opens or creates the collections.
    pub fn new(engine: Arc<Engine>, signer: FileSigner) -> Result<Self, Error> {
        let open = |collection: StoreCollection| {
            engine.collection_or_create(&Namespace::new(DATABASE_NAME, collection.name())?)
        };
        Ok(EngineStore {
            documents: open(StoreCollection::Documents)?,
            failures: open(StoreCollection::Failures)?,
            skipped: open(StoreCollection::Skipped)?,
            engine,
            signer,
        })
    }

    fn collection(&self, collection: StoreCollection) -> &Collection {
        match collection {
            StoreCollection::Documents => &self.documents,
            StoreCollection::Failures => &self.failures,
            StoreCollection::Skipped => &self.skipped,
        }
    }
}

impl EngineStore {
    /// Returns the search index that a collection needs. `None` if it exists with the current
    /// definition and analyzers. An index of an older version of the program is replaced.
    fn missing_search_index(
        &self,
        collection: StoreCollection,
    ) -> Result<Option<Definition>, StoreError> {
        let Some(definition) = collection.search_index_definition() else {
            return Ok(None);
        };
        let indexes = self.collection(collection).search_indexes();
        let known = indexes
            .iter()
            .filter_map(|index| index.definition.search.as_ref())
            .filter(|index| index.name == INDEX_NAME)
            .max_by_key(|index| index.version);
        let is_right = |known: &&Arc<SearchDefinition>| {
            known.source.as_bytes() == definition.as_bytes() && !known.is_outdated()
        };
        if known.is_some_and(|known| is_right(&known)) {
            return Ok(None);
        }
        let (now, definition) = (now_ms(), definition.as_document());
        let (id, version) = match known {
            Some(known) => (known.id, known.version.saturating_add(1)),
            None => (ObjectIdSource::new(now.unsigned_abs()).next_now(), 0),
        };
        let search = SearchDefinition::parse(INDEX_NAME, id, version, now, definition)?;
        Ok(Some(Definition::from_search(search)))
    }
}

impl Store for EngineStore {
    fn file_signer(&self) -> &FileSigner {
        &self.signer
    }

    fn prepare(&self) -> Result<(), StoreError> {
        for collection in StoreCollection::ALL {
            let specification = collection.index_specification();
            let mut definitions = vec![Definition::parse(specification.as_document())?];
            definitions.extend(self.missing_search_index(collection)?);
            let control = BuildControl {
                interrupt: &Uninterrupted,
                on_phase: &|_| {},
            };
            self.collection(collection)
                .create_indexes(definitions, &control)?;
            self.collection(collection).drop_replaced_search_indexes()?;
        }
        Ok(())
    }

    fn visit_stamps(
        &self,
        collection: StoreCollection,
        visit: &mut StampVisitor<'_>,
    ) -> Result<(), StoreError> {
        let reader = self.collection(collection).reader()?;
        let mut entries = reader.entries(find_stamp_index(&reader)?, Direction::Forward)?;
        while entries.next()? {
            if let Some(entry) = StampEntry::parse(entries.key(), entries.payload()) {
                visit(&entry.path, entry.stamp);
            }
        }
        Ok(())
    }

    fn visit_documents(
        &self,
        collection: StoreCollection,
        path: &str,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        let reader = self.collection(collection).reader()?;
        for id in find_records(&reader, &[path.to_owned()])? {
            if let Some(bytes) = reader.get(id)? {
                visit(Document::from_bytes(&bytes)?);
            }
        }
        Ok(())
    }

    fn visit_all(
        &self,
        collection: &str,
        _: &[&'static str],
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        let namespace = Namespace::new(DATABASE_NAME, collection)?;
        let Some(collection) = self.engine.collection(&namespace) else {
            return Ok(());
        };
        let mut records = collection.reader()?.records(Direction::Forward);
        while records.next()? {
            visit(Document::from_bytes(records.document())?);
        }
        Ok(())
    }

    fn remove(&self, collection: StoreCollection, paths: &[String]) -> Result<(), StoreError> {
        let collection = self.collection(collection);
        let records = find_records(&collection.reader()?, paths)?;
        Ok(delete_records(collection, records)?)
    }

    fn remove_failures(&self, ids: &[String]) -> Result<(), StoreError> {
        let reader = self.failures.reader()?;
        let find = |id: &String| reader.find_id(ValueRef::String(id)).transpose();
        let records: Result<Vec<_>, _> = ids.iter().filter_map(find).collect();
        Ok(delete_records(&self.failures, records?)?)
    }

    fn insert(
        &self,
        collection: StoreCollection,
        documents: Bytes,
    ) -> Result<Vec<InsertError>, StoreError> {
        let inserted = self
            .collection(collection)
            .insert(documents, InsertOrder::Unordered)?;
        let errors = inserted.errors.into_iter();
        Ok(errors
            .map(|refused| InsertError {
                index: refused.index,
                reason: refused.error.to_string(),
            })
            .collect())
    }

    fn record_run(&self, run: &DocumentBuf) -> Result<(), StoreError> {
        let runs = Namespace::new(DATABASE_NAME, RUNS_NAME)?;
        let bytes = Bytes::copy_from_slice(run.as_bytes());
        let inserted = self
            .engine
            .collection_or_create(&runs)?
            .insert(bytes, InsertOrder::Unordered)?;
        Ok(inserted.check_all_inserted()?)
    }

    fn background_times(&self) -> Option<BackgroundTimes> {
        let statistics = self.engine.statistics();
        Some(BackgroundTimes {
            entries: statistics.entry_time,
            merges: statistics.fold_time + statistics.merge_time,
            delays: statistics.delay_time,
        })
    }

    /// Also folds the tails into sections. Otherwise the next start of an engine would replay the
    /// log to rebuild the entries of the text index.
    fn finish(&self) -> Result<(), StoreError> {
        self.engine.fold()?;
        Ok(self.engine.sync()?)
    }
}

fn find_stamp_index(reader: &Reader) -> Result<usize, Error> {
    let found = reader
        .indexes()
        .iter()
        .position(|index| index.name() == STAMP_INDEX_NAME);
    found.ok_or_else(|| Error::IndexNotFound(STAMP_INDEX_NAME.to_owned()))
}

/// An entry of the stamp index.
struct StampEntry {
    path: String,
    /// `None` if a field is missing or invalid.
    stamp: Option<FileStamp>,
}

impl StampEntry {
    /// Parses an entry. Returns `None` if its path is not a string.
    fn parse(entry: &[u8], shape: &[u8]) -> Option<StampEntry> {
        let mut values = key::KeyReader::new(entry, shape);
        let Value::String(path) = values.value(false)? else {
            return None;
        };
        let mut fields = [None; FileStamp::FIELDS.len()];
        for field in &mut fields {
            *field = values.value(false)?.as_ref().as_whole();
        }
        let stamp = FileStamp::from_fields(fields);
        Some(StampEntry { path, stamp })
    }
}

/// Returns the records of all documents with these paths.
fn find_records(reader: &Reader, paths: &[String]) -> Result<Vec<RecordId>, Error> {
    let mut entries = reader.entries(find_stamp_index(reader)?, Direction::Forward)?;
    let mut records = Vec::new();
    for path in paths {
        let mut start = Vec::new();
        key::append(&mut start, ValueRef::String(path));
        entries.seek(&start, RecordId(0))?;
        while entries.next()? && entries.key().starts_with(&start) {
            records.push(entries.id());
        }
    }
    Ok(records)
}

fn delete_records(collection: &Collection, records: Vec<RecordId>) -> Result<(), Error> {
    let mut batch = collection.batch();
    for id in records {
        batch.change(id, |_| Ok::<_, Error>(Change::Delete))?;
    }
    batch.commit()
}
