//! The context of a running command.

use std::sync::{Arc, OnceLock};

use windrow_collection::{
    ClusterSnapshot, Collection, DdlGuard, DocumentValidation, Namespace, RetainedImage,
    Statements, Transaction, WriteOptions,
};
use windrow_document::{DocumentBuf, Timestamp};
use windrow_wire::CommandError;

use crate::access::{Authority, Requirement};
use crate::audit::{AuditTrail, Creation};
use crate::auditing;
use crate::client::Client;
use crate::clock::now_millis;
use crate::common_arguments::CommonArguments;
use crate::errors::OrCommandError;
use crate::fail_points::RETRYABLE_WRITE;
use crate::operations::Operation;
use crate::sessions::SessionId;
use crate::state::State;
use crate::transaction_context::TransactionContext;

/// The options by which a write is stored.
#[derive(Clone, Copy, Debug)]
pub struct StatementOptions<'a> {
    pub validation: DocumentValidation,
    /// The statements of a retryable write under which the result is stored.
    pub statements: Option<Statements<'a>>,
}

/// The time of all expressions in a command: `$$NOW` and `$$CLUSTER_TIME`.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Milliseconds since 1970.
    pub now: i64,
    /// `Some` on members of replica sets.
    pub cluster: Option<Timestamp>,
}

/// The context of a command.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub state: &'a State,
    /// The client.
    pub client: &'a Client,
    /// The authority of the client.
    pub authority: &'a Authority,
    /// The requirement of the command, which its cursors check again.
    pub requirement: &'a Requirement,
    /// The command in `currentOp`.
    pub operation: &'a Operation,
    /// Session, read and write concern, time limit.
    pub common: &'a CommonArguments,
    /// The transaction or the retryable write of which the command is a part.
    pub transaction_context: Option<&'a TransactionContext>,
    /// The transaction that the server runs a part of the command in, if the client has begun none.
    pub own_transaction: Option<&'a Arc<Transaction>>,
    /// `true` if the arguments of the command are not shown, because they are about encrypted
    /// fields.
    pub hides_arguments: bool,
    /// The snapshot that the command reads, if it has the read concern "snapshot" outside of
    /// transactions.
    pub snapshot: Option<&'a Arc<ClusterSnapshot>>,
    /// The time at which the first expression read it.
    pub times: &'a OnceLock<Times>,
}

impl<'a> Context<'a> {
    /// Sessions of the client with ids that it sent.
    pub fn own_sessions(&self, sent: Vec<SessionId>) -> Result<Vec<SessionId>, CommandError> {
        let own = sent
            .into_iter()
            .map(|session| self.authority.session(session));
        own.collect()
    }

    /// Fails if the command must stop. See [`Operation::check`].
    pub fn check(&self) -> Result<(), CommandError> {
        self.operation.check()
    }

    /// Returns the time, which is the same for all statements of the command.
    pub fn times(&self) -> Times {
        *self.times.get_or_init(|| {
            let newest = || self.state.services.engine.newest_time();
            let member = self.state.replica_set.as_ref();
            Times {
                now: now_millis(),
                cluster: member.map(|member| member.time(newest())),
            }
        })
    }

    /// Returns the options for storing a statement of the command. `numbers` are the statement
    /// numbers of its documents in a retryable write.
    pub fn saving<'s>(
        &self,
        validation: DocumentValidation,
        numbers: &'s [i32],
        image: RetainedImage,
    ) -> StatementOptions<'s> {
        StatementOptions {
            validation,
            statements: self
                .transaction_context
                .and_then(|it| it.statements(numbers, image)),
        }
    }

    /// Must be called before each statement of a retryable write. Fails, or closes the connection,
    /// if a fail point is set.
    pub fn begin_retryable_write(&self) -> Result<(), CommandError> {
        match self
            .transaction_context
            .filter(|it| it.is_retryable_write())
        {
            Some(_) => self.meet_fail_point(RETRYABLE_WRITE),
            None => Ok(()),
        }
    }

    /// Applies a fail point if it is set. Fails, or closes the connection, as the fail point says.
    pub fn meet_fail_point(&self, name: &str) -> Result<(), CommandError> {
        let Some(effect) = self.state.fail_points.meet_named(name, |_| true) else {
            return Ok(());
        };
        if effect.closes_connection {
            self.state.connections.close(self.client.id);
        }
        effect.error.map_or(Ok(()), Err)
    }

    /// Returns the transaction of which the command is a part.
    pub fn transaction(&self) -> Option<&'a Arc<Transaction>> {
        self.own_transaction
            .or_else(|| self.transaction_context?.transaction())
    }

    /// Returns the collection with this name, as the transaction or the snapshot of the command
    /// sees it.
    pub fn collection(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<Arc<Collection>>, CommandError> {
        self.state.check_placement(&namespace.database)?;
        match (self.transaction(), self.snapshot) {
            (Some(transaction), _) => transaction.collection(namespace).or_command_error(),
            (None, Some(snapshot)) => snapshot.collection(namespace).or_command_error(),
            (None, None) => Ok(self.state.services.engine.collection(namespace)),
        }
    }

    /// Returns the collection, as [`collection`](Self::collection) does. Creates the collection if
    /// there is none. Fails if it is a view.
    pub fn collection_or_create(
        &self,
        namespace: &Namespace,
    ) -> Result<Arc<Collection>, windrow_collection::Error> {
        let engine = &self.state.services.engine;
        let creation = Creation::begin(self.trail(), engine, namespace);
        let collection = match self.transaction() {
            None => engine.collection_or_create(namespace),
            Some(transaction) => transaction.collection_or_create(namespace),
        }?;
        if let Some(creation) = creation {
            creation.record();
        }
        Ok(collection)
    }

    /// Returns the audit log for the events of the client, if there is one.
    pub fn trail(&self) -> Option<AuditTrail> {
        auditing::trail(self.state, self.client)
    }

    /// Records in the audit log that the client has done something.
    pub fn audit(&self, kind: &str, param: impl FnOnce() -> DocumentBuf) {
        auditing::record(self.state, self.client, kind, param);
    }

    /// Returns the options of a write of the command.
    pub fn write_options<'t>(&self, saving: StatementOptions<'t>) -> WriteOptions<'t>
    where
        'a: 't,
    {
        let validation = match saving.validation {
            DocumentValidation::Enabled if self.hides_arguments => DocumentValidation::Encrypted,
            other => other,
        };
        WriteOptions {
            validation,
            statements: saving.statements,
            transaction: self.transaction().map(|it| &**it),
            wait_control: self.operation,
        }
    }

    /// Waits until no transaction uses a collection that is to be changed, and keeps transactions
    /// from using it.
    pub fn exclude<'c>(&self, collection: &'c Collection) -> Result<DdlGuard<'c>, CommandError> {
        collection.exclude(self.operation).or_command_error()
    }
}
