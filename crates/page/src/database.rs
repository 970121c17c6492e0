//! Access to the database with the privileges of a user.

use std::sync::Arc;
use std::time::Duration;

use windrow_client::ClientError;
use windrow_document::{Document, DocumentBuf, ValueRef, doc};

use crate::connection::Connection;
use crate::error::PageError;
use crate::interrupt::RequestInterrupt;
use crate::reading_commands::check_reads;
use crate::session::Session;

/// The time limit of commands without `maxTimeMS`.
const TIME_MAX: Duration = Duration::from_secs(30);

/// A connection with the privileges of a user. Dropping it returns the connection to its session.
pub struct Database {
    /// `None` only while it is dropped.
    connection: Option<Connection>,
    session: Arc<Session>,
    interrupt: Arc<RequestInterrupt>,
    is_read_only: bool,
    time_max: Duration,
    /// Another request can use the connection: its last command ended normally.
    is_usable: bool,
}

impl Database {
    /// Uses a connection. The interrupt can close it.
    pub fn new(
        connection: Connection,
        session: Arc<Session>,
        interrupt: Arc<RequestInterrupt>,
        is_read_only: bool,
    ) -> Database {
        interrupt.add_connection(&connection.socket);
        Database {
            connection: Some(connection),
            session,
            interrupt,
            is_read_only,
            time_max: TIME_MAX,
            is_usable: true,
        }
    }

    /// Sets the time limit of the commands that follow.
    pub fn set_time_max(&mut self, time_max: Duration) {
        self.time_max = time_max;
    }

    /// Runs a command and returns its reply. The command names its database in `$db`. The time
    /// limit is its `maxTimeMS`, or else that of the connection.
    ///
    /// # Errors
    /// Fails with the server's message, or if the page is read-only and the command may write.
    pub fn run(&mut self, command: DocumentBuf) -> Result<DocumentBuf, PageError> {
        let command = self.prepare(command)?;
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        match connection.client.run(command.as_document(), None) {
            Ok(reply) => Ok(reply.to_buf()),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Runs a command with a cursor. Passes each document to `sink` until it returns `false`.
    ///
    /// # Errors
    /// Fails as [`run`](Self::run) does.
    pub fn for_each_document(
        &mut self,
        command: DocumentBuf,
        sink: &mut dyn FnMut(Document<'_>) -> bool,
    ) -> Result<(), PageError> {
        let command = self.prepare(command)?;
        let connection = self.connection.as_mut().ok_or_else(closed)?;
        let read = connection
            .client
            .for_each_document(command.as_document(), sink);
        read.map_err(|error| self.fail(error))
    }

    /// Runs a command with a cursor. Returns at most `count_max` documents.
    ///
    /// # Errors
    /// Fails as [`run`](Self::run) does.
    pub fn documents(
        &mut self,
        command: DocumentBuf,
        count_max: usize,
    ) -> Result<Vec<DocumentBuf>, PageError> {
        let mut documents = Vec::new();
        self.for_each_document(command, &mut |document| {
            documents.push(document.to_buf());
            documents.len() < count_max
        })?;
        Ok(documents)
    }

    /// Returns the names of the databases that the user may see.
    ///
    /// # Errors
    /// Fails as [`run`](Self::run) does.
    pub fn database_names(&mut self) -> Result<Vec<String>, PageError> {
        let listed = self.run(doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" })?;
        let all = listed.get("databases").and_then(ValueRef::as_array);
        let all = all.into_iter().flatten().filter_map(ValueRef::as_document);
        let names = all.filter_map(|it| it.get("name").and_then(ValueRef::as_str));
        Ok(names.map(str::to_owned).collect())
    }

    /// Returns `true` if the database has this collection.
    ///
    /// # Errors
    /// Fails as [`run`](Self::run) does.
    pub fn has_collection(&mut self, database: &str, name: &str) -> Result<bool, PageError> {
        let command = doc! {
            "listCollections": 1, "filter": { "name": name }, "nameOnly": true, "$db": database,
        };
        Ok(!self.documents(command, 1)?.is_empty())
    }

    fn prepare(&self, mut command: DocumentBuf) -> Result<DocumentBuf, PageError> {
        if self.is_read_only {
            check_reads(command.as_document())?;
        }
        if command.get("maxTimeMS").is_none() {
            let millis = i64::try_from(self.time_max.as_millis()).unwrap_or(i64::MAX);
            command.push("maxTimeMS", ValueRef::Int64(millis).to_value());
        }
        Ok(command)
    }

    fn fail(&mut self, error: ClientError) -> PageError {
        self.is_usable &= matches!(error, ClientError::Command { .. });
        error.into()
    }
}

fn closed() -> PageError {
    PageError::unavailable(&"the connection is closed")
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        if self.interrupt.remove_connection(&connection.socket) && self.is_usable {
            self.session.connections.put(connection);
        }
    }
}
