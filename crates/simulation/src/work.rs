//! Long steps: folds, merges and index builds. Other steps run within them.

use windrow_collection::{BuildControl, Error, Interrupted, Work};
use windrow_document::{DocumentBuf, ObjectId, doc};
use windrow_index::Definition;
use windrow_index::search::SearchDefinition;

use crate::model::Model;
use crate::world::{LongStep, World};

impl World {
    pub(crate) fn fold(&self) {
        self.work(Work::Fold, LongStep::Fold);
    }

    pub(crate) fn merge(&self) {
        let work = if self.one_in(4) {
            Work::Compact
        } else {
            Work::Merge
        };
        self.work(work, LongStep::Merge);
    }

    /// Runs a merge. Returns `false` if there was nothing to merge.
    pub(crate) fn merge_once(&self) -> bool {
        let engine = self.engine();
        let merged = self.during(LongStep::Merge, || engine.work(Work::Merge));
        merged.expect("a merge without faults succeeds")
    }

    pub(crate) fn settle(&self) {
        let settled = self
            .engine()
            .work(Work::CreateEntries)
            .expect("settling tails succeeds");
        self.record("settle", u64::from(settled));
    }

    fn work(&self, work: Work, busy: LongStep) {
        if self.with(|state| state.busy.contains(&busy)) {
            return;
        }
        let engine = self.engine();
        let result = self.during(busy, || engine.work(work));
        self.record(&format!("{work:?}"), u64::from(result.is_ok()));
        if let Err(error) = result {
            self.tolerate(&error);
        }
    }

    /// Continues index builds that a crash interrupted.
    pub(crate) fn resume_builds(&self) {
        if self.with(|state| state.busy.contains(&LongStep::Build)) {
            return;
        }
        let engine = self.engine();
        let resumed = self.during(LongStep::Build, || engine.work(Work::Builds));
        self.record(
            "resume",
            u64::from(resumed.expect("builds report no errors here")),
        );
    }

    pub(crate) fn create_index(&self) {
        if self.with(|state| state.busy.contains(&LongStep::Build)) {
            return;
        }
        let Some(collection) = self.random_collection() else {
            return;
        };
        let specification = self.with(|state| {
            state.next_index += 1;
            let name = format!("i{}", state.next_index);
            specification(&name, state.random.below(7))
        });
        let definition = Definition::parse(specification.as_document()).expect("a definition");
        let name = definition.name.clone();
        let control = BuildControl {
            interrupt: &|| {
                if self.one_in(200) {
                    return Err(Interrupted::new("it was killed"));
                }
                Ok(())
            },
            on_phase: &|_| (),
        };
        // Until the build is acknowledged, a crash leaves the index or not.
        let uncertain = |model: &mut Model| {
            let collection_model = model.entry(collection.clone()).or_default();
            collection_model.uncertain_indexes.insert(name.clone());
        };
        self.record_write(uncertain);
        let collection_model = self.collection(&collection);
        let built = self.during(LongStep::Build, || {
            collection_model.create_indexes(vec![definition], &control)
        });
        self.record(&format!("create index {name}"), u64::from(built.is_ok()));
        let exists = || {
            collection_model
                .all_indexes()
                .iter()
                .any(|it| it.definition.name == name)
        };
        match built {
            Ok(_) if exists() && !collection_model.is_dropped() => {
                // The collection can have been renamed during the build.
                let collection = collection_model.namespace().collection;
                self.record_write(|model| {
                    let collection_model = model.entry(collection).or_default();
                    collection_model.uncertain_indexes.remove(&name);
                    collection_model.indexes.insert(name.clone());
                });
            }
            // An equal index exists under another name, or the index was dropped during the build.
            Ok(_) | Err(Error::IndexConflict { .. }) => {}
            Err(Error::DuplicateKey(_) | Error::Interrupted(_)) => {}
            Err(error) => self.tolerate(&error),
        }
    }
}

/// The specification of a search index of all fields.
fn search_index(name: &str) -> DocumentBuf {
    let source = doc! { "mappings": { "dynamic": true } };
    let id = ObjectId([7; 12]);
    let search = SearchDefinition::parse(name, id, 0, 0, source.as_document());
    Definition::from_search(search.expect("a definition")).specification
}

pub(crate) fn specification(name: &str, kind: u64) -> DocumentBuf {
    match kind {
        0 => doc! { "key": { "tags": 1, "u": (-1) }, "name": name },
        1 => doc! { "key": { "rare": 1, "u": 1 }, "name": name, "sparse": true },
        2 => doc! { "key": { "text": "text" }, "name": name },
        3 => doc! { "key": { "u": 1 }, "name": name, "unique": true },
        4 => doc! { "key": { "$**": 1 }, "name": name },
        5 => search_index(name),
        _ => doc! {
            "key": { "tags": (-1) }, "name": name,
            "partialFilterExpression": { "u": { "$gt": 2_500 } },
        },
    }
}
