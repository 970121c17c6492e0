//! Steps that make the disk fail or crash the engine, and the comparison of the recovered state
//! with the model.

use std::collections::BTreeSet;

use windrow_collection::{Error, Position};
use windrow_storage::Crash;

use crate::model::{Model, ModelCollection};
use crate::reads::documents_of;
use crate::world::{Fault, World};

impl World {
    /// Asserts that an error of the engine is justified by a fault of the disk or an open
    /// transaction.
    pub(crate) fn tolerate(&self, error: &Error) {
        let (fault, was_full) = self.with(|state| (state.fault, state.was_full));
        match error {
            Error::Storage(storage) if storage.is_full() => {
                assert!(was_full || fault == Fault::Failing, "{error}");
            }
            Error::Interrupted(_) => {
                let is_open = self.with(|state| state.transaction.is_some());
                assert!(is_open, "no transaction is open");
            }
            Error::Storage(_) => assert_eq!(fault, Fault::Failing, "{error}"),
            _ => panic!("{error:?}"),
        }
    }

    /// Limits the space of the disk, or removes the limit.
    pub(crate) fn limit_space(&self) {
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
            Fault::Failing => {}
        });
        self.record(
            "room",
            self.with(|state| u64::from(state.fault == Fault::None)),
        );
    }

    /// Makes writes or syncs fail, immediately or after some changes.
    pub(crate) fn break_disk(&self) {
        let kind = self.below(3);
        self.with(|state| {
            state.disk.set_bytes_max(None);
            state.fault = Fault::Failing;
            let changes_left = state.random.below(30);
            match kind {
                0 => state.disk.set_failing_writes(true),
                1 => state.disk.set_failing_syncs(true),
                _ => state.disk.set_changes_left(Some(changes_left)),
            }
        });
        self.record("break", kind);
    }

    pub(crate) fn sync(&self) {
        let synced = self.engine().sync();
        self.record("sync", u64::from(synced.is_ok()));
        if let Err(error) = synced {
            self.tolerate(&error);
        }
    }

    /// Closes or crashes the engine, or loses power, and opens the engine on the remaining data.
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
            0 | 3 => Position::MAX,
            _ => synced,
        };
        self.record("crash", kind);
        if let Err(error) = self.reopen(disk) {
            panic!("the engine cannot be reopened: {error}");
        }
        self.check_recovery(synced);
    }

    /// Finds the model that the recovered state equals. It must be a state that the crash allows.
    fn check_recovery(&self, synced: Position) {
        let found = documents_of(&self.engine()).expect("the documents");
        let candidates = self.with(|state| {
            let known = |(position, _): &(Position, Model)| *position <= synced;
            let first = state.history.iter().rposition(known).unwrap_or(0);
            let uncertain = state.uncertain.take();
            let mut all: Vec<Model> = state.history.drain(..).skip(first).map(|it| it.1).collect();
            all.extend(uncertain);
            all
        });
        let same = |model: &&Model| {
            let of = |(name, collection_model): (&String, &ModelCollection)| {
                (name.clone(), collection_model.documents.clone())
            };
            model.iter().map(of).eq(found.clone()) && self.remembers_writes(model)
        };
        // Several models can differ in their indexes only. Indexes that are not in all of them are
        // uncertain.
        let matching: Vec<&Model> = candidates.iter().filter(same).collect();
        let Some(newest) = matching.last() else {
            let counts = |model: &Model| -> Vec<(String, usize)> {
                let count =
                    |(name, it): (&String, &ModelCollection)| (name.clone(), it.documents.len());
                model.iter().map(count).collect()
            };
            let found: Vec<(String, usize)> = found
                .iter()
                .map(|(name, it)| (name.clone(), it.len()))
                .collect();
            panic!(
                "{found:?} is none of the {} possible states: {:?}",
                candidates.len(),
                candidates.iter().map(counts).collect::<Vec<_>>()
            );
        };
        let mut model = Model::clone(newest);
        for (name, collection_model) in &mut model {
            let others = || matching.iter().filter_map(|it| it.get(name));
            let all: BTreeSet<String> = others()
                .flat_map(|it| it.indexes.iter().chain(&it.uncertain_indexes))
                .cloned()
                .collect();
            collection_model
                .indexes
                .retain(|index| others().all(|it| it.indexes.contains(index)));
            collection_model.uncertain_indexes =
                all.difference(&collection_model.indexes).cloned().collect();
        }
        self.with(|state| {
            let position = state.engine.statistics().written;
            state.history.push((position, model.clone()));
            state.model = model;
        });
    }

    /// Runs a random step that is possible in the current state.
    pub(crate) fn step(&self) {
        let inside = self.with(|state| {
            let inside = !state.busy.is_empty();
            state.was_full = state.fault == Fault::Full || inside && state.was_full;
            inside
        });
        let is_failing = self.with(|state| state.fault == Fault::Failing);
        if is_failing && !inside && self.one_in(4) {
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
            49..53 => self.check_reader(),
            53..56 => self.sync(),
            56 => self.rename(),
            57 if self.one_in(3) => self.drop_collection(),
            58 => self.limit_space(),
            59 if self.one_in(3) => self.break_disk(),
            60..62 => self.check_snapshot(),
            62..70 => self.transact(),
            70..73 => self.validate(),
            73..75 => self.resume_builds(),
            75 => self.crash(),
            _ => {}
        }
    }
}
