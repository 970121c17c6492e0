//! Steps that write: documents, collections, what indexes there are.

use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    Change, Collection, DocumentValidation, Error, Kept, Outcome, Renaming, Statements, Terms,
};
use windrow_document::{DocumentBuf, ValueRef, doc};

use crate::model::{Last, Model, Things, unique_of};
use crate::random::Random;
use crate::world::{STATEMENT, World, namespace};

/// `_id`s are below this, so that many are met again.
pub(crate) const IDS: u64 = 200;
/// Nobody else is there who could end a transaction that is waited for.
const IMPATIENT: Terms<'static> = Terms {
    validation: DocumentValidation::Asked,
    transaction: None,
    statements: None,
    patience: &|| true,
};
const NAMES: [&str; 3] = ["one", "two", "three"];
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
    if !random.once_in(8) {
        document.push("u", random.below(5_000) as i32);
    }
    if !random.once_in(3) {
        let tags = 0..random.below(5);
        let tags: Vec<i32> = tags.map(|_| random.below(20) as i32).collect();
        document.push("tags", tags);
    }
    // So few have an array here that the last is gone now and then.
    match id % 40 {
        7 => document.push("rare", vec![id, random.below(3) as i32]),
        _ => document.push("rare", id % 3),
    }
    if random.once_in(2) {
        let most = if random.once_in(10) { 2_000 } else { 12 };
        let words = 0..random.below(most);
        let words: Vec<&str> = words.map(|_| random.pick(&WORDS)).collect();
        document.push("text", words.join(" "));
    }
    document
}

impl World {
    pub(crate) fn create(&self) {
        let name = self.with(|state| state.random.pick(&NAMES));
        let is_there = self.with(|state| state.model.contains_key(name));
        let mut options = DocumentBuf::new();
        if self.once_in(2) {
            let clustered = doc! { "key": { "_id": 1 }, "unique": true, "v": 2, "name": "_id_" };
            options.push("clusteredIndex", clustered);
        }
        let created = self
            .engine()
            .create(&namespace(name), options.as_document());
        self.note("create", u64::from(created.is_ok()));
        let apply = |model: &mut Model| _ = model.insert(name.to_owned(), Things::default());
        match created {
            Ok(_) => {
                assert!(!is_there, "{name} was created twice");
                self.wrote(apply);
            }
            Err(Error::NamespaceExists(_)) => assert!(is_there, "there is no {name}"),
            Err(error) => {
                self.tolerate(&error);
                let is_shown = self.engine().collection(&namespace(name)).is_some();
                self.may_have_named(&error, apply, is_shown && !is_there);
            }
        }
    }

    pub(crate) fn drop_collection(&self) {
        let Some(name) = self.some_collection() else {
            return;
        };
        let dropped = self.engine().drop_collection(&namespace(&name));
        self.note("drop", u64::from(dropped.is_ok()));
        let apply = |model: &mut Model| _ = model.remove(&name);
        match dropped {
            Ok(was_there) => {
                assert!(was_there, "{name} was not there to be dropped");
                self.wrote(apply);
            }
            Err(error) => {
                self.tolerate(&error);
                let is_shown = self.engine().collection(&namespace(&name)).is_none();
                self.may_have_named(&error, apply, is_shown);
            }
        }
    }

    pub(crate) fn rename(&self) {
        let Some(from) = self.some_collection() else {
            return;
        };
        let to = self.with(|state| state.random.pick(&NAMES));
        let replace = self.once_in(2);
        let is_there = self.with(|state| state.model.contains_key(to));
        let renamed = self.engine().rename(
            &namespace(&from),
            &namespace(to),
            &Renaming {
                drop_target: replace,
                ..Renaming::default()
            },
        );
        self.note("rename", u64::from(renamed.is_ok()));
        let apply = |model: &mut Model| {
            let things = model.remove(&from).unwrap_or_default();
            model.insert(to.to_owned(), things);
        };
        match renamed {
            Ok(()) => {
                assert!(from != to && (replace || !is_there), "{from} to {to}");
                self.wrote(apply);
            }
            Err(Error::NamespaceExists(_)) => assert!(from == to || is_there && !replace),
            Err(error) => {
                self.tolerate(&error);
                let is_shown = self.engine().collection(&namespace(&from)).is_none();
                self.may_have_named(&error, apply, is_shown);
            }
        }
    }

    pub(crate) fn insert(&self) {
        let Some(name) = self.some_collection() else {
            return;
        };
        let collection = self.collection(&name);
        let has_unique = has_unique(&collection);
        let (documents, buffer, refused, after) = self.with(|state| {
            let growing = state.random.once_in(2);
            let count = 1 + state.random.below(30);
            let mut after = state.things(&name).clone();
            let (mut buffer, mut refused) = (Vec::new(), Vec::new());
            for number in 0..count as usize {
                let largest = after.documents.last_key_value().map_or(0, |(id, _)| *id);
                let id = match growing {
                    true => largest + 1,
                    false => state.random.below(IDS) as i32,
                };
                let document = document(id, &mut state.random);
                buffer.extend_from_slice(document.as_bytes());
                let is_double = has_unique && after.has_unique(unique_of(&document), id);
                match after.documents.contains_key(&id) || is_double {
                    true => refused.push(number),
                    false => _ = after.documents.insert(id, Arc::new(document)),
                }
            }
            (count, buffer, refused, after.documents)
        });
        let last = self.new_session();
        let writes = refused.len() < documents as usize;
        let apply = |model: &mut Model| {
            let things = model.entry(name.clone()).or_default();
            things.documents = after;
            things.last = if writes { Some(last) } else { things.last };
        };
        let statements = vec![STATEMENT; documents as usize];
        let terms = retryable(&last, &statements);
        match collection.insert_on(Bytes::from(buffer), false, &terms) {
            Ok(inserted) => {
                self.note("insert", documents);
                let found: Vec<usize> = inserted.errors.iter().map(|(one, _)| *one).collect();
                assert_eq!(found, refused, "documents that are there already");
                self.wrote(apply);
            }
            Err(error) => {
                self.note("insert failed", documents);
                self.tolerate(&error);
                self.may_have_written(&error, apply);
            }
        }
    }

    /// Updates or deletes a document.
    pub(crate) fn change(&self) {
        let Some(name) = self.some_collection() else {
            return;
        };
        let collection = self.collection(&name);
        let has_unique = has_unique(&collection);
        let (id, new, delete) = self.with(|state| {
            let ids: Vec<i32> = state.things(&name).documents.keys().copied().collect();
            let known = !ids.is_empty() && !state.random.once_in(8);
            let id = match known {
                true => state.random.pick(&ids),
                false => state.random.below(IDS) as i32,
            };
            let new = document(id, &mut state.random);
            (id, new, state.random.once_in(3))
        });
        let old = self.with(|state| state.things(&name).documents.get(&id).cloned());
        let is_double = self.with(|state| {
            let others = state.things(&name);
            has_unique && others.has_unique(unique_of(&new), id)
        });
        let last = self.new_session();
        let apply = |model: &mut Model| {
            let things = model.entry(name.clone()).or_default();
            things.last = Some(last);
            match delete {
                true => _ = things.documents.remove(&id),
                false => _ = things.documents.insert(id, Arc::new(new.clone())),
            }
        };
        let terms = retryable(&last, &[STATEMENT]);
        match replace(&collection, id, old.as_deref(), (&new, delete), terms) {
            Ok(Outcome::Gone) => {
                self.note("change nothing", id as u64);
                assert!(old.is_none(), "{id} is not found");
            }
            Ok(outcome) => {
                self.note(if delete { "delete" } else { "update" }, id as u64);
                assert!(old.is_some(), "{id} is found: {outcome:?}");
                assert!(delete || !is_double, "u of {id} is there twice");
                self.wrote(apply);
            }
            Err(Error::DuplicateKey(_)) => assert!(is_double && !delete, "u of {id} is new"),
            Err(error) => {
                self.note("change failed", id as u64);
                self.tolerate(&error);
                self.may_have_written(&error, apply);
            }
        }
    }

    pub(crate) fn drop_index(&self) {
        let Some(name) = self.some_collection() else {
            return;
        };
        let indexes = self.collection(&name).indexes();
        let number = self.below(indexes.len() as u64) as usize;
        let index = indexes[number].definition.name.clone();
        if number == 0 {
            return;
        }
        let was_ready = indexes[number].is_ready();
        let dropped = self.collection(&name).drop_index(&index);
        self.note(&format!("drop index {index}"), u64::from(dropped.is_ok()));
        let gone = |model: &mut Model| {
            let things = model.entry(name.clone()).or_default();
            things.indexes.remove(&index);
            // The catalog forgets one that is being built when its build has noticed.
            if was_ready {
                things.doubtful_indexes.remove(&index);
            } else {
                things.doubtful_indexes.insert(index.clone());
            }
        };
        match dropped {
            Ok(()) => self.wrote(gone),
            Err(Error::IndexNotFound(_)) => {}
            Err(error) => {
                self.tolerate(&error);
                self.with(|state| {
                    let things = state.things(&name);
                    things.indexes.remove(&index);
                    things.doubtful_indexes.insert(index.clone());
                });
                self.may_have_written(&error, gone);
            }
        }
    }
}

/// The terms of a retryable write.
fn retryable<'a>(last: &Last, numbers: &'a [i32]) -> Terms<'a> {
    Terms {
        statements: Some(Statements {
            origin: last.origin,
            numbers,
            kept: Kept::Before,
        }),
        ..IMPATIENT
    }
}

pub(crate) fn has_unique(collection: &Collection) -> bool {
    let mut indexes = collection.indexes().into_iter().skip(1);
    indexes.any(|index| index.definition.unique && index.is_ready())
}

fn replace(
    collection: &Collection,
    id: i32,
    old: Option<&DocumentBuf>,
    (new, delete): (&DocumentBuf, bool),
    terms: Terms<'_>,
) -> Result<Outcome, Error> {
    let found = collection.reader()?.find_id(ValueRef::Int32(id))?;
    let Some(record) = found else {
        return Ok(Outcome::Gone);
    };
    let mut batch = collection.batch_on(terms);
    let outcome = batch.change(record, |newest| {
        assert_eq!(Some(newest.as_bytes()), old.map(DocumentBuf::as_bytes));
        Ok::<Change, Error>(match delete {
            true => Change::Delete,
            false => Change::Replace(new.clone()),
        })
    })?;
    batch.commit()?;
    Ok(outcome)
}
