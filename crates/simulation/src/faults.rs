//! Steps in which the disk fails or everything ends, and what is found again afterwards.

use std::collections::BTreeSet;

use windrow_collection::{Direction, Error};
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_storage::Crash;

use crate::model::{Documents, Model, Things};
use crate::world::{Fault, World};

impl World {
    /// An error of the engine: right where something is wrong with the disk.
    pub(crate) fn tolerate(&self, error: &Error) {
        let (fault, was_full) = self.with(|state| (state.fault, state.was_full));
        match error {
            Error::Storage(storage) if storage.is_full() => {
                assert!(was_full || fault == Fault::Broken, "{error}");
            }
            Error::WaitGivenUp => {
                let is_open = self.with(|state| state.open.is_some());
                assert!(is_open, "there is no transaction to wait for");
            }
            Error::Storage(_) => assert_eq!(fault, Fault::Broken, "{error}"),
            _ => panic!("{error:?}"),
        }
    }

    /// From now on the disk has hardly room, or has again.
    pub(crate) fn fill_or_free(&self) {
        self.with(|state| match state.fault {
            Fault::None => {
                let room = state.random.below(20_000);
                state.disk.set_bytes_max(Some(state.disk.bytes() + room));
                (state.fault, state.was_full) = (Fault::Full, true);
            }
            Fault::Full => {
                state.disk.set_bytes_max(None);
                state.fault = Fault::None;
            }
            Fault::Broken => {}
        });
        self.note(
            "room",
            self.with(|state| u64::from(state.fault == Fault::None)),
        );
    }

    /// From now on, or from a little later on, writes or syncs fail.
    pub(crate) fn break_disk(&self) {
        let kind = self.below(3);
        self.with(|state| {
            state.disk.set_bytes_max(None);
            state.fault = Fault::Broken;
            let left = state.random.below(30);
            match kind {
                0 => state.disk.set_failing_writes(true),
                1 => state.disk.set_failing_syncs(true),
                _ => state.disk.set_changes_left(Some(left)),
            }
        });
        self.note("break", kind);
    }

    pub(crate) fn sync(&self) {
        let synced = self.engine().sync();
        self.note("sync", u64::from(synced.is_ok()));
        if let Err(error) = synced {
            self.tolerate(&error);
        }
    }

    /// Ends the process, in an orderly way or not, or the power, and opens what is left.
    pub(crate) fn crash(&self) {
        let kind = self.below(4);
        let synced = self.with(|state| state.engine.statistics().synced);
        if kind == 3 {
            self.close();
        }
        let disk = self.with(|state| {
            let crash = match kind {
                0 | 3 => Crash::OfProcess,
                1 => Crash::LosingUnsynced,
                _ => Crash::Tearing {
                    seed: state.random.next_u64(),
                },
            };
            state.disk.crash(crash)
        });
        let synced = match kind {
            0 | 3 => u64::MAX,
            _ => synced,
        };
        self.note("crash", kind);
        if let Err(error) = self.reopen(disk) {
            panic!("it cannot be opened again: {error}");
        }
        self.find_again(synced);
    }

    /// Finds which of the models that may be there is.
    fn find_again(&self, synced: u64) {
        let found = self.read_all();
        let candidates = self.with(|state| {
            let known = |(position, _): &(u64, Model)| *position <= synced;
            let first = state.history.iter().rposition(known).unwrap_or(0);
            let doubtful = state.doubtful.take();
            let mut all: Vec<Model> = state.history.drain(..).skip(first).map(|it| it.1).collect();
            all.extend(doubtful);
            all
        });
        let same = |model: &&Model| {
            let of = |(name, things): (&String, &Things)| (name.clone(), things.documents.clone());
            model.iter().map(of).eq(found.iter().cloned()) && self.remembers(model)
        };
        // Models that differ in indexes alone: what one of them does not know is doubtful.
        let matching: Vec<&Model> = candidates.iter().filter(same).collect();
        let Some(newest) = matching.last() else {
            let counts = |model: &Model| -> Vec<(String, usize)> {
                let count = |(name, it): (&String, &Things)| (name.clone(), it.documents.len());
                model.iter().map(count).collect()
            };
            let found: Vec<(String, usize)> = found
                .iter()
                .map(|(name, it)| (name.clone(), it.len()))
                .collect();
            panic!(
                "{found:?} is none of the {} that may be there, as {:?}",
                candidates.len(),
                candidates.iter().map(counts).collect::<Vec<_>>()
            );
        };
        let mut model = Model::clone(newest);
        for (name, things) in &mut model {
            let others = || matching.iter().filter_map(|it| it.get(name));
            let any: BTreeSet<String> = others()
                .flat_map(|it| it.indexes.iter().chain(&it.doubtful_indexes))
                .cloned()
                .collect();
            things
                .indexes
                .retain(|index| others().all(|it| it.indexes.contains(index)));
            things.doubtful_indexes = any.difference(&things.indexes).cloned().collect();
        }
        self.with(|state| {
            let position = state.engine.statistics().written;
            state.history.push((position, model.clone()));
            state.model = model;
        });
    }

    fn read_all(&self) -> Vec<(String, Documents)> {
        let read = |collection: &windrow_collection::Collection| {
            let mut cursor = collection
                .reader()
                .expect("a reader")
                .records(Direction::Forward);
            let mut documents = Documents::new();
            while cursor.next().expect("a document") {
                let document = Document::from_validated(cursor.document());
                let Some(ValueRef::Int32(id)) = document.get("_id") else {
                    panic!("{document:?}");
                };
                let document = DocumentBuf::from_bytes(cursor.document().to_vec());
                documents.insert(id, document.expect("a sound document").into());
            }
            documents
        };
        let collections = self.engine().collections("test");
        let named = collections
            .iter()
            .map(|it| (it.namespace().collection, read(it)));
        named.collect()
    }

    /// One step, of those that may happen now.
    pub(crate) fn step(&self) {
        let inside = self.with(|state| {
            let inside = !state.busy.is_empty();
            state.was_full = state.fault == Fault::Full || inside && state.was_full;
            inside
        });
        let is_broken = self.with(|state| state.fault == Fault::Broken);
        if is_broken && !inside && self.once_in(4) {
            self.crash();
            return;
        }
        match self.below(if inside { 70 } else { 78 }) {
            0..14 => self.insert(),
            14..28 => self.change(),
            28..31 => self.settle(),
            31..36 => self.fold(),
            36..40 => self.merge(),
            40..42 => self.create_index(),
            42 => self.drop_index(),
            43 => self.create(),
            44..47 => self.find(),
            47..49 => self.check(),
            49..53 => self.hold(),
            53..56 => self.sync(),
            56 => self.rename(),
            57 if self.once_in(3) => self.drop_collection(),
            58 => self.fill_or_free(),
            59 if self.once_in(3) => self.break_disk(),
            60..62 => self.look_back(),
            62..70 => self.transact(),
            70..73 => self.validate(),
            73..75 => self.resume_builds(),
            75 => self.crash(),
            _ => {}
        }
    }
}
