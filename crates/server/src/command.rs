//! What a command is.

use windrow_document::{Document, DocumentBuf};
use windrow_wire::{CommandError, Reply, Request};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::generic::is_generic;
use crate::latency::Class;
use crate::metrics::Kind;

/// A command: what it is called, what it takes, and what it does.
pub struct Command {
    /// MongoDB's spelling.
    pub name: &'static str,
    /// Other spellings that MongoDB takes; the case of letters matters.
    pub aliases: &'static [&'static str],
    /// One sentence, for `listCommands`.
    pub help: &'static str,
    /// As what it is counted and shown.
    pub kind: Kind,
    /// Whether it runs on the database `admin` only.
    pub admin_only: bool,
    /// Whether it takes other read concerns than "local".
    pub read_concern: bool,
    /// Whether it takes the read concern "snapshot" outside of transactions, too.
    pub snapshot_reads: SnapshotReads,
    /// Whether it takes a write concern.
    pub write_concern: bool,
    /// Whether and how it may be part of a transaction.
    pub in_transactions: InTransactions,
    /// Whether a request reads what may take long, so that it has the time for reads where it does not
    /// say how much it may take.
    pub is_limited_read: fn(Document<'_>) -> bool,
    /// Whether it only answers, so that it ends when its client closes the connection. Limited reads
    /// do so as well.
    pub ends_with_client: bool,
    /// Whether it is there only where `enableTestCommands` is on.
    pub for_tests: bool,
    /// Whether it ends a transaction: it may say how durable that has to be.
    pub ends_transaction: bool,
    /// Whether it may have a transaction number outside of transactions, to be sent again.
    pub retryable: bool,
    /// What is looked at before a transaction is begun or joined: what fails here does not end it.
    pub check: Check,
    /// Whether it is part of MongoDB's stable API, version 1.
    pub in_api_version_1: bool,
    /// What of a request is no part of it, where the command is: a sentence.
    pub outside_api_version_1: fn(Document<'_>) -> Option<String>,
    /// What it takes beside the generic arguments.
    pub arguments: Accepted,
    pub run: Run,
}

/// How a command runs: with its request and its surroundings to a reply.
pub type Run = fn(&Request, &Context<'_>) -> Result<Reply, CommandError>;

/// See [`Command::check`].
pub type Check = fn(&Request) -> Result<(), CommandError>;

/// Whether a command reads at a moment, and where its reply says at which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotReads {
    Refused,
    InCursor,
    InReply,
    Untold,
    /// It goes on with a cursor, which has its own: what it says itself means nothing.
    OfCursor,
}

/// Whether a command may be part of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTransactions {
    Refused,
    /// But not as its first.
    Following,
    /// Where the transaction's read concern is "local".
    AllowedIfLocal,
    Allowed,
}

/// The arguments of a command.
#[derive(Clone, Copy)]
pub enum Accepted {
    /// Whatever comes: for the commands that MongoDB does not check either.
    Any,
    /// These; anything else is refused by name.
    Only(&'static [&'static str]),
}

/// Commands that read or write without being counted as queries or writes.
const READS: &[&str] = &["aggregate", "count", "distinct"];
const WRITES: &[&str] = &["bulkWrite", "findAndModify"];

impl Command {
    /// As what its time counts.
    pub fn class(&self) -> Class {
        match self.kind {
            Kind::Query | Kind::GetMore => Class::Read,
            Kind::Insert | Kind::Update | Kind::Delete => Class::Write,
            Kind::Command if READS.contains(&self.name) => Class::Read,
            Kind::Command if WRITES.contains(&self.name) => Class::Write,
            Kind::Command if self.ends_transaction => Class::Transaction,
            Kind::Command => Class::Command,
        }
    }

    /// Refuses by name what neither the command nor all commands take. The first field is the command;
    /// `sequences` are those that come beside the body.
    pub fn check_arguments<'a>(
        &self,
        body: Document<'a>,
        sequences: impl Iterator<Item = &'a str>,
    ) -> Result<(), CommandError> {
        let Accepted::Only(accepted) = self.arguments else {
            return Ok(());
        };
        let fields = body.iter().skip(1).map(|(name, _)| name);
        let mut names = fields.chain(sequences);
        match names.find(|name| !accepted.contains(name) && !is_generic(name)) {
            Some(name) => Err(Arguments::within(self.name, body).unknown(name)),
            None => Ok(()),
        }
    }

    /// What most commands are like; each states where it differs.
    pub const EMPTY: Command = Command {
        name: "",
        aliases: &[],
        help: "",
        kind: Kind::Command,
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
        arguments: Accepted::Only(&[]),
        run: |_, _| Ok(Reply::ok(DocumentBuf::new())),
    };
}
