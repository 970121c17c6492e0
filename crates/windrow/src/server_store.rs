//! A store behind the server that has the data folder open.

use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_ingest::{
    DATABASE_NAME, DocumentVisitor, FileSigner, FileStamp, INDEX_NAME, InsertError, RUNS_NAME,
    STAMP_INDEX_NAME, StampVisitor, Store, StoreCollection, StoreError,
};

use crate::address_file::ServerAddress;
use crate::client::{self, Client, ClientError, DocumentSequence};

/// A store that sends commands to a server.
pub struct ServerStore {
    address: ServerAddress,
    signer: FileSigner,
    /// Idle connections. Each concurrent call uses its own.
    idle_clients: Mutex<Vec<Client>>,
}

impl ServerStore {
    /// Connects to verify that the server responds.
    pub fn connect(address: ServerAddress, signer: FileSigner) -> Result<ServerStore, ClientError> {
        let client = client::connect(&address)?;
        Ok(ServerStore {
            address,
            signer,
            idle_clients: Mutex::new(vec![client]),
        })
    }

    /// Calls `work` with a connection. A connection that failed is not reused.
    fn with_client<T>(
        &self,
        work: impl FnOnce(&mut Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.lock_idle_clients().pop();
        let mut client = match idle {
            Some(client) => client,
            None => client::connect(&self.address)?,
        };
        let result = work(&mut client)?;
        self.lock_idle_clients().push(client);
        Ok(result)
    }

    fn lock_idle_clients(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle_clients
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn run_command(&self, command: &DocumentBuf) -> Result<(), StoreError> {
        self.with_client(|client| check_reply(client.run(command.as_document(), None)?))
    }

    /// Creates a search index. An existing index is updated to this definition, because an older
    /// version of the program may have created it.
    fn create_search_index(
        &self,
        collection: &str,
        definition: &DocumentBuf,
    ) -> Result<(), StoreError> {
        const INDEX_ALREADY_EXISTS: i32 = 68;
        let index = doc! { "name": INDEX_NAME, "definition": (definition.clone()) };
        let create = doc! {
            "createSearchIndexes": (collection), "indexes": [(index)], "$db": DATABASE_NAME,
        };
        let exists = self.with_client(|client| match client.run(create.as_document(), None) {
            Err(ClientError::Command {
                code: INDEX_ALREADY_EXISTS,
                ..
            }) => Ok(true),
            reply => check_reply(reply?).map(|()| false),
        })?;
        if !exists {
            return Ok(());
        }
        self.run_command(&doc! {
            "updateSearchIndex": (collection), "name": INDEX_NAME,
            "definition": (definition.clone()), "$db": DATABASE_NAME,
        })
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
        self.run_command(&doc! {
            "delete": (collection.name()), "deletes": [{ "q": filter, "limit": 0 }],
            "$db": DATABASE_NAME,
        })
    }
}

impl Store for ServerStore {
    fn file_signer(&self) -> &FileSigner {
        &self.signer
    }

    fn prepare(&self) -> Result<(), StoreError> {
        for collection in StoreCollection::ALL {
            let name = collection.name();
            self.run_command(&doc! {
                "createIndexes": (name), "indexes": [(collection.index_specification())],
                "$db": DATABASE_NAME,
            })?;
            if let Some(definition) = collection.search_index_definition() {
                self.create_search_index(name, &definition)?;
            }
        }
        Ok(())
    }

    fn visit_stamps(
        &self,
        collection: StoreCollection,
        visit: &mut StampVisitor<'_>,
    ) -> Result<(), StoreError> {
        let mut projection = doc! { "_id": 0, "path": 1 };
        for field in FileStamp::FIELDS {
            projection.push(field, 1);
        }
        let command = doc! {
            "find": (collection.name()), "filter": { "path": { "$gte": "" } },
            "projection": (projection), "hint": STAMP_INDEX_NAME, "$db": DATABASE_NAME,
        };
        self.with_client(|client| {
            let result = client.for_each_document(command.as_document(), &mut |document| {
                if let Some((path, stamp)) = parse_stamp(document) {
                    visit(path, stamp);
                }
                true
            });
            Ok(result?)
        })
    }

    fn visit_documents(
        &self,
        collection: StoreCollection,
        path: &str,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        let command = doc! {
            "find": (collection.name()), "filter": { "path": (path) },
            "hint": STAMP_INDEX_NAME, "$db": DATABASE_NAME,
        };
        self.with_client(|client| {
            let result = client.for_each_document(command.as_document(), &mut |document| {
                visit(document);
                true
            });
            Ok(result?)
        })
    }

    fn visit_all(
        &self,
        collection: &str,
        fields: &[&'static str],
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        let mut projection = DocumentBuf::new();
        fields.iter().for_each(|&field| projection.push(field, 1));
        let command = doc! { "find": (collection), "projection": projection, "$db": DATABASE_NAME };
        self.with_client(|client| {
            let result = client.for_each_document(command.as_document(), &mut |document| {
                visit(document);
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
        let command =
            doc! { "insert": (collection.name()), "ordered": false, "$db": DATABASE_NAME };
        let sequence = DocumentSequence {
            name: "documents",
            documents: &documents,
        };
        self.with_client(|client| {
            parse_insert_errors(client.run(command.as_document(), Some(sequence))?)
        })
    }

    fn record_run(&self, run: &DocumentBuf) -> Result<(), StoreError> {
        self.run_command(&doc! {
            "insert": RUNS_NAME, "documents": [(run.clone())], "$db": DATABASE_NAME,
        })
    }

    /// Waits for durability: a write with `j: true` waits for all earlier writes.
    fn finish(&self) -> Result<(), StoreError> {
        self.run_command(&doc! {
            "delete": (StoreCollection::Failures.name()), "deletes": [{ "q": { "_id": "" }, "limit": 1 }],
            "writeConcern": { "w": 1, "j": true }, "$db": DATABASE_NAME,
        })
    }
}

fn parse_stamp(document: Document<'_>) -> Option<(&str, Option<FileStamp>)> {
    let read_integer = |name| document.get(name).and_then(ValueRef::as_whole);
    let stamp = FileStamp::from_fields(FileStamp::FIELDS.map(read_integer));
    Some((document.get("path")?.as_str()?, stamp))
}

/// Returns the documents that an insert refused. Fails if the reply cannot be read, because
/// an ignored error would lose a document.
fn parse_insert_errors(reply: Document<'_>) -> Result<Vec<InsertError>, StoreError> {
    let Some(errors) = reply.get("writeErrors") else {
        return Ok(Vec::new());
    };
    let errors = errors
        .as_array()
        .and_then(|errors| errors.iter().map(parse_insert_error).collect());
    errors.ok_or_else(|| format!("the server's reply has unknown write errors: {reply}").into())
}

fn parse_insert_error(error: ValueRef<'_>) -> Option<InsertError> {
    let error = error.as_document()?;
    Some(InsertError {
        index: usize::try_from(error.get("index")?.as_whole()?).ok()?,
        reason: error.get("errmsg")?.as_str()?.to_owned(),
    })
}

/// Fails if any part of a write failed, or if the write is less durable than requested.
fn check_reply(reply: Document<'_>) -> Result<(), StoreError> {
    if let Some(error) = parse_insert_errors(reply)?.pop() {
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
        let errors = parse_insert_errors(reply.as_document()).unwrap();
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
        let document = doc! {
            "path": "/d/a", "size": 5i64, "modified_ns": (-1i64), "changed_ns": 7i64, "inode": (-2i64)
        };
        let expected = FileStamp {
            size: 5,
            modified_ns: -1,
            changed_ns: 7,
            inode: u64::MAX - 1,
        };
        let found = parse_stamp(document.as_document());
        assert_eq!(found, Some(("/d/a", Some(expected))));
        let without_stamp = doc! { "path": "/d/a" };
        assert_eq!(
            parse_stamp(without_stamp.as_document()),
            Some(("/d/a", None))
        );
    }
}
