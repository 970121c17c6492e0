//! What a command has at hand while it runs.

use std::sync::{Arc, OnceLock};

use windrow_collection::{
    Collection, DocumentValidation, Exclusion, Kept, Moment, Namespace, Statements, Terms,
    Transaction,
};
use windrow_document::Timestamp;
use windrow_wire::CommandError;

use crate::client::Client;
use crate::clock::now_millis;
use crate::errors::OrCommandError;
use crate::fail_points::RETRYABLE_WRITE;
use crate::generic::Generic;
use crate::joined::Joined;
use crate::operations::Operation;
use crate::state::State;

/// How what is written is saved.
#[derive(Clone, Copy, Debug)]
pub struct Saving<'a> {
    pub validation: DocumentValidation,
    /// The statements of a retryable write that it is remembered as.
    pub statements: Option<Statements<'a>>,
}

/// The time that all expressions of a command see, `$$NOW` and `$$CLUSTER_TIME`.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Milliseconds since 1970.
    pub now: i64,
    /// Only members of replica sets have it.
    pub cluster: Option<Timestamp>,
}

/// The surroundings of one command.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub state: &'a State,
    /// Who asks.
    pub client: &'a Client,
    /// The command as `currentOp` sees it.
    pub operation: &'a Operation,
    /// Session, read and write concern, limit of time.
    pub generic: &'a Generic,
    /// The transaction or retryable write that it is part of.
    pub joined: Option<&'a Joined>,
    /// The moment that it reads at, where it says so and is part of no transaction.
    pub moment: Option<&'a Arc<Moment>>,
    /// Those at which the first expression asked.
    pub times: &'a OnceLock<Times>,
}

impl<'a> Context<'a> {
    /// Fails where the command should not go on. See [`Operation::check`].
    pub fn check(&self) -> Result<(), CommandError> {
        self.operation.check()
    }

    /// The same for all statements of the command.
    pub fn times(&self) -> Times {
        *self.times.get_or_init(|| {
            let newest = || self.state.services.engine.newest_time();
            let member = self.state.member.as_ref();
            Times {
                now: now_millis(),
                cluster: member.map(|member| member.time(newest())),
            }
        })
    }

    /// How a statement of the command is saved: with the numbers that its documents have as statements
    /// of a retryable write.
    pub fn saving<'s>(
        &self,
        validation: DocumentValidation,
        numbers: &'s [i32],
        kept: Kept,
    ) -> Saving<'s> {
        Saving {
            validation,
            statements: self.joined.and_then(|it| it.statements(numbers, kept)),
        }
    }

    /// The statement of a retryable write that is about to run fails, or loses its connection, where a
    /// fail point says so.
    pub fn begin_retryable_write(&self) -> Result<(), CommandError> {
        match self.joined.filter(|it| it.is_retryable_write()) {
            Some(_) => self.meet_fail_point(RETRYABLE_WRITE),
            None => Ok(()),
        }
    }

    /// Fails, or loses the connection, where this fail point says so.
    pub fn meet_fail_point(&self, name: &str) -> Result<(), CommandError> {
        let Some(effect) = self.state.fail_points.meet_named(name, |_| true) else {
            return Ok(());
        };
        if effect.closes_connection {
            self.state.connections.close(self.client.id);
        }
        effect.error.map_or(Ok(()), Err)
    }

    /// The transaction that the command is part of.
    pub fn transaction(&self) -> Option<&'a Arc<Transaction>> {
        self.joined?.transaction()
    }

    /// The collection of that name, as the command's transaction sees it where there is one, or as it was
    /// at the moment that it reads at.
    pub fn collection(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<Arc<Collection>>, CommandError> {
        match (self.transaction(), self.moment) {
            (Some(transaction), _) => transaction.collection(namespace).or_command_error(),
            (None, Some(moment)) => moment.collection(namespace).or_command_error(),
            (None, None) => Ok(self.state.services.engine.collection(namespace)),
        }
    }

    /// The same, created where there is none. Error where it is a view.
    pub fn collection_or_create(
        &self,
        namespace: &Namespace,
    ) -> Result<Arc<Collection>, windrow_collection::Error> {
        match self.transaction() {
            None => self.state.services.engine.collection_or_create(namespace),
            Some(transaction) => transaction.collection_or_create(namespace),
        }
    }

    /// On what terms the command writes.
    pub fn terms<'t>(&self, saving: Saving<'t>) -> Terms<'t>
    where
        'a: 't,
    {
        Terms {
            validation: saving.validation,
            statements: saving.statements,
            transaction: self.transaction().map(|it| &**it),
            patience: self.operation,
        }
    }

    /// Waits until no transaction uses a collection that is to be changed, and keeps them from it.
    pub fn exclude<'c>(&self, collection: &'c Collection) -> Result<Exclusion<'c>, CommandError> {
        collection.exclude(self.operation).or_command_error()
    }
}
