//! Steps of a transaction that stays open between other steps. It reads and writes in several
//! collections, and is committed, aborted, or lost in a crash.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    Change, Collection, Error, InsertOrder, Origin, SessionKey, Transaction, WriteOptions,
};
use windrow_document::{DocumentBuf, ValueRef};

use crate::model::{Model, ModelCollection, unique_key};
use crate::reads::check_records;
use crate::world::{OpenTransaction, State, World, namespace};
use crate::writes::{ID_COUNT, document, has_unique};

impl World {
    /// Begins a transaction, or continues the open one.
    pub(crate) fn transact(&self) {
        if !self.with(|state| state.transaction.is_some()) {
            let number = self.with(|state| state.random.below(1_000)) as i64;
            let origin = Origin {
                session: SessionKey([7; 16]),
                number,
            };
            let transaction = Arc::new(self.engine().begin(origin));
            self.with(|state| {
                let before = state.model.clone();
                state.transaction = Some(OpenTransaction {
                    transaction,
                    model: before.clone(),
                    before,
                    written: BTreeSet::new(),
                });
            });
            self.record("begin", number as u64);
            return;
        }
        match self.below(10) {
            0..4 => self.write_in_transaction(),
            4..7 => self.read_in_transaction(),
            7..9 => self.commit(),
            _ => self.abort(),
        }
    }

    /// Aborts the open transaction.
    pub(crate) fn abort(&self) {
        let open = self.with(|state| state.transaction.take());
        if let Some(open) = open {
            open.transaction.abort();
            self.record("abort", open.written.len() as u64);
        }
    }

    fn commit(&self) {
        let Some(open) = self.with(|state| state.transaction.take()) else {
            return;
        };
        let committed = open.transaction.commit();
        self.record("commit", u64::from(committed.is_ok()));
        let apply = |model: &mut Model| {
            for (name, id) in &open.written {
                let new = open.model.get(name).and_then(|it| it.documents.get(id));
                let documents = &mut model.entry(name.clone()).or_default().documents;
                match new {
                    Some(new) => _ = documents.insert(*id, new.clone()),
                    None => _ = documents.remove(id),
                }
            }
        };
        match committed {
            Ok(()) => self.record_write(apply),
            Err(error) => {
                self.tolerate(&error);
                self.record_uncertain_write(&error, apply);
            }
        }
    }

    /// Returns a random collection in the open transaction. Aborts the transaction if the
    /// collection was changed since.
    fn transaction_collection(&self) -> Option<(Arc<Transaction>, String, Arc<Collection>)> {
        let (transaction, name) = self.with(|state| {
            let open = state.transaction.as_ref()?;
            let names: Vec<String> = open.before.keys().cloned().collect();
            let transaction = open.transaction.clone();
            let count = names.len() as u64;
            let name = names.get(state.random.below(count.max(1)) as usize)?;
            Some((transaction, name.clone()))
        })?;
        match transaction.collection(&namespace(&name)) {
            Ok(Some(collection)) => Some((transaction, name, collection)),
            Ok(None) | Err(Error::CollectionChanged(_) | Error::LockTimeout) => {
                self.abort();
                None
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    fn read_in_transaction(&self) {
        let Some((transaction, name, collection)) = self.transaction_collection() else {
            return;
        };
        let reader = transaction.reader(&collection).expect("a reader");
        let collection_model = self.with(|state| state.transaction_model(&name));
        check_records(
            &reader,
            &collection_model.documents,
            "the documents in a transaction",
        );
        self.record(
            "read in transaction",
            collection_model.documents.len() as u64,
        );
    }

    /// Inserts, changes or deletes a document in the open transaction.
    fn write_in_transaction(&self) {
        let Some((transaction, name, collection)) = self.transaction_collection() else {
            return;
        };
        let (new, id, deletes) = self.with(|state| {
            let id = state.random.below(ID_COUNT) as i32;
            let new = document(id, &mut state.random);
            (new, id, state.random.one_in(3))
        });
        let collection_model = self.with(|state| state.transaction_model(&name));
        let exists = collection_model.documents.contains_key(&id);
        let written = if exists {
            change(&transaction, &collection, &new, deletes)
        } else {
            insert(&transaction, &collection, &new)
        };
        self.record("write in transaction", u64::from(written.is_ok()));
        let is_duplicate =
            has_unique(&collection) && collection_model.has_unique(unique_key(&new), id);
        match written {
            Ok(()) => {
                assert!(
                    exists && deletes || !is_duplicate,
                    "u of {id} is there twice"
                );
                self.with(|state| {
                    let now = state.model.get(&name).cloned().unwrap_or_default();
                    let Some(open) = &mut state.transaction else {
                        return;
                    };
                    let before = open.before.get(&name).and_then(|it| it.documents.get(&id));
                    assert_eq!(
                        now.documents.get(&id),
                        before,
                        "{id} of {name} was changed since the transaction began"
                    );
                    let documents = &mut open.model.entry(name.clone()).or_default().documents;
                    if exists && deletes {
                        _ = documents.remove(&id)
                    } else {
                        _ = documents.insert(id, Arc::new(new))
                    }
                    open.written.insert((name, id));
                });
            }
            Err(Error::DuplicateKey(_)) => {
                assert!(is_duplicate, "u of {id} is not a duplicate");
                self.abort();
            }
            Err(Error::WriteConflict(_) | Error::NoRoomForTransactions) => self.abort(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

impl State {
    fn transaction_model(&self, name: &str) -> ModelCollection {
        let open = self.transaction.as_ref();
        let collection_model = open.and_then(|open| open.model.get(name));
        collection_model.cloned().unwrap_or_default()
    }
}

fn insert(
    transaction: &Transaction,
    collection: &Collection,
    new: &DocumentBuf,
) -> Result<(), Error> {
    let write_options = WriteOptions {
        transaction: Some(transaction),
        ..WriteOptions::default()
    };
    let bytes = Bytes::copy_from_slice(new.as_bytes());
    let inserted = collection.insert_with(bytes, InsertOrder::Ordered, &write_options)?;
    inserted.check_all_inserted()
}

fn change(
    transaction: &Transaction,
    collection: &Collection,
    new: &DocumentBuf,
    deletes: bool,
) -> Result<(), Error> {
    let reader = transaction.reader(collection)?;
    let id = new.get("_id").unwrap_or(ValueRef::Null);
    let record = reader
        .find_id(id)?
        .expect("the transaction sees the document");
    let mut batch = collection.batch_with(WriteOptions {
        transaction: Some(transaction),
        ..WriteOptions::default()
    });
    batch.change(record, |_| {
        Ok::<Change, Error>(if deletes {
            Change::Delete
        } else {
            Change::Replace(new.clone())
        })
    })?;
    batch.commit()
}
