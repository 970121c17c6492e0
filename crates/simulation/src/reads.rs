//! Steps that read and compare the engine with the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use windrow_collection::{Checks, Collection, Direction, Engine, Error, Reader};
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_index::{Multikey, Scratch, is_mark};

use crate::model::Documents;
use crate::world::{Fault, OpenReader, World, namespace};

/// The maximal number of open readers.
const READERS_MAX: usize = 3;
/// The maximal number of open snapshots.
const SNAPSHOTS_MAX: usize = 6;

impl World {
    /// Reads all documents of a random collection.
    pub(crate) fn check(&self) {
        if let Some(name) = self.random_collection() {
            self.check_collection(&name);
        }
    }

    fn check_collection(&self, name: &str) {
        let collection = self.collection(name);
        let collection_model = self.with(|state| state.model_collection(name).clone());
        let reader = collection.reader().expect("a reader");
        check_records(&reader, &collection_model.documents, name);
        assert_eq!(
            collection.count(),
            collection_model.documents.len() as u64,
            "{name}"
        );
        assert_eq!(collection.bytes(), collection_model.bytes(), "{name}");
        self.record("check", collection_model.documents.len() as u64);
    }

    /// Validates a random collection and compares its indexes with the model.
    pub(crate) fn validate(&self) {
        if let Some(name) = self.random_collection() {
            self.validate_collection(&name);
        }
    }

    fn validate_collection(&self, name: &str) {
        let collection = self.collection(name);
        for checks in [Checks::QUICK, Checks::FULL] {
            let validation = collection.validate(checks).expect("a validation");
            assert!(validation.is_valid(), "{name}, {checks:?}: {validation:?}");
        }
        let collection_model = self.with(|state| state.model_collection(name).clone());
        let ready = collection.all_indexes().into_iter().skip(1);
        let ready: Vec<String> = ready
            .filter(|index| index.is_ready())
            .map(|index| index.definition.name.clone())
            .collect();
        for index in &collection_model.indexes {
            assert!(
                ready.contains(index),
                "{name} lost the index {index}: {ready:?}"
            );
        }
        for index in &ready {
            let known = collection_model.indexes.contains(index)
                || collection_model.uncertain_indexes.contains(index);
            assert!(known, "{name} has an unexpected index {index}");
        }
        self.record("validate", ready.len() as u64);
    }

    /// Reads and validates all collections, and replays all change events.
    pub(crate) fn check_all(&self) {
        let names: Vec<String> = self.with(|state| state.model.keys().cloned().collect());
        for name in &names {
            self.check_collection(name);
            self.validate_collection(name);
        }
        self.replay_changes();
    }

    /// Reads a random document by its `_id`.
    pub(crate) fn find(&self) {
        let Some(name) = self.random_collection() else {
            return;
        };
        let id = self.below(250) as i32;
        let collection = self.collection(&name);
        let expected = self.with(|state| state.model_collection(&name).documents.get(&id).cloned());
        let reader = collection.reader().expect("a reader");
        let record = reader.find_id(ValueRef::Int32(id)).expect("a look-up");
        let found = record.and_then(|record| reader.get(record).expect("a document"));
        assert_eq!(
            found.as_deref(),
            expected.as_ref().map(|it| it.as_bytes()),
            "{id} of {name}"
        );
        self.record("find", u64::from(found.is_some()));
    }

    /// Opens a reader that stays open, or checks that an open reader still sees the same documents.
    pub(crate) fn check_reader(&self) {
        let count = self.with(|state| state.open_readers.len());
        if count < READERS_MAX && self.one_in(2) {
            let Some(name) = self.random_collection() else {
                return;
            };
            let reader = self.collection(&name).reader().expect("a reader");
            let documents = self.with(|state| state.model_collection(&name).documents.clone());
            self.with(|state| state.open_readers.push(OpenReader { reader, documents }));
            self.record("open reader", count as u64);
        } else if count > 0 {
            let number = self.below(count as u64) as usize;
            let OpenReader { reader, documents } =
                self.with(|state| state.open_readers.swap_remove(number));
            check_records(&reader, &documents, "an open reader");
            self.record("check reader", documents.len() as u64);
            if self.one_in(2) && self.with(|state| state.fault == Fault::None) {
                self.with(|state| state.open_readers.push(OpenReader { reader, documents }));
            }
        }
    }
}

impl World {
    /// Records the current cluster time, or reads everything at a recorded time.
    pub(crate) fn check_snapshot(&self) {
        let (count, is_sound) =
            self.with(|state| (state.snapshots.len(), state.fault != Fault::Failing));
        if is_sound && count < SNAPSHOTS_MAX && self.one_in(2) {
            let time = self.engine().cluster_snapshot().time();
            self.with(|state| state.snapshots.push((time, state.model.clone())));
            self.record("snapshot", count as u64);
        } else if count == SNAPSHOTS_MAX && self.one_in(4) {
            let engine = self.engine();
            engine.set_snapshot_window(Duration::ZERO);
            let (time, _) = self.with(|state| std::mem::take(&mut state.snapshots).swap_remove(0));
            let newest = engine.newest_time();
            let found = engine.cluster_snapshot_at(time, newest);
            assert_eq!(
                found.is_ok(),
                time == newest,
                "after its release, {time} can only be read as the newest time"
            );
            engine.set_snapshot_window(Duration::MAX);
            self.record("release snapshot", count as u64);
        } else if count > 0 {
            let number = self.below(count as u64) as usize;
            let (time, model) = self.with(|state| state.snapshots[number].clone());
            let snapshot = self
                .engine()
                .cluster_snapshot_at(time, time)
                .expect("a snapshot");
            for (name, collection_model) in &model {
                let found = snapshot.collection(&namespace(name)).expect("a collection");
                let collection = found.unwrap_or_else(|| panic!("{name} does not exist at {time}"));
                let reader = snapshot.reader(&collection).expect("a reader");
                check_records(&reader, &collection_model.documents, name);
                check_entries(&reader, &collection_model.documents, name).expect("entries");
            }
            self.with(|state| {
                for name in state.model.keys().filter(|name| !model.contains_key(*name)) {
                    let found = snapshot.collection(&namespace(name)).expect("an answer");
                    assert!(found.is_none(), "{name} exists at {time}");
                }
            });
            self.record("check snapshot", model.len() as u64);
        }
    }
}

/// Returns the documents of all collections.
pub(crate) fn documents_of(engine: &Engine) -> Result<BTreeMap<String, Documents>, Error> {
    let named = |collection: &Arc<Collection>| {
        let documents = documents_in(&collection.reader()?)?;
        Ok((collection.namespace().collection, documents))
    };
    engine.collections("test").iter().map(named).collect()
}

/// Returns the documents of a reader's collection.
pub(crate) fn documents_in(reader: &Reader) -> Result<Documents, Error> {
    let mut cursor = reader.records(Direction::Forward);
    let mut documents = Documents::new();
    while cursor.next()? {
        let document = Document::from_validated(cursor.document());
        let Some(ValueRef::Int32(id)) = document.get("_id") else {
            panic!("{document:?}");
        };
        let document = DocumentBuf::from_bytes(cursor.document().to_vec());
        documents.insert(id, document.expect("a valid document").into());
    }
    Ok(documents)
}

/// Asserts that the indexes have exactly the keys of the documents.
pub(crate) fn check_entries(
    reader: &Reader,
    documents: &Documents,
    name: &str,
) -> Result<(), Error> {
    let mut scratch = Scratch::default();
    for (number, index) in reader.indexes().iter().enumerate() {
        let mut expected = Vec::new();
        for document in documents.values() {
            let mut keys = BTreeSet::new();
            let mut add = |key: &[u8], _: &[u8]| {
                if !is_mark(key) {
                    keys.insert(key.to_vec());
                }
            };
            let made = (index.definition()).entries(document.as_document(), &mut scratch, &mut add);
            made.expect("entries");
            expected.extend(keys);
        }
        expected.sort_unstable();
        let mut found = Vec::new();
        let mut cursor = reader.entries(number, Direction::Forward)?;
        while cursor.next()? {
            found.push(cursor.key().to_vec());
        }
        assert_eq!(found, expected, "keys of {} of {name}", index.name());
    }
    Ok(())
}

pub(crate) fn check_records(reader: &Reader, expected: &Documents, name: &str) {
    let mut cursor = reader.records(Direction::Forward);
    let mut found = 0;
    while cursor.next().expect("a document") {
        let document = Document::from_validated(cursor.document());
        let Some(ValueRef::Int32(id)) = document.get("_id") else {
            panic!("{name}: {document:?}");
        };
        let expected = expected.get(&id).map(|it| it.as_bytes());
        assert_eq!(Some(cursor.document()), expected, "{id} of {name}");
        found += 1;
    }
    assert_eq!(found, expected.len(), "documents of {name}");
    check_multikey(reader, expected, name);
}

/// Asserts that the indexes know exactly the paths that contain arrays.
fn check_multikey(reader: &Reader, documents: &Documents, name: &str) {
    let mut scratch = Scratch::default();
    for (number, index) in reader.indexes().iter().enumerate() {
        let (definition, mut marks) = (index.definition(), BTreeSet::new());
        for document in documents.values() {
            let mut add = |key: &[u8], _: &[u8]| {
                if is_mark(key) {
                    marks.insert(key.to_vec());
                }
            };
            let made = definition.entries(document.as_document(), &mut scratch, &mut add);
            made.expect("entries");
        }
        let marks = marks.iter().map(Vec::as_slice);
        let expected = Multikey::from_marks(definition.fields.len(), marks);
        let found = reader.multikey(number).expect("marks");
        assert_eq!(found, expected, "arrays in {} of {name}", index.name());
    }
}
