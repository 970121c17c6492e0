//! Steps that read and compare a server with the history.

use windrow_collection::{Checks, ClusterSnapshot, Error};
use windrow_storage::StorageError;

use super::Cluster;
use super::history::{Content, WriterId, content_of, content_of_engine};
use super::members::Running;
use crate::reads::{check_entries, documents_in};
use crate::world::namespace;

/// The maximal number of open snapshots of a server.
const SNAPSHOTS_MAX: usize = 3;

impl Cluster {
    /// Compares a follower with the history.
    pub fn compare(&self, server: usize, running: &Running) {
        let position = running.engine.written();
        let Some(content) = self.content(server, running) else {
            return;
        };
        self.with(|state| {
            state.history.observe(position, &content);
            state.report.compared += 1;
        });
        self.record(server, "compare", position.0);
    }

    /// Compares a primary with what it has written.
    pub fn check(&self, server: usize, running: &Running, writer: WriterId) {
        let Some(content) = self.content(server, running) else {
            return;
        };
        let expected = self.with(|state| content_of(state.history.newest(writer)));
        assert!(
            content == expected,
            "server {server} differs from its model"
        );
        self.record(server, "check", content.len() as u64);
    }

    /// Validates the collections of a server.
    pub fn validate(&self, server: usize, running: &Running) {
        for collection in running.engine.collections("test") {
            let validation = collection.validate(Checks::FULL);
            let validation = match validation {
                Ok(validation) => validation,
                Err(error) => return self.excuse(server, running, &error),
            };
            let name = collection.namespace();
            assert!(
                validation.is_valid(),
                "server {server}, {name}: {validation:?}"
            );
        }
        self.record(server, "validate", running.engine.written().0);
    }

    /// Validates and compares everything at the end of a run.
    pub fn check_all(&self, server: usize, running: &Running) {
        self.compare(server, running);
        self.validate(server, running);
    }

    /// Fails unless a server that has crashed meanwhile cannot read its sections.
    pub fn excuse(&self, server: usize, running: &Running, error: &Error) {
        let has_crashed = self.with(|state| state.members[server].life != running.life);
        let is_expected = matches!(
            error,
            Error::Storage(
                StorageError::Fenced { .. }
                    | StorageError::RefusingWrites { .. }
                    | StorageError::RunDeleted { .. }
            )
        );
        assert!(has_crashed || is_expected, "server {server}: {error:?}");
    }

    /// Returns what a server has. `None` if it has crashed meanwhile, or follows the log too
    /// slowly.
    fn content(&self, server: usize, running: &Running) -> Option<Content> {
        let content = content_of_engine(&running.engine);
        content
            .inspect_err(|error| self.excuse(server, running, error))
            .ok()
    }

    /// Opens a snapshot, or checks that an open one still sees the same.
    pub fn check_snapshot(&self, server: usize, running: &Running) {
        let count = running.snapshots.lock().len();
        if count < SNAPSHOTS_MAX && self.one_in(2) {
            let snapshot = running.engine.cluster_snapshot();
            let Some(content) = self.content(server, running) else {
                return;
            };
            running.snapshots.lock().push((snapshot, content));
            self.record(server, "snapshot", count as u64);
        } else if count > 0 {
            let number = self.below(count as u64) as usize;
            let (snapshot, content) = running.snapshots.lock().swap_remove(number);
            if let Err(error) = check_content(server, &snapshot, &content) {
                return self.excuse(server, running, &error);
            }
            self.record(server, "check snapshot", content.len() as u64);
            if self.one_in(2) {
                running.snapshots.lock().push((snapshot, content));
            }
        }
    }

    /// Reads as a client that must see every acknowledged write.
    pub fn read_linearizable(&self, server: usize, running: &Running, writer: WriterId) {
        let acknowledged = self.with(|state| state.history.confirmed());
        let position = running.engine.written();
        let Some(content) = self.content(server, running) else {
            return;
        };
        let Some(confirmation) = running.engine.request_confirmation() else {
            panic!("a primary has an upload");
        };
        self.upload(server, running, writer);
        let no_wait = std::time::Duration::ZERO;
        let confirmed = running.engine.wait_confirmed(confirmation, no_wait);
        let durable = running.engine.wait_durable(position, no_wait);
        if !matches!((confirmed, durable), (Ok(true), Ok(true))) {
            return;
        }
        assert!(
            position >= acknowledged,
            "server {server} read at {position}, and {acknowledged} was acknowledged"
        );
        self.with(|state| {
            state.history.observe(position, &content);
            state.report.linearizable += 1;
        });
        self.record(server, "linearizable read", position.0);
    }
}

fn check_content(
    server: usize,
    snapshot: &ClusterSnapshot,
    content: &Content,
) -> Result<(), Error> {
    let time = snapshot.time();
    for (name, documents) in content {
        let found = snapshot
            .collection(&namespace(name))?
            .unwrap_or_else(|| panic!("server {server}: {name} does not exist at {time}"));
        let reader = snapshot.reader(&found)?;
        assert!(
            documents_in(&reader)? == *documents,
            "server {server}: {name} differs at {time}"
        );
        check_entries(&reader, documents, name)?;
    }
    Ok(())
}
