//! Steps that read, and hold the engine's answers against the model.

use std::collections::BTreeSet;
use std::time::Duration;

use windrow_collection::{Checks, Direction, Reader};
use windrow_document::{Document, ValueRef};
use windrow_index::{Multikey, Scratch, is_mark};

use crate::model::Documents;
use crate::world::{Fault, Held, World, namespace};

/// So many readers stay open at most.
const HELD_MAX: usize = 3;
/// So many times are known at most.
const MOMENTS_MAX: usize = 6;

impl World {
    /// Reads everything of one collection.
    pub(crate) fn check(&self) {
        if let Some(name) = self.some_collection() {
            self.check_one(&name);
        }
    }

    fn check_one(&self, name: &str) {
        let collection = self.collection(name);
        let things = self.with(|state| state.things(name).clone());
        let reader = collection.reader().expect("a reader");
        check_records(&reader, &things.documents, name);
        assert_eq!(collection.count(), things.documents.len() as u64, "{name}");
        assert_eq!(collection.bytes(), things.bytes(), "{name}");
        self.note("check", things.documents.len() as u64);
    }

    /// Compares indexes with documents, and their names with those that must be there.
    pub(crate) fn validate(&self) {
        if let Some(name) = self.some_collection() {
            self.validate_one(&name);
        }
    }

    fn validate_one(&self, name: &str) {
        let collection = self.collection(name);
        for checks in [Checks::QUICK, Checks::FULL] {
            let validation = collection.validate(checks).expect("a validation");
            assert!(validation.is_valid(), "{name}, {checks:?}: {validation:?}");
        }
        let things = self.with(|state| state.things(name).clone());
        let ready = collection.indexes().into_iter().skip(1);
        let ready: Vec<String> = ready
            .filter(|index| index.is_ready())
            .map(|index| index.definition.name.clone())
            .collect();
        for index in &things.indexes {
            assert!(
                ready.contains(index),
                "{name} has lost the index {index}: {ready:?}"
            );
        }
        for index in &ready {
            let known = things.indexes.contains(index) || things.doubtful_indexes.contains(index);
            assert!(known, "{name} has got the index {index}");
        }
        self.note("validate", ready.len() as u64);
    }

    /// Reads everything of all collections, and validates their indexes.
    pub(crate) fn check_all(&self) {
        let names: Vec<String> = self.with(|state| state.model.keys().cloned().collect());
        for name in &names {
            self.check_one(name);
            self.validate_one(name);
        }
        self.replay_changes();
    }

    /// Looks one document up.
    pub(crate) fn find(&self) {
        let Some(name) = self.some_collection() else {
            return;
        };
        let id = self.below(250) as i32;
        let collection = self.collection(&name);
        let expected = self.with(|state| state.things(&name).documents.get(&id).cloned());
        let reader = collection.reader().expect("a reader");
        let record = reader.find_id(ValueRef::Int32(id)).expect("a look-up");
        let found = record.and_then(|record| reader.get(record).expect("a document"));
        assert_eq!(
            found.as_deref(),
            expected.as_ref().map(|it| it.as_bytes()),
            "{id} of {name}"
        );
        self.note("find", u64::from(found.is_some()));
    }

    /// Opens a reader that stays, or looks again what an open one sees.
    pub(crate) fn hold(&self) {
        let count = self.with(|state| state.held.len());
        if count < HELD_MAX && self.once_in(2) {
            let Some(name) = self.some_collection() else {
                return;
            };
            let reader = self.collection(&name).reader().expect("a reader");
            let documents = self.with(|state| state.things(&name).documents.clone());
            self.with(|state| state.held.push(Held { reader, documents }));
            self.note("hold", count as u64);
        } else if count > 0 {
            let number = self.below(count as u64) as usize;
            let Held { reader, documents } = self.with(|state| state.held.swap_remove(number));
            check_records(&reader, &documents, "what is held");
            self.note("held", documents.len() as u64);
            if self.once_in(2) && self.with(|state| state.fault == Fault::None) {
                self.with(|state| state.held.push(Held { reader, documents }));
            }
        }
    }
}

impl World {
    /// Learns the time of what is there, or looks again what was there at a time that is known.
    pub(crate) fn look_back(&self) {
        let (count, is_sound) =
            self.with(|state| (state.moments.len(), state.fault != Fault::Broken));
        if is_sound && count < MOMENTS_MAX && self.once_in(2) {
            let time = self.engine().moment().time();
            self.with(|state| state.moments.push((time, state.model.clone())));
            self.note("moment", count as u64);
        } else if count == MOMENTS_MAX && self.once_in(4) {
            let engine = self.engine();
            engine.set_moments_kept(Duration::ZERO);
            let (time, _) = self.with(|state| std::mem::take(&mut state.moments).swap_remove(0));
            let newest = engine.newest_time();
            let found = engine.moment_at(time, newest);
            assert_eq!(found.is_ok(), time == newest, "nobody keeps {time}");
            engine.set_moments_kept(Duration::MAX);
            self.note("let go", count as u64);
        } else if count > 0 {
            let number = self.below(count as u64) as usize;
            let (time, model) = self.with(|state| state.moments[number].clone());
            let moment = self.engine().moment_at(time, time).expect("a moment");
            for (name, things) in &model {
                let found = moment.collection(&namespace(name)).expect("a collection");
                let collection = found.unwrap_or_else(|| panic!("there was no {name} at {time}"));
                let reader = moment.reader(&collection).expect("a reader");
                check_records(&reader, &things.documents, name);
                check_entries(&reader, &things.documents, name);
            }
            self.with(|state| {
                for name in state.model.keys().filter(|name| !model.contains_key(*name)) {
                    let found = moment.collection(&namespace(name)).expect("an answer");
                    assert!(found.is_none(), "{name} was not there at {time}");
                }
            });
            self.note("looked back", model.len() as u64);
        }
    }
}

/// An index has the keys of the documents that are seen, and no others.
fn check_entries(reader: &Reader, documents: &Documents, name: &str) {
    let mut scratch = Scratch::default();
    for (number, index) in reader.indexes().iter().enumerate() {
        let mut expected = Vec::new();
        for document in documents.values() {
            let mut keys = BTreeSet::new();
            let mut note = |key: &[u8], _: &[u8]| {
                if !is_mark(key) {
                    keys.insert(key.to_vec());
                }
            };
            let made =
                (index.definition()).entries(document.as_document(), &mut scratch, &mut note);
            made.expect("entries");
            expected.extend(keys);
        }
        expected.sort_unstable();
        let (mut found, mut cursor) = (
            Vec::new(),
            reader
                .entries(number, Direction::Forward)
                .expect("a cursor"),
        );
        while cursor.next().expect("an entry") {
            found.push(cursor.key().to_vec());
        }
        assert_eq!(found, expected, "keys of {} of {name}", index.name());
    }
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

/// An index knows which of its paths meet arrays in the documents that are seen, neither fewer nor more.
fn check_multikey(reader: &Reader, documents: &Documents, name: &str) {
    let mut scratch = Scratch::default();
    for (number, index) in reader.indexes().iter().enumerate() {
        let (definition, mut marks) = (index.definition(), BTreeSet::new());
        for document in documents.values() {
            let mut note = |key: &[u8], _: &[u8]| {
                if is_mark(key) {
                    marks.insert(key.to_vec());
                }
            };
            let made = definition.entries(document.as_document(), &mut scratch, &mut note);
            made.expect("entries");
        }
        let marks = marks.iter().map(Vec::as_slice);
        let expected = Multikey::of_marks(definition.fields.len(), marks);
        let found = reader.multikey(number).expect("marks");
        assert_eq!(found, expected, "arrays in {} of {name}", index.name());
    }
}
