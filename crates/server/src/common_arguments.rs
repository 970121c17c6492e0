//! The arguments that all commands accept: session, read and write concern, time limit, API
//! version. They are read by [`parse`] only.

mod cluster_time;
mod numbers;
pub mod parse;
mod read_concern;
mod write_concern;

use std::time::Duration;

use windrow_document::{DocumentBuf, Timestamp, Value};
use windrow_wire::{CommandError, ErrorCode};

use crate::sessions::SessionId;
use crate::shell_text;

/// The names of the common arguments. Those that are not read here are used between MongoDB's
/// servers and routers. MongoDB ignores them from clients.
const NAMES: &[&str] = &[
    "$audit",
    "$client",
    "$clusterTime",
    "$configServerState",
    "$configTime",
    "$db",
    "$oplogQueryData",
    "$queryOptions",
    "$readPreference",
    "$replData",
    "$topologyTime",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "autocommit",
    "clientOperationKey",
    "comment",
    "databaseVersion",
    "lsid",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "rawData",
    "readConcern",
    "shardVersion",
    "startTransaction",
    "stmtId",
    "stmtIds",
    "txnNumber",
    "writeConcern",
];

/// Returns `true` if all commands accept the argument.
pub fn is_generic(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

/// The common arguments of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommonArguments {
    pub session: Option<SessionId>,
    pub numbered: Option<NumberedOperation>,
    pub time_limit: Option<Duration>,
    pub read_concern: ReadConcern,
    /// The time of the snapshot of a read with the concern "snapshot".
    pub read_at: Option<Timestamp>,
    pub write_concern: WriteConcern,
    pub comment: Option<Value>,
    pub api: Api,
}

impl CommonArguments {
    /// Sets the session of the command and of its transaction.
    pub fn set_session(&mut self, session: SessionId) {
        self.session = Some(session);
        if let Some(numbered) = &mut self.numbered {
            numbered.session = session;
        }
    }
}

/// The stable API options of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Api {
    /// `true` if the command has a version. Version 1 is the only one.
    pub has_version: bool,
    pub strict: Option<bool>,
    pub deprecation_errors: Option<bool>,
}

impl Api {
    /// Returns the arguments as sent.
    pub fn arguments(self) -> DocumentBuf {
        let mut arguments = DocumentBuf::new();
        if self.has_version {
            arguments.push("apiVersion", "1");
        }
        let flags = [
            ("apiStrict", self.strict),
            ("apiDeprecationErrors", self.deprecation_errors),
        ];
        for (name, flag) in flags {
            flag.into_iter().for_each(|flag| arguments.push(name, flag));
        }
        arguments
    }

    /// Fails if the API options differ from those of the command that is continued. `command` is
    /// the name of the command, `begun_by` describes the continued one.
    pub fn check_same(self, begun: Api, command: &str, begun_by: &str) -> Result<(), CommandError> {
        if self == begun {
            return Ok(());
        }
        let [own, begun] =
            [self, begun].map(|api| shell_text::document(api.arguments().as_document()));
        let message = format!(
            "API parameter mismatch: {command} used params {own}, the {begun_by} used {begun}"
        );
        Err(CommandError::new(ErrorCode::APIMismatchError, message))
    }
}

/// The transaction number of a command, in a transaction or in a retryable write.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberedOperation {
    pub session: SessionId,
    /// The number that the session has assigned.
    pub number: i64,
    pub part: TransactionPart,
    /// The statement numbers of the command. `None` counts from 0.
    pub statements: Option<StatementNumbers>,
}

/// The role of a command with a transaction number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionPart {
    /// A write that is sent again if its client did not get the reply.
    RetryableWrite,
    /// The first command of a transaction.
    Start,
    /// A following command of a transaction.
    Continuation,
}

/// Statement numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementNumbers {
    /// The number of the first statement. The others follow it.
    From(i32),
    /// A number for each statement.
    Each(Vec<i32>),
}

/// The writes that a read must see. On a standalone server, all accepted levels have the same
/// result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadConcern {
    #[default]
    Local,
    Available,
    Majority,
    Linearizable,
    Snapshot,
}

/// The origins of a concern, which servers set that forward the command of another client.
const PROVENANCES: &[&str] = &[
    "clientSupplied",
    "customDefault",
    "getLastErrorDefaults",
    "implicitDefault",
];

/// The condition under which a write is acknowledged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteConcern {
    /// The client does not need the result (`w: 0`).
    pub unacknowledged: bool,
    /// The write must be synced: `j: true`, or `w: "majority"` without `j: false`.
    pub synced: bool,
    /// True if neither `w` nor `j` is given.
    pub is_default: bool,
    /// `wtimeout`: the longest wait for other servers. `None`: no limit.
    pub wait_max: Option<Duration>,
    /// The reason why the concern cannot be fulfilled. The write is executed, and the reply
    /// contains the reason.
    pub unsatisfied: Option<CommandError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_in_order() {
        assert!(NAMES.is_sorted());
    }
}
