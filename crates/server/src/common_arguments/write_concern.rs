//! Parses the `writeConcern` of a command.

use std::time::Duration;

use windrow_document::{Document, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use super::{PROVENANCES, TransactionPart, WriteConcern};
use crate::arguments::{Arguments, whole};
use crate::command::Command;

fn bad_value(message: impl Into<String>) -> CommandError {
    CommandError::new(ErrorCode::BadValue, message)
}

fn failed_to_parse(message: impl Into<String>) -> CommandError {
    CommandError::new(ErrorCode::FailedToParse, message)
}

/// Parses the write concern. `is_member` is `true` on members of replica sets. A member executes a
/// write that more members should have, and its reply contains that they do not exist.
pub fn parse(
    arguments: &Arguments<'_>,
    command: &Command,
    part: Option<TransactionPart>,
    is_member: bool,
) -> Result<WriteConcern, CommandError> {
    let Some(document) = arguments.document("writeConcern")? else {
        return Ok(WriteConcern {
            is_default: true,
            ..WriteConcern::default()
        });
    };
    let is_within = matches!(
        part,
        Some(TransactionPart::Start | TransactionPart::Continuation)
    );
    let refused = match (
        is_within && !command.ends_transaction,
        command.write_concern,
    ) {
        (true, _) => "Only the commit of a transaction can have a write concern",
        (_, false) => "Command does not support writeConcern",
        _ => return read(document, is_member),
    };
    Err(CommandError::new(ErrorCode::InvalidOptions, refused))
}

pub(super) fn read(document: Document<'_>, is_member: bool) -> Result<WriteConcern, CommandError> {
    let mut concern = WriteConcern::default();
    let (mut journal, mut fsync, mut majority) = (None, false, false);
    for (name, value) in document {
        match (name, value) {
            ("j", _) => journal = read_switch(name, value)?,
            ("fsync", _) => fsync = read_switch(name, value)?.unwrap_or(false),
            ("w", ValueRef::String("majority")) => majority = true,
            ("w", ValueRef::String("")) => {}
            ("w", value) if value.is_nullish() => {}
            ("w", ValueRef::Document(tags)) => {
                check_tags(tags)?;
                let unknown = tags.first().filter(|_| is_member);
                concern.unsatisfied = unknown.map(|(tag, _)| unknown_tag(tag));
            }
            ("w", ValueRef::String(mode)) if is_member => {
                let message = format!(
                    "No write concern mode named '{mode}' found in replica set configuration"
                );
                let code = ErrorCode::UnknownReplWriteConcern;
                concern.unsatisfied = Some(CommandError::new(code, message));
            }
            ("w", ValueRef::String(mode)) => return Err(no_mode(mode)),
            ("w", other) => match read_servers(other)? {
                servers if servers > 1 && is_member => {
                    let message = "Not enough data-bearing nodes";
                    let code = ErrorCode::UnsatisfiableWriteConcern;
                    concern.unsatisfied = Some(CommandError::new(code, message));
                }
                servers if servers > 1 => {
                    return Err(bad_value(
                        "cannot use 'w' > 1 when a host is not replicated",
                    ));
                }
                servers => concern.unacknowledged = servers == 0,
            },
            ("wtimeout", _) => concern.wait_max = read_wait(value)?,
            ("provenance", _) => {
                Arguments::within("writeConcern", document).one_of(name, PROVENANCES)?;
            }
            ("wElectionId" | "wOpTime" | "getLastError", _) => {}
            _ => {
                return Err(failed_to_parse(format!(
                    "unrecognized write concern field: {name}"
                )));
            }
        }
    }
    if fsync && journal == Some(true) {
        return Err(failed_to_parse(
            "fsync and j options cannot be used together",
        ));
    }
    // A client that requests a sync needs the result.
    concern.unacknowledged &= journal != Some(true);
    concern.is_default = document.get("w").is_none() && journal.is_none() && !fsync;
    concern.synced = fsync || journal.unwrap_or(majority);
    Ok(concern)
}

fn read_switch(name: &str, value: ValueRef<'_>) -> Result<Option<bool>, CommandError> {
    match value {
        value if value.is_nullish() => Ok(None),
        value if value.is_number() => Ok(Some(value.is_truthy())),
        ValueRef::Bool(value) => Ok(Some(value)),
        _ => Err(failed_to_parse(format!(
            "{name} must be numeric or a boolean value"
        ))),
    }
}

/// Returns the error of a mode that a standalone server cannot know.
fn no_mode(mode: &str) -> CommandError {
    bad_value(format!(
        "cannot use non-majority 'w' mode \"{mode}\" when a host is not a member of a replica set"
    ))
}

/// Returns the error of a tag that no member has. The write is executed all the same.
fn unknown_tag(tag: &str) -> CommandError {
    let message = format!("No replica set tag key {tag} in config");
    CommandError::new(ErrorCode::NoSuchKey, message)
}

/// Checks `w` with tags: the number of members with each tag.
fn check_tags(tags: Document<'_>) -> Result<(), CommandError> {
    if tags.is_empty() {
        return Err(failed_to_parse("tagged write concern requires tags"));
    }
    match tags.iter().find(|(_, value)| !value.is_number()) {
        Some((tag, value)) => Err(failed_to_parse(format!(
            "tags must be a single level document with only number values; found \"{tag}: {value}\""
        ))),
        None => Ok(()),
    }
}

/// Checks `wtimeout`. There are no members to wait for, so only invalid values matter.
fn read_wait(value: ValueRef<'_>) -> Result<Option<Duration>, CommandError> {
    match whole(value) {
        Some(milliseconds) if milliseconds > i64::from(i32::MAX) => {
            Err(failed_to_parse("wtimeout must be a 32-bit integer"))
        }
        Some(milliseconds) => Ok(u64::try_from(milliseconds)
            .ok()
            .filter(|milliseconds| *milliseconds > 0)
            .map(Duration::from_millis)),
        None => Ok(None),
    }
}

/// Returns the number of servers in `w`.
fn read_servers(value: ValueRef<'_>) -> Result<i64, CommandError> {
    let is_nan = value.as_f64().is_some_and(f64::is_nan);
    match whole(value).filter(|_| !is_nan) {
        None => Err(failed_to_parse("w has to be a number, string, or object")),
        Some(servers) if !(0..=50).contains(&servers) => Err(failed_to_parse(
            "w has to be a non-negative number and not greater than 50",
        )),
        Some(servers) => Ok(servers),
    }
}
