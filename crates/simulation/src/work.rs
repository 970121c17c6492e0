//! Steps that last: folds, merges, builds.

use windrow_collection::{BuildControl, Error, Work};
use windrow_document::{DocumentBuf, doc};
use windrow_index::Definition;

use crate::model::Model;
use crate::world::{Busy, World};

impl World {
    pub(crate) fn fold(&self) {
        self.work(Work::Fold, Busy::Fold);
    }

    pub(crate) fn merge(&self) {
        let work = match self.once_in(4) {
            true => Work::Compact,
            false => Work::Merge,
        };
        self.work(work, Busy::Merge);
    }

    /// A merge, where there is one to do.
    pub(crate) fn some_merge(&self) -> bool {
        let engine = self.engine();
        let merged = self.busy(Busy::Merge, || engine.work(Work::Merge));
        merged.expect("a merge on a sound disk")
    }

    pub(crate) fn settle(&self) {
        let settled = self
            .engine()
            .work(Work::Settle)
            .expect("entries of commits");
        self.note("settle", u64::from(settled));
    }

    fn work(&self, work: Work, busy: Busy) {
        if self.with(|state| state.busy.contains(&busy)) {
            return;
        }
        let engine = self.engine();
        let done = self.busy(busy, || engine.work(work));
        self.note(&format!("{work:?}"), u64::from(done.is_ok()));
        if let Err(error) = done {
            self.tolerate(&error);
        }
    }

    /// Goes on with builds that a crash has interrupted.
    pub(crate) fn resume_builds(&self) {
        if self.with(|state| state.busy.contains(&Busy::Build)) {
            return;
        }
        let engine = self.engine();
        let resumed = self.busy(Busy::Build, || engine.work(Work::Builds));
        self.note("resume", u64::from(resumed.expect("no error is told here")));
    }

    pub(crate) fn create_index(&self) {
        if self.with(|state| state.busy.contains(&Busy::Build)) {
            return;
        }
        let Some(collection) = self.some_collection() else {
            return;
        };
        let (name, specification) = self.with(|state| {
            state.next_index += 1;
            let name = format!("i{}", state.next_index);
            let specification = specification(&name, state.random.below(6));
            (name, specification)
        });
        let definition = Definition::parse(specification.as_document()).expect("a definition");
        let control = BuildControl {
            should_stop: &|| self.once_in(200).then(|| "it was killed".to_owned()),
            on_phase: &|_| (),
        };
        // While it is built it may be there or not, should there be a crash.
        let doubtful = |model: &mut Model| {
            let things = model.entry(collection.clone()).or_default();
            things.doubtful_indexes.insert(name.clone());
        };
        self.wrote(doubtful);
        let things = self.collection(&collection);
        let built = self.busy(Busy::Build, || {
            things.create_indexes(vec![definition], &control)
        });
        self.note(&format!("create index {name}"), u64::from(built.is_ok()));
        let is_there = || things.indexes().iter().any(|it| it.definition.name == name);
        match built {
            Ok(_) if is_there() && !things.is_dropped() => {
                // It may have another name by now.
                let collection = things.namespace().collection;
                self.wrote(|model| {
                    let things = model.entry(collection).or_default();
                    things.doubtful_indexes.remove(&name);
                    things.indexes.insert(name.clone());
                });
            }
            // The like of it is there under another name, or it has been dropped again.
            Ok(_) | Err(Error::IndexConflict { .. }) => {}
            Err(Error::DuplicateKey(_) | Error::Interrupted(_)) => {}
            Err(error) => self.tolerate(&error),
        }
    }
}

fn specification(name: &str, kind: u64) -> DocumentBuf {
    match kind {
        0 => doc! { "key": { "tags": 1, "u": (-1) }, "name": name },
        1 => doc! { "key": { "rare": 1, "u": 1 }, "name": name, "sparse": true },
        2 => doc! { "key": { "text": "text" }, "name": name },
        3 => doc! { "key": { "u": 1 }, "name": name, "unique": true },
        4 => doc! { "key": { "$**": 1 }, "name": name },
        _ => doc! {
            "key": { "tags": (-1) }, "name": name,
            "partialFilterExpression": { "u": { "$gt": 2_500 } },
        },
    }
}
