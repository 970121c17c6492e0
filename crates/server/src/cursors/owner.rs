//! The owner of a cursor. No other client can read it.

use std::time::Duration;

use windrow_access::UserName;
use windrow_document::{DocumentBuf, Timestamp};
use windrow_wire::{CommandError, ErrorCode};

use crate::access::{Authority, Requirement};
use crate::common_arguments::Api;
use crate::sessions::SessionId;

/// The options of a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CursorOptions {
    /// The cursor lives until it is killed or its session ends.
    pub no_timeout: bool,
    /// The cursor stays open at the end of its data.
    pub tailable: bool,
    /// A `getMore` at the end of the data waits for more, up to its `maxTimeMS`.
    pub await_data: bool,
    /// The cursor continues when its source is dropped, because it returns this as an event.
    pub reports_drops: bool,
    /// The time of the snapshot that it reads, if the client gets this time.
    pub read_at: Option<Timestamp>,
}

/// The owner of a cursor, and its description in `currentOp`.
#[derive(Clone, Debug)]
pub struct CursorOwner {
    /// "database.collection".
    pub namespace: String,
    pub session: Option<SessionId>,
    /// The user that opened it.
    pub user: Option<UserName>,
    /// The requirement of its command. Each `getMore` checks it again.
    pub requirement: Requirement,
    /// The number of the transaction that opened it.
    pub transaction: Option<i64>,
    /// The stable API options of its command.
    pub api: Api,
    pub options: CursorOptions,
    /// The command that opened it, for the log of slow operations.
    pub command: DocumentBuf,
    /// A summary of its plan, for the log and `currentOp`.
    pub plan_summary: Option<String>,
    /// The names of the indexes that it reads.
    pub indexes: Vec<String>,
    /// The time that its command has left of its time limit.
    pub time_left: Option<Duration>,
    /// The number of documents in its first batch.
    pub returned: usize,
}

/// The client that reads a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CursorClient {
    pub session: Option<SessionId>,
    /// The number of the transaction that reads it.
    pub transaction: Option<i64>,
    pub api: Api,
}

impl CursorOwner {
    /// Fails with Unauthorized unless the cursor belongs to the client, and the client may still
    /// run the command of the cursor.
    pub fn check_user(&self, id: i64, authority: &Authority) -> Result<(), CommandError> {
        let message = if !authority.owns(self.user.as_ref()) {
            format!("cursor id {id} was not created by the authenticated user")
        } else if !authority.meets(&self.requirement) {
            format!(
                "not authorized on {} to read cursor id {id}",
                self.namespace
            )
        } else {
            return Ok(());
        };
        Err(CommandError::new(ErrorCode::Unauthorized, message))
    }

    /// Fails unless the namespace, the session and the transaction are those of the cursor. The
    /// error codes for sessions are MongoDB's.
    pub fn check(
        &self,
        id: i64,
        namespace: &str,
        client: CursorClient,
    ) -> Result<(), CommandError> {
        if self.namespace != namespace {
            let message = format!(
                "Requested getMore on namespace '{namespace}', but cursor belongs to a different \
                 namespace {}",
                self.namespace
            );
            return Err(CommandError::new(ErrorCode::Unauthorized, message));
        }
        let sessions = match (self.session, client.session) {
            (one, other) if one == other => None,
            (Some(_), None) => Some((50737, "which was created in a session, without an lsid")),
            (None, _) => Some((50736, "which was not created in a session, in a session")),
            _ => Some((50738, "which was created in another session")),
        };
        let transactions = match (self.transaction, client.transaction) {
            (one, other) if one == other => None,
            (Some(_), None) => Some((50740, "which was created in a transaction, outside of it")),
            (None, _) => Some((50739, "which was not created in a transaction, in one")),
            _ => Some((50741, "which was created in another transaction")),
        };
        match sessions.or(transactions) {
            None => {
                let begun_by = "cursor-creating command";
                client.api.check_same(self.api, "getMore", begun_by)
            }
            Some((code, what)) => Err(CommandError::new(
                ErrorCode(code),
                format!("Cannot run getMore on cursor {id}, {what}"),
            )),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn owner(session: Option<SessionId>, no_timeout: bool) -> CursorOwner {
        let options = CursorOptions {
            no_timeout,
            ..CursorOptions::default()
        };
        CursorOwner {
            namespace: "a.b".into(),
            session,
            user: None,
            requirement: Requirement::Nothing,
            transaction: None,
            api: Api::default(),
            options,
            command: DocumentBuf::new(),
            plan_summary: None,
            indexes: Vec::new(),
            time_left: None,
            returned: 0,
        }
    }

    #[test]
    fn a_cursor_can_only_be_read_by_its_owner() {
        let client = |session: u8, transaction: Option<i64>| CursorClient {
            session: (session > 0).then_some(SessionId::for_tests([session; 16])),
            transaction,
            api: Api::default(),
        };
        let check = |creator: CursorClient, namespace: &str, reader: CursorClient, code: i32| {
            let owner = CursorOwner {
                transaction: creator.transaction,
                api: creator.api,
                ..owner(creator.session, false)
            };
            let found = owner.check(1, namespace, reader).err();
            assert_eq!(found.map_or(0, |error| error.code.number()), code);
        };
        let (nobody, one, other) = (client(0, None), client(1, None), client(2, None));
        check(nobody, "a.b", nobody, 0);
        check(one, "a.b", one, 0);
        check(nobody, "a.c", nobody, 13);
        check(one, "a.b", nobody, 50737);
        check(nobody, "a.b", one, 50736);
        check(one, "a.b", other, 50738);
        let (first, second) = (client(1, Some(1)), client(1, Some(2)));
        check(first, "a.b", first, 0);
        check(first, "a.b", one, 50740);
        check(one, "a.b", first, 50739);
        check(first, "a.b", second, 50741);
        check(nobody, "a.b", first, 50736);
        let strict = Api {
            has_version: true,
            strict: Some(true),
            ..Api::default()
        };
        let keeping = CursorClient {
            api: strict,
            ..nobody
        };
        check(keeping, "a.b", keeping, 0);
        check(keeping, "a.b", nobody, 347);
        check(nobody, "a.b", keeping, 347);
    }
}
