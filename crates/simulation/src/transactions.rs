//! Steps of a transaction that stays open between others: it reads and writes in several collections,
//! and ends with a commit, without one, or with a crash.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{Change, Collection, Error, Origin, Terms, Transaction};
use windrow_document::{DocumentBuf, ValueRef};

use crate::model::{Model, Things, unique_of};
use crate::reads::check_records;
use crate::world::{Open, State, World, namespace};
use crate::writes::{IDS, document, has_unique};

impl World {
    /// Begins a transaction, or goes on with the one that is open.
    pub(crate) fn transact(&self) {
        if !self.with(|state| state.open.is_some()) {
            let number = self.with(|state| state.random.below(1_000)) as i64;
            let origin = Origin {
                session: [7; 16],
                number,
            };
            let transaction = Arc::new(self.engine().begin(origin));
            self.with(|state| {
                let before = state.model.clone();
                state.open = Some(Open {
                    transaction,
                    model: before.clone(),
                    before,
                    touched: BTreeSet::new(),
                });
            });
            self.note("begin", number as u64);
            return;
        }
        match self.below(10) {
            0..4 => self.write_within(),
            4..7 => self.read_within(),
            7..9 => self.commit(),
            _ => self.abort(),
        }
    }

    /// Ends the open transaction without its writes.
    pub(crate) fn abort(&self) {
        let open = self.with(|state| state.open.take());
        if let Some(open) = open {
            open.transaction.abort();
            self.note("abort", open.touched.len() as u64);
        }
    }

    fn commit(&self) {
        let Some(open) = self.with(|state| state.open.take()) else {
            return;
        };
        let committed = open.transaction.commit();
        self.note("commit", u64::from(committed.is_ok()));
        let apply = |model: &mut Model| {
            for (name, id) in &open.touched {
                let new = open.model.get(name).and_then(|it| it.documents.get(id));
                let documents = &mut model.entry(name.clone()).or_default().documents;
                match new {
                    Some(new) => _ = documents.insert(*id, new.clone()),
                    None => _ = documents.remove(id),
                }
            }
        };
        match committed {
            Ok(()) => self.wrote(apply),
            Err(error) => {
                self.tolerate(&error);
                self.may_have_written(&error, apply);
            }
        }
    }

    /// A collection as the open transaction has it; it ends where the collection is another by now.
    fn within(&self) -> Option<(Arc<Transaction>, String, Arc<Collection>)> {
        let (transaction, name) = self.with(|state| {
            let open = state.open.as_ref()?;
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

    fn read_within(&self) {
        let Some((transaction, name, collection)) = self.within() else {
            return;
        };
        let reader = transaction.reader(&collection).expect("a reader");
        let things = self.with(|state| state.open_things(&name));
        check_records(&reader, &things.documents, "what a transaction sees");
        self.note("read within", things.documents.len() as u64);
    }

    /// Inserts, changes or deletes a document.
    fn write_within(&self) {
        let Some((transaction, name, collection)) = self.within() else {
            return;
        };
        let (new, id, deletes) = self.with(|state| {
            let id = state.random.below(IDS) as i32;
            let new = document(id, &mut state.random);
            (new, id, state.random.once_in(3))
        });
        let things = self.with(|state| state.open_things(&name));
        let is_there = things.documents.contains_key(&id);
        let written = match is_there {
            true => change(&transaction, &collection, &new, deletes),
            false => insert(&transaction, &collection, &new),
        };
        self.note("write within", u64::from(written.is_ok()));
        let is_double = has_unique(&collection) && things.has_unique(unique_of(&new), id);
        match written {
            Ok(()) => {
                assert!(
                    is_there && deletes || !is_double,
                    "u of {id} is there twice"
                );
                self.with(|state| {
                    let now = state.model.get(&name).cloned().unwrap_or_default();
                    let Some(open) = &mut state.open else {
                        return;
                    };
                    let before = open.before.get(&name).and_then(|it| it.documents.get(&id));
                    assert_eq!(
                        now.documents.get(&id),
                        before,
                        "{id} of {name} was changed since the transaction began"
                    );
                    let documents = &mut open.model.entry(name.clone()).or_default().documents;
                    match is_there && deletes {
                        true => _ = documents.remove(&id),
                        false => _ = documents.insert(id, Arc::new(new)),
                    }
                    open.touched.insert((name, id));
                });
            }
            Err(Error::DuplicateKey(_)) => {
                assert!(is_double, "u of {id} is new");
                self.abort();
            }
            Err(Error::WriteConflict(_) | Error::NoRoomForTransactions) => self.abort(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

impl State {
    fn open_things(&self, name: &str) -> Things {
        let open = self.open.as_ref();
        let things = open.and_then(|open| open.model.get(name));
        things.cloned().unwrap_or_default()
    }
}

fn insert(
    transaction: &Transaction,
    collection: &Collection,
    new: &DocumentBuf,
) -> Result<(), Error> {
    let terms = Terms {
        transaction: Some(transaction),
        ..Terms::default()
    };
    let bytes = Bytes::copy_from_slice(new.as_bytes());
    let inserted = collection.insert_on(bytes, true, &terms)?;
    match inserted.errors.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

fn change(
    transaction: &Transaction,
    collection: &Collection,
    new: &DocumentBuf,
    deletes: bool,
) -> Result<(), Error> {
    let reader = transaction.reader(collection)?;
    let id = new.get("_id").unwrap_or(ValueRef::Null);
    let record = reader.find_id(id)?.expect("a document that it sees");
    let mut batch = collection.batch_on(Terms {
        transaction: Some(transaction),
        ..Terms::default()
    });
    batch.change(record, |_| {
        Ok::<Change, Error>(match deletes {
            true => Change::Delete,
            false => Change::Replace(new.clone()),
        })
    })?;
    batch.commit()
}
