//! A store behind a server that has the data folder open.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_ingest::{
    DATABASE, FileStamp, InsertError, STAMP_INDEX, StampVisitor, Store, StoreCollection, StoreError,
};

use crate::client::{Client, ClientError};

/// A store that sends commands to a server.
pub struct ServerStore {
    address: SocketAddr,
    /// Unused connections. Each concurrent call uses its own.
    idle: Mutex<Vec<Client>>,
}

impl ServerStore {
    /// Connects once, to verify that the server responds.
    pub fn connect(address: SocketAddr) -> Result<ServerStore, ClientError> {
        let client = Client::connect(address)?;
        Ok(ServerStore {
            address,
            idle: Mutex::new(vec![client]),
        })
    }

    /// Calls `work` with a connection. A connection that failed is not reused.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let mut client = match idle {
            Some(client) => client,
            None => Client::connect(self.address)?,
        };
        let result = work(&mut client)?;
        self.idle().push(client);
        Ok(result)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn run(&self, command: &DocumentBuf) -> Result<(), StoreError> {
        self.with(|client| check_reply(client.run(command.as_document(), None)?))
    }

    fn delete(
        &self,
        collection: StoreCollection,
        name: &'static str,
        values: &[String],
    ) -> Result<(), StoreError> {
        let values: ArrayBuf = values.iter().cloned().map(Value::String).collect();
        let mut filter = DocumentBuf::new();
        filter.push(name, doc! { "$in": values });
        self.run(&doc! {
            "delete": (collection.name()), "deletes": [{ "q": filter, "limit": 0 }],
            "$db": DATABASE,
        })
    }
}

impl Store for ServerStore {
    fn prepare(&self) -> Result<(), StoreError> {
        for collection in StoreCollection::ALL {
            let indexes: ArrayBuf = collection
                .indexes()
                .into_iter()
                .map(Value::Document)
                .collect();
            self.run(&doc! {
                "createIndexes": (collection.name()), "indexes": indexes, "$db": DATABASE,
            })?;
        }
        Ok(())
    }

    fn visit_stamps(
        &self,
        collection: StoreCollection,
        visit: &mut StampVisitor<'_>,
    ) -> Result<(), StoreError> {
        let command = doc! {
            "find": (collection.name()), "filter": { "path": { "$gte": "" } },
            "projection": { "_id": 0, "path": 1, "size": 1, "modified_ns": 1 },
            "hint": STAMP_INDEX, "$db": DATABASE,
        };
        self.with(|client| {
            let result = client.documents(command.as_document(), &mut |document| {
                if let Some((path, stamp)) = read_stamp(document) {
                    visit(path, stamp);
                }
                true
            });
            Ok(result?)
        })
    }

    fn remove(&self, collection: StoreCollection, paths: &[String]) -> Result<(), StoreError> {
        self.delete(collection, "path", paths)
    }

    fn remove_failures(&self, ids: &[String]) -> Result<(), StoreError> {
        self.delete(StoreCollection::Failures, "_id", ids)
    }

    fn insert(
        &self,
        collection: StoreCollection,
        documents: Bytes,
    ) -> Result<Vec<InsertError>, StoreError> {
        let command = doc! { "insert": (collection.name()), "ordered": false, "$db": DATABASE };
        let sequence = Some(("documents", documents.as_ref()));
        self.with(|client| insert_errors(client.run(command.as_document(), sequence)?))
    }

    /// A write with `j: true` waits until all earlier writes are durable.
    fn finish(&self) -> Result<(), StoreError> {
        self.run(&doc! {
            "delete": (StoreCollection::Failures.name()), "deletes": [{ "q": { "_id": "" }, "limit": 1 }],
            "writeConcern": { "w": 1, "j": true }, "$db": DATABASE,
        })
    }
}

fn read_stamp(document: Document<'_>) -> Option<(&str, Option<FileStamp>)> {
    let whole = |name| document.get(name).and_then(ValueRef::as_whole);
    let stamp = FileStamp::from_fields(whole("size"), whole("modified_ns"));
    Some((document.get("path")?.as_str()?, stamp))
}

/// Returns the documents that an insert refused. Fails if the reply cannot be read: an error that is
/// passed over would lose a document.
fn insert_errors(reply: Document<'_>) -> Result<Vec<InsertError>, StoreError> {
    let Some(errors) = reply.get("writeErrors") else {
        return Ok(Vec::new());
    };
    let errors = errors
        .as_array()
        .and_then(|errors| errors.iter().map(insert_error).collect());
    errors.ok_or_else(|| format!("the server's reply has unknown write errors: {reply}").into())
}

fn insert_error(error: ValueRef<'_>) -> Option<InsertError> {
    let error = error.as_document()?;
    Some(InsertError {
        index: usize::try_from(error.get("index")?.as_whole()?).ok()?,
        reason: error.get("errmsg")?.as_str()?.to_owned(),
    })
}

/// Fails if any part of a write failed, or if it is not as durable as it should be.
fn check_reply(reply: Document<'_>) -> Result<(), StoreError> {
    if let Some(error) = insert_errors(reply)?.pop() {
        return Err(error.reason.into());
    }
    match reply.get("writeConcernError") {
        Some(error) => Err(format!("the write is not durable: {}", error.to_value()).into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_errors_are_parsed() {
        let reply =
            doc! { "ok": 1, "n": 1, "writeErrors": [{ "index": 2, "errmsg": "too large" }] };
        let errors = insert_errors(reply.as_document()).unwrap();
        let reason = "too large".to_owned();
        assert_eq!(errors, [InsertError { index: 2, reason }]);
        assert!(check_reply(reply.as_document()).is_err());
        assert!(check_reply(doc! { "ok": 1 }.as_document()).is_ok());
    }

    /// Write errors that could not be read, and missing durability, counted as success.
    #[test]
    fn every_failure_of_a_write_is_reported() {
        let is_refused = |reply: DocumentBuf| check_reply(reply.as_document()).is_err();
        assert!(is_refused(
            doc! { "ok": 1, "writeErrors": [{ "errmsg": "x" }] }
        ));
        assert!(is_refused(
            doc! { "ok": 1, "writeErrors": [{ "index": (-1), "errmsg": "x" }] }
        ));
        assert!(is_refused(doc! { "ok": 1, "writeErrors": 5 }));
        let error = doc! { "code": 64, "errmsg": "waiting timed out" };
        assert!(is_refused(doc! { "ok": 1, "writeConcernError": error }));
    }

    #[test]
    fn stamps_are_parsed() {
        let document = doc! { "path": "/d/a", "size": 5i64, "modified_ns": (-1i64) };
        let expected = FileStamp {
            size: 5,
            modified_ns: -1,
        };
        let found = read_stamp(document.as_document());
        assert_eq!(found, Some(("/d/a", Some(expected))));
        let without_stamp = doc! { "path": "/d/a" };
        assert_eq!(
            read_stamp(without_stamp.as_document()),
            Some(("/d/a", None))
        );
    }
}
