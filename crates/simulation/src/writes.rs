//! Steps that write documents, and create, rename and drop collections and indexes.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    Change, Collection, DocumentValidation, Error, InsertOrder, Interrupted, Outcome, Renaming,
    RetainedImage, Statements, WriteOptions,
};
use windrow_document::{DocumentBuf, ValueRef, doc};

use crate::model::{Model, ModelCollection, RetryableWrite, unique_key};
use crate::random::Random;
use crate::world::{STATEMENT, World, namespace};

/// The number of `_id`s. It is small, so that most writes meet existing documents.
pub(crate) const ID_COUNT: u64 = 200;
/// Options of writes that do not wait for a transaction. The single thread would wait for itself.
const NO_WAIT: WriteOptions<'static> = WriteOptions {
    validation: DocumentValidation::Enabled,
    transaction: None,
    statements: None,
    wait_control: &|| Err(Interrupted::new("a transaction has a lock")),
};
pub(crate) const NAMES: [&str; 3] = ["one", "two", "three"];
const WORDS: [&str; 8] = [
    "wind",
    "row",
    "harvest",
    "barley",
    "sickle",
    "sheaf",
    "threshing",
    "grain",
];

pub(crate) fn document(id: i32, random: &mut Random) -> DocumentBuf {
    let mut document = doc! { "_id": id };
    if !random.one_in(8) {
        document.push("u", random.below(5_000) as i32);
    }
    if !random.one_in(3) {
        let tags = 0..random.below(5);
        let tags: Vec<i32> = tags.map(|_| random.below(20) as i32).collect();
        document.push("tags", tags);
    }
    // Only a few documents have an array here, so that the last one is deleted now and then.
    match id % 40 {
        7 => document.push("rare", vec![id, random.below(3) as i32]),
        _ => document.push("rare", id % 3),
    }
    if random.one_in(2) {
        let words_max = if random.one_in(10) { 2_000 } else { 12 };
        let words = 0..random.below(words_max);
        let words: Vec<&str> = words.map(|_| random.pick(&WORDS)).collect();
        document.push("text", words.join(" "));
    }
    document
}

impl World {
    pub(crate) fn create(&self) {
        let name = self.with(|state| state.random.pick(&NAMES));
        let exists = self.with(|state| state.model.contains_key(name));
        let mut options = DocumentBuf::new();
        if self.one_in(2) {
            let clustered = doc! { "key": { "_id": 1 }, "unique": true, "v": 2, "name": "_id_" };
            options.push("clusteredIndex", clustered);
        }
        let created = self
            .engine()
            .create(&namespace(name), options.as_document());
        self.record("create", u64::from(created.is_ok()));
        let apply =
            |model: &mut Model| _ = model.insert(name.to_owned(), ModelCollection::default());
        match created {
            Ok(_) => {
                assert!(!exists, "{name} was created although it exists");
                self.record_write(apply);
            }
            Err(Error::NamespaceExists(_)) => assert!(exists, "{name} does not exist"),
            Err(error) => {
                self.tolerate(&error);
                let is_shown = self.engine().collection(&namespace(name)).is_some();
                self.record_uncertain_ddl(&error, apply, is_shown && !exists);
            }
        }
    }

    pub(crate) fn drop_collection(&self) {
        let Some(name) = self.random_collection() else {
            return;
        };
        let dropped = self.engine().drop_collection(&namespace(&name));
        self.record("drop", u64::from(dropped.is_ok()));
        let apply = |model: &mut Model| _ = model.remove(&name);
        match dropped {
            Ok(was_there) => {
                assert!(was_there, "{name} did not exist when it was dropped");
                self.record_write(apply);
            }
            Err(error) => {
                self.tolerate(&error);
                let is_shown = self.engine().collection(&namespace(&name)).is_none();
                self.record_uncertain_ddl(&error, apply, is_shown);
            }
        }
    }

    pub(crate) fn rename(&self) {
        let Some(from) = self.random_collection() else {
            return;
        };
        let to = self.with(|state| state.random.pick(&NAMES));
        let replace = self.one_in(2);
        let exists = self.with(|state| state.model.contains_key(to));
        let renamed = self.engine().rename(
            &namespace(&from),
            &namespace(to),
            &Renaming {
                drop_target: replace,
                ..Renaming::default()
            },
        );
        self.record("rename", u64::from(renamed.is_ok()));
        let apply = |model: &mut Model| {
            let collection_model = model.remove(&from).unwrap_or_default();
            model.insert(to.to_owned(), collection_model);
        };
        match renamed {
            Ok(()) => {
                assert!(from != to && (replace || !exists), "{from} to {to}");
                self.record_write(apply);
            }
            Err(Error::NamespaceExists(_)) => assert!(from == to || exists && !replace),
            Err(error) => {
                self.tolerate(&error);
                let is_shown = self.engine().collection(&namespace(&from)).is_none();
                self.record_uncertain_ddl(&error, apply, is_shown);
            }
        }
    }

    pub(crate) fn insert(&self) {
        let Some(name) = self.random_collection() else {
            return;
        };
        let collection = self.collection(&name);
        let has_unique = has_unique(&collection);
        let (documents, buffer, refused, after) = self.with(|state| {
            let growing = state.random.one_in(2);
            let count = 1 + state.random.below(30);
            let mut after = state.model_collection(&name).clone();
            let (mut buffer, mut refused) = (Vec::new(), Vec::new());
            for number in 0..count as usize {
                let largest = after.documents.last_key_value().map_or(0, |(id, _)| *id);
                let id = if growing {
                    largest + 1
                } else {
                    state.random.below(ID_COUNT) as i32
                };
                let document = document(id, &mut state.random);
                buffer.extend_from_slice(document.as_bytes());
                let is_duplicate = has_unique && after.has_unique(unique_key(&document), id);
                if after.documents.contains_key(&id) || is_duplicate {
                    refused.push(number);
                } else {
                    after.documents.insert(id, Arc::new(document));
                }
            }
            (count, buffer, refused, after.documents)
        });
        let last = self.new_session();
        let writes = refused.len() < documents as usize;
        let apply = |model: &mut Model| {
            let collection_model = model.entry(name.clone()).or_default();
            collection_model.documents = after;
            collection_model.last = if writes {
                Some(last)
            } else {
                collection_model.last
            };
        };
        let statements = vec![STATEMENT; documents as usize];
        let write_options = retryable(&last, &statements);
        match collection.insert_with(Bytes::from(buffer), InsertOrder::Unordered, &write_options) {
            Ok(inserted) => {
                self.record("insert", documents);
                let found: Vec<usize> = inserted.errors.iter().map(|it| it.index).collect();
                assert_eq!(found, refused, "refused documents");
                self.record_write(apply);
            }
            Err(error) => {
                self.record("insert failed", documents);
                self.tolerate(&error);
                self.record_uncertain_write(&error, apply);
            }
        }
    }

    /// Updates or deletes a random document.
    pub(crate) fn change(&self) {
        let Some(name) = self.random_collection() else {
            return;
        };
        let collection = self.collection(&name);
        let has_unique = has_unique(&collection);
        let (id, new, delete) = self.with(|state| {
            let ids: Vec<i32> = state
                .model_collection(&name)
                .documents
                .keys()
                .copied()
                .collect();
            let known = !ids.is_empty() && !state.random.one_in(8);
            let id = if known {
                state.random.pick(&ids)
            } else {
                state.random.below(ID_COUNT) as i32
            };
            let new = document(id, &mut state.random);
            (id, new, state.random.one_in(3))
        });
        let old = self.with(|state| state.model_collection(&name).documents.get(&id).cloned());
        let is_duplicate = self.with(|state| {
            let others = state.model_collection(&name);
            has_unique && others.has_unique(unique_key(&new), id)
        });
        let last = self.new_session();
        let apply = |model: &mut Model| {
            let collection_model = model.entry(name.clone()).or_default();
            collection_model.last = Some(last);
            if delete {
                collection_model.documents.remove(&id);
            } else {
                collection_model.documents.insert(id, Arc::new(new.clone()));
            }
        };
        let write_options = retryable(&last, &[STATEMENT]);
        let update = if delete { None } else { Some(&new) };
        match replace(&collection, id, old.as_deref(), update, write_options) {
            Ok(Outcome::NotFound) => {
                self.record("change nothing", id as u64);
                assert!(old.is_none(), "the engine does not find {id}");
            }
            Ok(outcome) => {
                self.record(if delete { "delete" } else { "update" }, id as u64);
                assert!(
                    old.is_some(),
                    "the engine found {id}, which does not exist: {outcome:?}"
                );
                assert!(delete || !is_duplicate, "u of {id} is a duplicate");
                self.record_write(apply);
            }
            Err(Error::DuplicateKey(_)) => {
                assert!(is_duplicate && !delete, "u of {id} is not a duplicate")
            }
            Err(error) => {
                self.record("change failed", id as u64);
                self.tolerate(&error);
                self.record_uncertain_write(&error, apply);
            }
        }
    }

    pub(crate) fn drop_index(&self) {
        let Some(name) = self.random_collection() else {
            return;
        };
        let indexes = self.collection(&name).all_indexes();
        let number = self.below(indexes.len() as u64) as usize;
        let index = indexes[number].definition.name.clone();
        if number == 0 {
            return;
        }
        let was_ready = indexes[number].is_ready();
        let dropped = self.collection(&name).drop_index(&index);
        self.record(&format!("drop index {index}"), u64::from(dropped.is_ok()));
        let apply = |model: &mut Model| {
            let collection_model = model.entry(name.clone()).or_default();
            collection_model.indexes.remove(&index);
            // An index that is being built is removed from the catalog when its build notices the
            // drop.
            if was_ready {
                collection_model.uncertain_indexes.remove(&index);
            } else {
                collection_model.uncertain_indexes.insert(index.clone());
            }
        };
        match dropped {
            Ok(()) => self.record_write(apply),
            Err(Error::IndexNotFound(_)) => {}
            Err(error) => {
                self.tolerate(&error);
                self.with(|state| {
                    let collection_model = state.model_collection(&name);
                    collection_model.indexes.remove(&index);
                    collection_model.uncertain_indexes.insert(index.clone());
                });
                self.record_uncertain_write(&error, apply);
            }
        }
    }
}

/// The options of a retryable write.
pub(crate) fn retryable<'a>(last: &RetryableWrite, numbers: &'a [i32]) -> WriteOptions<'a> {
    WriteOptions {
        statements: Some(Statements {
            origin: last.origin,
            numbers,
            image: RetainedImage::Before,
        }),
        ..NO_WAIT
    }
}

pub(crate) fn has_unique(collection: &Collection) -> bool {
    let mut indexes = collection.all_indexes().into_iter().skip(1);
    indexes.any(|index| index.definition.unique && index.is_ready())
}

/// Replaces the document `id` by `update`, or deletes it if there is no update.
pub(crate) fn replace(
    collection: &Collection,
    id: i32,
    old: Option<&DocumentBuf>,
    update: Option<&DocumentBuf>,
    write_options: WriteOptions<'_>,
) -> Result<Outcome, Error> {
    let found = collection.reader()?.find_id(ValueRef::Int32(id))?;
    let Some(record) = found else {
        return Ok(Outcome::NotFound);
    };
    let mut batch = collection.batch_with(write_options);
    let outcome = batch.change(record, |newest| {
        assert_eq!(Some(newest.as_bytes()), old.map(DocumentBuf::as_bytes));
        Ok::<Change, Error>(match update {
            Some(update) => Change::Replace(update.clone()),
            None => Change::Delete,
        })
    })?;
    batch.commit()?;
    Ok(outcome)
}
