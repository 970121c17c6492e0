//! Steps of a primary.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use windrow_collection::{
    BuildControl, Collection, Error, InsertOrder, Outcome, RecordedResult, Renaming, ShareCounts,
    Uninterrupted, Work,
};
use windrow_document::doc;
use windrow_index::Definition;
use windrow_storage::StorageError;

use super::Cluster;
use super::history::WriterId;
use super::members::{LongStep, Role, Running, during};
use crate::model::{Model, RetryableWrite};
use crate::work::specification;
use crate::world::{STATEMENT, namespace};
use crate::writes::{ID_COUNT, NAMES, document, replace, retryable};

impl Cluster {
    pub fn step_as_primary(&self, server: usize, running: &Arc<Running>) {
        let Role::Primary(writer) = running.role else {
            return;
        };
        // Its followers see the shares of a build after the upload.
        if running.busy.lock().contains(&LongStep::Build) && self.one_in(3) {
            return self.upload(server, running, writer);
        }
        match self.below(100) {
            0..28 => self.insert(server, running, writer),
            28..44 => self.change(server, running, writer),
            44..62 => self.upload(server, running, writer),
            62..68 => self.fold(server, running),
            68..71 => self.work(server, running, Work::Merge, LongStep::Merge),
            71..74 => self.create_index(server, running),
            74 => self.drop_index(server, running),
            75..77 => self.create(server, running, writer),
            77 => self.rename(server, running, writer),
            78 => self.drop_collection(server, running, writer),
            79..84 => self.collect_garbage(server, running),
            84..88 => self.check(server, running, writer),
            88..90 => self.validate(server, running),
            90..94 => self.read_linearizable(server, running, writer),
            94..97 => self.check_snapshot(server, running),
            97 => self.work(server, running, Work::Builds, LongStep::Build),
            98 => self.work(server, running, Work::CreateEntries, LongStep::Fold),
            _ => self.retry_remembered(server, running, writer),
        }
    }

    /// Uploads what was written. What is uploaded is acknowledged with "majority".
    pub fn upload(&self, server: usize, running: &Running, writer: WriterId) {
        if let Err(error) = running.engine.work(Work::Upload) {
            self.end_fenced(server, running, &error);
            return;
        }
        let uploaded = running.engine.durable();
        self.with(|state| {
            let added = state.history.confirm(writer, uploaded);
            state.report.acknowledged += added;
        });
        self.record(server, "upload", uploaded.0);
    }

    /// A server that cannot extend the log any more starts again.
    fn end_fenced(&self, server: usize, running: &Running, error: &Error) {
        self.excuse(server, running, error);
        if self.with(|state| state.members[server].life == running.life) {
            self.record(server, "is fenced", 0);
            self.crash(server);
        }
    }

    pub fn collect_garbage(&self, server: usize, running: &Running) {
        match running.engine.work(Work::CollectGarbage) {
            // The next collection does the same work.
            Ok(_) | Err(Error::Storage(StorageError::Unavailable { .. })) => {}
            Err(error) => self.excuse(server, running, &error),
        }
        self.record(server, "collect garbage", 0);
    }

    pub fn fold(&self, server: usize, running: &Running) {
        self.work(server, running, Work::Fold, LongStep::Fold);
    }

    fn work(&self, server: usize, running: &Running, work: Work, step: LongStep) {
        let before = running.engine.statistics().shares;
        let Some(result) = during(running, step, || running.engine.work(work)) else {
            return;
        };
        self.count_shares(running, before);
        self.record(server, &format!("{work:?}"), u64::from(result.is_ok()));
        if let Err(error) = result {
            self.excuse(server, running, &error);
        }
    }

    /// Returns the names of the collections that exist in the model of a primary.
    fn names(&self, writer: WriterId) -> Vec<String> {
        self.with(|state| state.history.newest(writer).keys().cloned().collect())
    }

    fn random_collection(
        &self,
        running: &Running,
        writer: WriterId,
    ) -> Option<(String, Arc<Collection>)> {
        let names = self.names(writer);
        if names.is_empty() {
            return None;
        }
        let name = names[self.below(names.len() as u64) as usize].clone();
        let collection = running.engine.collection(&namespace(&name));
        Some((name, collection?))
    }

    /// Adds the state after a write.
    fn record_write(&self, running: &Running, writer: WriterId, change: impl FnOnce(&mut Model)) {
        let position = running.engine.written();
        self.with(|state| {
            let mut model = state.history.newest(writer).clone();
            change(&mut model);
            state.history.add(writer, position, model);
        });
    }

    fn new_write(&self) -> RetryableWrite {
        RetryableWrite::new(self.with(|state| {
            state.next_session += 1;
            state.next_session
        }))
    }

    pub fn insert(&self, server: usize, running: &Running, writer: WriterId) {
        let Some((name, collection)) = self.random_collection(running, writer) else {
            return self.create(server, running, writer);
        };
        let (documents, buffer, count) = self.with(|state| {
            let mut documents = state.history.newest(writer)[&name].documents.clone();
            let (mut buffer, mut count) = (Vec::new(), 0);
            for _ in 0..1 + state.random.below(12) {
                let id = state.random.below(ID_COUNT) as i32;
                if let Entry::Vacant(vacant) = documents.entry(id) {
                    let document = document(id, &mut state.random);
                    buffer.extend_from_slice(document.as_bytes());
                    vacant.insert(Arc::new(document));
                    count += 1;
                }
            }
            (documents, buffer, count)
        });
        if buffer.is_empty() {
            return;
        }
        let last = self.new_write();
        let numbers = vec![STATEMENT; count as usize];
        let options = retryable(&last, &numbers);
        match collection.insert_with(Bytes::from(buffer), InsertOrder::Unordered, &options) {
            Ok(inserted) => {
                assert!(inserted.errors.is_empty(), "{:?}", inserted.errors);
                self.record(server, "insert", count);
                self.record_write(running, writer, |model| {
                    let changed = model.entry(name).or_default();
                    changed.documents = documents;
                    changed.last = Some(last);
                });
            }
            Err(error) => self.excuse(server, running, &error),
        }
    }

    /// Updates or deletes a document.
    fn change(&self, server: usize, running: &Running, writer: WriterId) {
        let Some((name, collection)) = self.random_collection(running, writer) else {
            return;
        };
        let chosen = self.with(|state| {
            let documents = state.history.newest(writer)[&name].documents.clone();
            let ids: Vec<i32> = documents.keys().copied().collect();
            if ids.is_empty() {
                return None;
            }
            let id = state.random.pick(&ids);
            let new = document(id, &mut state.random);
            Some((id, documents[&id].clone(), new, state.random.one_in(3)))
        });
        let Some((id, old, new, is_deletion)) = chosen else {
            return;
        };
        let last = self.new_write();
        let update = (!is_deletion).then_some(&new);
        let options = retryable(&last, &[STATEMENT]);
        match replace(&collection, id, Some(&old), update, options) {
            Ok(Outcome::NotFound) => panic!("server {server} does not find {id} of {name}"),
            Ok(_) => {
                self.record(
                    server,
                    if is_deletion { "delete" } else { "update" },
                    id as u64,
                );
                self.record_write(running, writer, |model| {
                    let changed = model.entry(name).or_default();
                    changed.last = Some(last);
                    if is_deletion {
                        changed.documents.remove(&id);
                    } else {
                        changed.documents.insert(id, Arc::new(new));
                    }
                });
            }
            Err(error) => self.excuse(server, running, &error),
        }
    }

    fn create(&self, server: usize, running: &Running, writer: WriterId) {
        let name = self.with(|state| state.random.pick(&NAMES));
        let options = if self.one_in(2) {
            doc! {
                "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "v": 2, "name": "_id_" },
            }
        } else {
            doc! {}
        };
        match running
            .engine
            .create(&namespace(name), options.as_document())
        {
            Ok(_) => {
                self.record(server, "create", 0);
                self.record_write(running, writer, |model| {
                    model.insert(name.to_owned(), Default::default());
                });
            }
            Err(Error::NamespaceExists(_)) => {}
            Err(error) => self.excuse(server, running, &error),
        }
    }

    fn rename(&self, server: usize, running: &Running, writer: WriterId) {
        let Some((from, _)) = self.random_collection(running, writer) else {
            return;
        };
        let to = self.with(|state| state.random.pick(&NAMES));
        let renaming = Renaming {
            drop_target: self.one_in(2),
            ..Renaming::default()
        };
        let renamed = (running.engine).rename(&namespace(&from), &namespace(to), &renaming);
        match renamed {
            Ok(()) => {
                self.record(server, "rename", 0);
                self.record_write(running, writer, |model| {
                    let renamed = model.remove(&from).unwrap_or_default();
                    model.insert(to.to_owned(), renamed);
                });
            }
            Err(Error::NamespaceExists(_)) => {}
            Err(error) => self.excuse(server, running, &error),
        }
    }

    fn drop_collection(&self, server: usize, running: &Running, writer: WriterId) {
        let Some((name, _)) = self.random_collection(running, writer) else {
            return;
        };
        match running.engine.drop_collection(&namespace(&name)) {
            Ok(was_there) => {
                assert!(was_there, "server {server} has no {name}");
                self.record(server, "drop", 0);
                self.record_write(running, writer, |model| {
                    model.remove(&name);
                });
            }
            Err(error) => self.excuse(server, running, &error),
        }
    }

    fn create_index(&self, server: usize, running: &Running) {
        let collections = running.engine.collections("test");
        if collections.is_empty() {
            return;
        }
        let collection = &collections[self.below(collections.len() as u64) as usize];
        let specification = self.with(|state| {
            state.next_index += 1;
            // Not the unique index: its duplicates are a matter of the other simulation.
            let kind = state.random.pick(&[0, 1, 2, 4, 5, 6]);
            specification(&format!("i{}", state.next_index), kind)
        });
        let definition = Definition::parse(specification.as_document()).expect("a definition");
        let control = BuildControl {
            interrupt: &Uninterrupted,
            on_phase: &|_| (),
        };
        let before = running.engine.statistics().shares;
        let built = during(running, LongStep::Build, || {
            collection.create_indexes(vec![definition], &control)
        });
        self.count_shares(running, before);
        match built {
            Some(Ok(_)) => self.record(server, "create index", 1),
            Some(Err(Error::IndexConflict { .. } | Error::Interrupted(_))) | None => {}
            Some(Err(error)) => self.excuse(server, running, &error),
        }
    }

    /// Counts the shares since `before`.
    fn count_shares(&self, running: &Running, before: ShareCounts) {
        let after = running.engine.statistics().shares;
        self.with(|state| {
            state.report.shares += after.adopted - before.adopted;
            state.report.taken_back += after.taken_back - before.taken_back;
        });
    }

    fn drop_index(&self, server: usize, running: &Running) {
        let collections = running.engine.collections("test");
        let indexes = collections.iter().flat_map(|collection| {
            let indexes = collection.all_indexes().into_iter().skip(1);
            indexes.map(move |it| (collection, it.definition.name.clone()))
        });
        let indexes: Vec<_> = indexes.collect();
        if indexes.is_empty() {
            return;
        }
        let (collection, name) = &indexes[self.below(indexes.len() as u64) as usize];
        match collection.drop_index(name) {
            Ok(()) | Err(Error::IndexNotFound(_)) => self.record(server, "drop index", 0),
            Err(error) => self.excuse(server, running, &error),
        }
    }

    /// Checks that a primary knows the results of the newest writes, also of those that another
    /// primary has made.
    fn retry_remembered(&self, server: usize, running: &Running, writer: WriterId) {
        let lasts: Vec<RetryableWrite> = self.with(|state| {
            let collections = state.history.newest(writer).values();
            collections.filter_map(|it| it.last).collect()
        });
        for last in &lasts {
            let result = running.engine.recorded_result(last.origin, STATEMENT);
            assert!(
                result != RecordedResult::Nothing,
                "server {server} has forgotten a write"
            );
        }
        self.record(server, "remembered", lasts.len() as u64);
    }
}
