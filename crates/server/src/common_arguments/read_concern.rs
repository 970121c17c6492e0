//! Parses the `readConcern` of a command.

use std::time::SystemTime;

use windrow_document::{Document, Timestamp, Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use super::{PROVENANCES, ReadConcern, TransactionPart};
use crate::arguments::Arguments;
use crate::clock;
use crate::command::{Command, SnapshotReads};

/// The command and the server that the read concern is for.
#[derive(Clone, Copy)]
pub struct ReadConcernParser<'a> {
    pub command: &'a Command,
    /// The transaction or retryable write of the command.
    pub part: Option<TransactionPart>,
    /// `true` on members of replica sets.
    pub is_member: bool,
}

const LEVELS: [(&str, ReadConcern); 5] = [
    ("local", ReadConcern::Local),
    ("available", ReadConcern::Available),
    ("majority", ReadConcern::Majority),
    ("linearizable", ReadConcern::Linearizable),
    ("snapshot", ReadConcern::Snapshot),
];

/// The stages that write.
const WRITING_STAGES: &[&str] = &["$out", "$merge"];

fn invalid_options(message: impl Into<String>) -> CommandError {
    CommandError::new(ErrorCode::InvalidOptions, message)
}

impl ReadConcernParser<'_> {
    /// Returns the level, and the time of the snapshot.
    pub fn parse(
        &self,
        arguments: &Arguments<'_>,
    ) -> Result<(ReadConcern, Option<Timestamp>), CommandError> {
        let Some(document) = arguments.document("readConcern")? else {
            return Ok((ReadConcern::Local, None));
        };
        let level = self.level(document)?;
        if self.part == Some(TransactionPart::Continuation) {
            let message = "Only the first command in a transaction may specify a readConcern";
            return Err(invalid_options(message));
        }
        let at = self.check_times(document, level)?;
        Ok((self.allowed(arguments, level)?, at))
    }

    fn allowed(
        &self,
        arguments: &Arguments<'_>,
        level: ReadConcern,
    ) -> Result<ReadConcern, CommandError> {
        match level {
            ReadConcern::Local => Ok(level),
            _ if self.part == Some(TransactionPart::Start) => in_transaction(level),
            ReadConcern::Linearizable | ReadConcern::Snapshot
                if self.command.read_concern && !self.is_member =>
            {
                let name = level.name();
                let message =
                    format!("node needs to be a replica set member to use read concern: {name}");
                Err(CommandError::new(ErrorCode::NotAReplicaSet, message))
            }
            _ => self.supported(arguments, level),
        }
    }

    fn level(&self, document: Document<'_>) -> Result<ReadConcern, CommandError> {
        for (name, value) in document {
            match name {
                "level" | "provenance" | "allowTransactionTableSnapshot" => {}
                "afterClusterTime" | "atClusterTime" | "afterOpTime" => check_type(name, value)?,
                _ => {
                    let message = format!("Unrecognized option in readConcern: {name}");
                    return Err(invalid_options(message));
                }
            }
        }
        let fields = Arguments::within("readConcern", document);
        fields.one_of("provenance", PROVENANCES)?;
        let level = fields.string("level")?;
        let level = level.unwrap_or("local");
        let known = LEVELS.iter().find(|(name, _)| *name == level);
        known.map(|(_, level)| *level).ok_or_else(|| {
            let words = LEVELS.map(|(name, _)| name).join(", ");
            let message = format!("readConcern.level must be one of {words}");
            CommandError::new(ErrorCode::FailedToParse, message)
        })
    }

    /// Checks that the command supports the level. All commands support "local". Other levels are
    /// for reads, "linearizable" for commands that do not write, and "snapshot" for those that can
    /// return the time of their snapshot.
    fn supported(
        &self,
        arguments: &Arguments<'_>,
        level: ReadConcern,
    ) -> Result<ReadConcern, CommandError> {
        let is_stage = |stage: ValueRef<'_>| {
            let name = stage.as_document().and_then(|stage| stage.first());
            name.is_some_and(|(name, _)| WRITING_STAGES.contains(&name))
        };
        let pipeline = arguments.get("pipeline").and_then(ValueRef::as_array);
        let writes = pipeline.is_some_and(|stages| stages.iter().any(is_stage));
        let is_refused = match level {
            ReadConcern::Linearizable => writes,
            ReadConcern::Snapshot => self.command.snapshot_reads == SnapshotReads::Refused,
            _ => false,
        };
        if self.command.read_concern && !is_refused {
            Ok(level)
        } else {
            Err(invalid_options(format!(
                "Command {} does not support {{ readConcern: {{ level: \"{}\" }} }}",
                self.command.name,
                level.name()
            )))
        }
    }

    /// Checks the times of a read concern. All earlier writes are visible, so a past time needs no
    /// wait. Returns the time of the snapshot.
    fn check_times(
        &self,
        document: Document<'_>,
        level: ReadConcern,
    ) -> Result<Option<Timestamp>, CommandError> {
        let time = |name: &str| match document.get(name) {
            Some(ValueRef::Timestamp(time)) => Some(time),
            _ => None,
        };
        let (after, at) = (time("afterClusterTime"), time("atClusterTime"));
        let has_position = document.get("afterOpTime").is_some();
        if after.is_none() && at.is_none() && !has_position {
            return Ok(None);
        }
        if !self.is_member && self.part != Some(TransactionPart::Start) {
            let message = "readConcern.afterClusterTime needs a replica set";
            return Err(CommandError::new(ErrorCode::NotAReplicaSet, message));
        }
        let takes_after = matches!(
            level,
            ReadConcern::Local | ReadConcern::Majority | ReadConcern::Snapshot
        );
        if after.is_some() && !takes_after {
            let message = "afterClusterTime field can be set only if level is equal to majority, local, or snapshot";
            return Err(invalid_options(message));
        }
        if at.is_some() && (level != ReadConcern::Snapshot || after.is_some()) {
            let message = "atClusterTime field can be set only if level is equal to snapshot, and without afterClusterTime";
            return Err(invalid_options(message));
        }
        if at.is_some_and(|time| time.seconds == 0) {
            return Err(invalid_options("atClusterTime cannot be a null timestamp"));
        }
        if after.is_some_and(|time| time.bits() == 0) {
            return Err(invalid_options(
                "afterClusterTime cannot be a null timestamp",
            ));
        }
        if has_position && after.is_some() {
            return Err(invalid_options(
                "Can not specify both afterClusterTime and afterOpTime",
            ));
        }
        if after.is_some_and(|time| time.bits() > latest()) {
            return Err(invalid_options(
                "readConcern's cluster time must not be greater than the current clusterTime",
            ));
        }
        Ok(at)
    }
}

impl ReadConcern {
    pub fn name(self) -> &'static str {
        let found = LEVELS.iter().find(|(_, one)| *one == self);
        found.map_or("local", |(name, _)| name)
    }
}

/// Returns the latest possible time: that of the clock, including all operations within its second.
fn latest() -> u64 {
    let seconds = clock::millis(SystemTime::now()) as u64 / 1000;
    (seconds + 1) << 32
}

/// Returns the read concern of the first command of a transaction.
fn in_transaction(level: ReadConcern) -> Result<ReadConcern, CommandError> {
    match level {
        ReadConcern::Local | ReadConcern::Majority | ReadConcern::Snapshot => Ok(level),
        _ => Err(invalid_options(format!(
            "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in \
             order to run in a transaction, not '{}'",
            level.name()
        ))),
    }
}

fn check_type(name: &str, value: ValueRef<'_>) -> Result<(), CommandError> {
    let expected = if name == "afterOpTime" {
        Type::Document
    } else {
        Type::Timestamp
    };
    if value.type_of() == expected {
        return Ok(());
    }
    let (found, expected) = (value.type_of().name(), expected.name());
    let message = format!("\"{name}\" had the wrong type. Expected {expected}, found {found}");
    Err(CommandError::new(ErrorCode::TypeMismatch, message))
}
