//! The arguments that every command takes: which session, how durable, how long, with which
//! version of the API. [`parse`] alone reads them.

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

/// The names of the generic arguments, which no command needs to list. Those that nothing here
/// reads are MongoDB's own between its servers and routers; it ignores them from clients, too.
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

pub fn is_generic(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

/// The generic arguments of one command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generic {
    pub session: Option<SessionId>,
    pub numbered: Option<Numbered>,
    pub time_limit: Option<Duration>,
    pub read_concern: ReadConcern,
    /// The time at which a read with the concern "snapshot" is to read.
    pub read_at: Option<Timestamp>,
    pub write_concern: WriteConcern,
    pub comment: Option<Value>,
    pub api: Api,
}

/// Which version of MongoDB's stable API a command keeps to, as far as it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Api {
    /// There is version 1 alone.
    pub has_version: bool,
    pub strict: Option<bool>,
    pub deprecation_errors: Option<bool>,
}

impl Api {
    /// The arguments as they came.
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

    /// Fails where a command keeps to the version in another way than the one that it goes on with.
    /// `command`: its name; `begun_by`: what that one is.
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

/// That a command is one of a session's transaction, or a write that may be sent again.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbered {
    pub session: SessionId,
    /// The number that the session gave the transaction or the write.
    pub number: i64,
    pub part: Part,
    /// The numbers of the command's statements; None: from 0 on.
    pub statements: Option<Statements>,
}

/// What a command with a transaction number is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A write that is sent again where its client does not know what came of it.
    RetryableWrite,
    /// The first command of a transaction.
    Start,
    /// One that follows.
    Continuation,
}

/// The numbers of statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statements {
    From(i32),
    Each(Vec<i32>),
}

/// How much of what was written a read must see. A server without replicas has one answer to all
/// that it accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadConcern {
    #[default]
    Local,
    Available,
    Majority,
    Linearizable,
    Snapshot,
}

/// Where a concern comes from, as those say who pass on another's command.
const PROVENANCES: &[&str] = &[
    "clientSupplied",
    "customDefault",
    "getLastErrorDefaults",
    "implicitDefault",
];

/// When a write is acknowledged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteConcern {
    /// The client does not want to know (`w: 0`).
    pub unacknowledged: bool,
    /// Not before it is synced: `j: true`, or `w: "majority"` without `j: false`.
    pub synced: bool,
    /// Why it cannot be what the client wants, which is told with the reply to what is done.
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
