//! The description of a command.

use windrow_document::{Document, DocumentBuf};
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::common_arguments::is_generic;
use crate::context::Context;
use crate::latency::LatencyClass;
use crate::metrics::Kind;

/// A command: its names, its properties, and its implementation.
pub struct Command {
    /// The name in MongoDB's spelling.
    pub name: &'static str,
    /// Other names that MongoDB accepts. Names are case-sensitive.
    pub aliases: &'static [&'static str],
    /// A sentence for `listCommands`.
    pub help: &'static str,
    /// The kind under which the command is counted and shown.
    pub kind: Kind,
    /// The class under which its latency is counted.
    pub class: LatencyClass,
    /// The servers that run it, if there are several data sets.
    pub routing: Routing,
    /// The privileges that its client needs.
    pub needs: Needs,
    /// The arguments with passwords, which are never shown.
    pub secrets: &'static [&'static str],
    /// `true` if it runs on the database `admin` only.
    pub admin_only: bool,
    /// `true` if it accepts other read concerns than "local".
    pub read_concern: bool,
    /// Its support of the read concern "snapshot" outside of transactions.
    pub snapshot_reads: SnapshotReads,
    /// `true` if it accepts a write concern.
    pub write_concern: bool,
    /// Its support of transactions.
    pub in_transactions: InTransactions,
    /// Returns `true` for a request that reads and can take long. It then has the default time
    /// limit of reads if it sets none.
    pub is_limited_read: fn(Document<'_>) -> bool,
    /// `true` if it only returns a result, so that it ends when its client closes the connection.
    /// Limited reads end then too.
    pub ends_with_client: bool,
    /// `true` if it exists only if `enableTestCommands` is on.
    pub for_tests: bool,
    /// `true` if it ends a transaction. It can then have a write concern in the transaction.
    pub ends_transaction: bool,
    /// `true` if it can have a transaction number outside of transactions, for retries.
    pub retryable: bool,
    /// A check before a transaction is started or continued. Its errors do not abort the
    /// transaction.
    pub check: Check,
    /// `true` if it is part of MongoDB's stable API, version 1.
    pub in_api_version_1: bool,
    /// Returns a sentence on those parts of a request that are not in the API, if the command
    /// itself is.
    pub outside_api_version_1: fn(Document<'_>) -> Option<String>,
    /// The accepted arguments besides the common ones.
    pub arguments: AcceptedArguments,
    /// The implementation if the request has `encryptionInformation`. `None` if it is refused.
    pub encrypted: Option<RunEncrypted>,
    /// The implementation.
    pub run: Run,
}

/// The servers that run a command, if there are several data sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// A server that has the data set of the database.
    Database,
    /// As `Database`, for a command that can name further databases. All have to be in one data
    /// set.
    Databases,
    /// The server that gets the command.
    Here,
    /// The primary of the first data set, which has the users, the roles and the settings of the
    /// cluster.
    Users,
    /// The primary of the data set of the transaction.
    Transaction,
    /// Each data set. Their replies are joined.
    Each(Join),
    /// None: the command is about a single replica set.
    Refused,
}

/// The way to join the replies of data sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// One of the replies is returned.
    One,
    /// The databases of all replies are listed, as by `listDatabases`.
    Databases,
    /// The document with this name has the fields of all replies.
    Fields(&'static str),
    /// The array with this name has the elements of all replies.
    Elements(&'static str),
}

/// The implementation of a command.
pub type Run = fn(&Request, &Context<'_>) -> Result<Reply, CommandError>;

/// See [`Command::check`].
pub type Check = fn(&Request) -> Result<(), CommandError>;

/// The support of a command for reads at a snapshot: the place of the snapshot's time in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotReads {
    /// It does not support the read concern.
    Refused,
    /// The time is a field of the cursor in its reply.
    InCursor,
    /// The time is a field of its reply.
    InReply,
    /// The reply does not contain the time.
    Unreported,
    /// It continues a cursor, which has its own snapshot. The read concern of the command is
    /// ignored.
    OfCursor,
}

/// The support of a command for transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTransactions {
    /// Not allowed.
    Refused,
    /// Allowed, but not as the first command.
    Following,
    /// Allowed if the read concern of the transaction is "local".
    AllowedIfLocal,
    /// Allowed with every read concern.
    Allowed,
}

/// The arguments of a command.
#[derive(Clone, Copy)]
pub enum AcceptedArguments {
    /// All arguments, for commands whose arguments MongoDB does not check.
    Any,
    /// These arguments. Others are refused by name.
    Only(&'static [&'static str]),
}

/// The argument by which drivers send queries and documents with encrypted fields.
pub const ENCRYPTION_INFORMATION: &str = "encryptionInformation";

/// Runs a command on encrypted fields. It gets the command, and a look-up of commands by name.
pub type RunEncrypted = fn(
    &Command,
    &Request,
    &Context<'_>,
    fn(&str) -> Option<&'static Command>,
) -> Result<Reply, CommandError>;

impl Command {
    /// Refuses arguments that neither this command nor all commands accept. The first field is the
    /// command. `sequences` are the names of the document sequences.
    pub fn check_arguments<'a>(
        &self,
        body: Document<'a>,
        sequences: impl Iterator<Item = &'a str>,
    ) -> Result<(), CommandError> {
        let AcceptedArguments::Only(accepted) = self.arguments else {
            return match self.encrypted {
                None if body.contains(ENCRYPTION_INFORMATION) => {
                    Err(Arguments::within(self.name, body).unknown(ENCRYPTION_INFORMATION))
                }
                _ => Ok(()),
            };
        };
        let fields = body.iter().skip(1).map(|(name, _)| name);
        let mut names = fields.chain(sequences);
        let is_accepted = |name: &str| {
            accepted.contains(&name)
                || is_generic(name)
                || name == ENCRYPTION_INFORMATION && self.encrypted.is_some()
        };
        match names.find(|name| !is_accepted(name)) {
            Some(name) => Err(Arguments::within(self.name, body).unknown(name)),
            None => Ok(()),
        }
    }

    /// The default of all fields. Each command overrides those in which it differs.
    pub const EMPTY: Command = Command {
        name: "",
        aliases: &[],
        help: "",
        kind: Kind::Command,
        class: LatencyClass::Command,
        routing: Routing::Database,
        needs: Needs::Unstated,
        secrets: &[],
        admin_only: false,
        read_concern: false,
        snapshot_reads: SnapshotReads::Refused,
        write_concern: false,
        in_transactions: InTransactions::Refused,
        is_limited_read: |_| false,
        ends_with_client: false,
        for_tests: false,
        ends_transaction: false,
        retryable: false,
        check: |_| Ok(()),
        in_api_version_1: false,
        outside_api_version_1: |_| None,
        arguments: AcceptedArguments::Only(&[]),
        encrypted: None,
        run: |_, _| Ok(Reply::ok(DocumentBuf::new())),
    };
}
