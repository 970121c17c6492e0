//! From a request to its generic arguments.

use std::time::Duration;

use windrow_document::{Document, Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Request};

use super::{Generic, Numbered, Part, ReadConcern, Statements, WriteConcern};
use crate::arguments::{Arguments, truncated};
use crate::command::Command;
use crate::sessions::SessionId;

impl Generic {
    /// Reads and checks the generic arguments of a request for `command`.
    pub fn parse(request: &Request, command: &Command) -> Result<Generic, CommandError> {
        let arguments = Arguments::new(request);
        check_api(request, &arguments, command)?;
        check_read_preference(&arguments)?;
        let session = parse_session(&arguments)?;
        let numbered = parse_numbered(&arguments, session)?;
        let part = numbered.as_ref().map(|numbered| numbered.part);
        check_concerns(&arguments, command, part)?;
        Ok(Generic {
            session,
            time_limit: parse_time_limit(arguments.get("maxTimeMS"))?,
            read_concern: parse_read_concern(&arguments, command, part)?,
            write_concern: parse_write_concern(&arguments, command)?,
            numbered,
            comment: arguments.get("comment").map(ValueRef::to_value),
        })
    }
}

fn bad_value(message: impl Into<String>) -> CommandError {
    CommandError::new(ErrorCode::BadValue, message)
}

fn failed_to_parse(message: impl Into<String>) -> CommandError {
    CommandError::new(ErrorCode::FailedToParse, message)
}

fn invalid_options(message: impl Into<String>) -> CommandError {
    CommandError::new(ErrorCode::InvalidOptions, message)
}

fn check_api(
    request: &Request,
    arguments: &Arguments<'_>,
    command: &Command,
) -> Result<(), CommandError> {
    let version = arguments.string("apiVersion")?;
    let strict = arguments.bool("apiStrict")?.unwrap_or(false);
    let other = arguments
        .get("apiStrict")
        .or(arguments.get("apiDeprecationErrors"));
    match version {
        None if other.is_some() => Err(CommandError::new(
            ErrorCode(4_886_600),
            "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
        )),
        None => Ok(()),
        Some("1") if strict && !command.in_api_version_1 => Err(CommandError::new(
            ErrorCode::APIStrictError,
            format!(
                "Provided apiStrict:true, but the command {} is not in API Version 1",
                command.name
            ),
        )),
        Some("1") => match (command.outside_api_version_1)(request.body()) {
            Some(message) if strict => Err(CommandError::new(ErrorCode::APIStrictError, message)),
            _ => Ok(()),
        },
        Some(version) => Err(CommandError::new(
            ErrorCode::APIVersionError,
            format!("API version must be \"1\", not \"{version}\""),
        )),
    }
}

/// There is one server to read from, so that a preference is checked and then means nothing.
fn check_read_preference(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    let Some(preference) = arguments.document("$readPreference")? else {
        return Ok(());
    };
    let inner = Arguments::within("$readPreference", preference);
    let mode = inner.string("mode")?.ok_or_else(|| {
        CommandError::new(ErrorCode::NoSuchKey, "Missing expected field \"mode\"")
    })?;
    match mode {
        "primary" if inner.array("tags")?.is_some_and(|tags| !tags.is_empty()) => Err(bad_value(
            "Only empty tags are allowed with primary read preference",
        )),
        "primary" | "primaryPreferred" | "secondary" | "secondaryPreferred" | "nearest" => Ok(()),
        _ => Err(bad_value(format!(
            "Could not parse $readPreference mode '{mode}'"
        ))),
    }
}

fn parse_session(arguments: &Arguments<'_>) -> Result<Option<SessionId>, CommandError> {
    let lsid = arguments.document("lsid")?;
    lsid.map(|document| SessionId::parse(document, "lsid"))
        .transpose()
}

/// Reads what a command is part of, with MongoDB's checks.
fn parse_numbered(
    arguments: &Arguments<'_>,
    session: Option<SessionId>,
) -> Result<Option<Numbered>, CommandError> {
    let number = match arguments.get("txnNumber") {
        Some(ValueRef::Int64(number)) => Some(number),
        None | Some(ValueRef::Null) => None,
        Some(other) => {
            return Err(arguments.wrong_type("txnNumber", other.type_of(), &[Type::Int64]));
        }
    };
    let autocommit = arguments.bool("autocommit")?;
    let start = arguments.bool("startTransaction")?;
    let message = match (number, autocommit, start) {
        (None, None, None) => return Ok(None),
        (Some(_), _, _) if session.is_none() => {
            "Transaction number requires a session ID to also be specified"
        }
        (Some(number), _, _) if number < 0 => "Transaction number cannot be negative",
        (None, Some(_), _) => {
            "'autocommit' field requires a transaction number to also be specified"
        }
        (None, None, Some(_)) => {
            "'startTransaction' field requires a transaction number to also be specified"
        }
        (_, Some(true), _) => "Specifying autocommit=true is not allowed.",
        (_, None, Some(_)) => {
            "'startTransaction' field requires 'autocommit' field to also be specified"
        }
        (_, _, Some(false)) => "Specifying startTransaction=false is not allowed.",
        _ => "",
    };
    let (Some(session), Some(number), "") = (session, number, message) else {
        return Err(invalid_options(message));
    };
    let part = match (autocommit, start) {
        (None, _) => Part::RetryableWrite,
        (_, Some(_)) => Part::Start,
        (_, None) => Part::Continuation,
    };
    Ok(Some(Numbered {
        session,
        number,
        part,
        statements: parse_statements(arguments)?,
    }))
}

/// `stmtId`, the number of the first statement, or `stmtIds`, that of each.
fn parse_statements(arguments: &Arguments<'_>) -> Result<Option<Statements>, CommandError> {
    let number = |name: &str, value: ValueRef<'_>| match value {
        ValueRef::Int32(number) => Ok(number),
        other => Err(arguments.wrong_type(name, other.type_of(), &[Type::Int32])),
    };
    if let Some(first) = arguments.get("stmtId") {
        return number("stmtId", first).map(|first| Some(Statements::From(first)));
    }
    let Some(each) = arguments.array("stmtIds")? else {
        return Ok(None);
    };
    let each: Result<Vec<i32>, CommandError> =
        each.iter().map(|value| number("stmtIds", value)).collect();
    each.map(|each| Some(Statements::Each(each)))
}

/// `maxTimeMS`: whole milliseconds up to 2³¹-1; 0 is no limit.
pub fn parse_time_limit(value: Option<ValueRef<'_>>) -> Result<Option<Duration>, CommandError> {
    let Some(value) = value else { return Ok(None) };
    let number = value
        .as_f64()
        .ok_or_else(|| bad_value("maxTimeMS must be a number"))?;
    if number.fract() != 0.0 || !number.is_finite() {
        return Err(bad_value("maxTimeMS has non-integral value"));
    }
    if !(0.0..=f64::from(i32::MAX)).contains(&number) {
        return Err(bad_value(format!(
            "{number} value for maxTimeMS is out of range"
        )));
    }
    Ok((number > 0.0).then(|| Duration::from_millis(number as u64)))
}

/// A transaction has the read concern of its first command and the write concern of its end.
fn check_concerns(
    arguments: &Arguments<'_>,
    command: &Command,
    part: Option<Part>,
) -> Result<(), CommandError> {
    let in_transaction = matches!(part, Some(Part::Start | Part::Continuation));
    if in_transaction && !command.ends_transaction && arguments.get("writeConcern").is_some() {
        let message = format!(
            "{} cannot be run with a write concern in a transaction",
            command.name
        );
        return Err(invalid_options(message));
    }
    if part == Some(Part::Continuation)
        && arguments
            .get("readConcern")
            .and_then(ValueRef::as_document)
            .is_some_and(|concern| concern.get("level").is_none_or(is_known_level))
    {
        let message = "Only the first command in a transaction may specify a readConcern";
        return Err(invalid_options(message));
    }
    Ok(())
}

fn is_known_level(level: ValueRef<'_>) -> bool {
    const KNOWN: &[&str] = &["local", "available", "majority", "linearizable", "snapshot"];
    level.as_str().is_some_and(|level| KNOWN.contains(&level))
}

fn parse_read_concern(
    arguments: &Arguments<'_>,
    command: &Command,
    part: Option<Part>,
) -> Result<ReadConcern, CommandError> {
    let Some(value) = arguments.get("readConcern") else {
        return Ok(ReadConcern::Local);
    };
    let Some(document) = value.as_document() else {
        if !command.read_concern {
            return Err(failed_to_parse("readConcern must be an object"));
        }
        return Err(arguments.wrong_type("readConcern", value.type_of(), &[Type::Document]));
    };
    for (name, value) in document {
        match name {
            "level" | "provenance" | "allowTransactionTableSnapshot" => {}
            "afterClusterTime" | "atClusterTime" | "afterOpTime" => check_time(name, value)?,
            _ => {
                let message = format!("Unrecognized option in readConcern: {name}");
                return Err(invalid_options(message));
            }
        }
    }
    let level = Arguments::within("readConcern", document)
        .string("level")?
        .unwrap_or("local");
    if part == Some(Part::Start) {
        return of_transaction(level);
    }
    let concern = match level {
        "local" => return Ok(ReadConcern::Local),
        "available" => ReadConcern::Available,
        "majority" => ReadConcern::Majority,
        "linearizable" | "snapshot" => {
            let message =
                format!("node needs to be a replica set member to use read concern: {level}");
            return Err(CommandError::new(ErrorCode::NotAReplicaSet, message));
        }
        _ => {
            return Err(failed_to_parse(
                "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'",
            ));
        }
    };
    if !command.read_concern {
        let message = format!(
            "Command {} does not support {{ readConcern: {{ level: \"{level}\" }} }}",
            command.name
        );
        return Err(invalid_options(message));
    }
    Ok(concern)
}

/// The read concern of a transaction's first command.
fn of_transaction(level: &str) -> Result<ReadConcern, CommandError> {
    match level {
        "local" => Ok(ReadConcern::Local),
        "majority" => Ok(ReadConcern::Majority),
        "snapshot" => Ok(ReadConcern::Snapshot),
        _ => Err(invalid_options(format!(
            "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in \
             order to run in a transaction, not '{level}'"
        ))),
    }
}

fn check_time(name: &str, value: ValueRef<'_>) -> Result<(), CommandError> {
    let expected = if name == "afterOpTime" {
        Type::Document
    } else {
        Type::Timestamp
    };
    if value.type_of() == expected {
        let message = format!("readConcern.{name} needs a replica set");
        return Err(CommandError::new(ErrorCode::NotAReplicaSet, message));
    }
    let (found, expected) = (value.type_of().name(), expected.name());
    let message = format!("\"{name}\" had the wrong type. Expected {expected}, found {found}");
    Err(CommandError::new(ErrorCode::TypeMismatch, message))
}

fn parse_write_concern(
    arguments: &Arguments<'_>,
    command: &Command,
) -> Result<WriteConcern, CommandError> {
    let Some(document) = arguments.document("writeConcern")? else {
        return Ok(WriteConcern::default());
    };
    if !command.write_concern {
        return Err(invalid_options("Command does not support writeConcern"));
    }
    read_write_concern(document)
}

fn read_write_concern(document: Document<'_>) -> Result<WriteConcern, CommandError> {
    let mut concern = WriteConcern::default();
    let (mut journal, mut fsync, mut majority) = (None, false, false);
    for (name, value) in document {
        match name {
            "j" => journal = Some(read_switch(name, value)?),
            "fsync" => fsync = read_switch(name, value)?,
            "w" => match value {
                ValueRef::String("majority") => majority = true,
                ValueRef::String("") => {}
                ValueRef::String(mode) => {
                    return Err(bad_value(format!(
                        "cannot use non-majority 'w' mode \"{mode}\" when a host is not a member of a replica set"
                    )));
                }
                other => concern.unacknowledged = read_servers(other)? == 0,
            },
            "wtimeout" | "wElectionId" | "wOpTime" | "getLastError" | "provenance" => {}
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
    concern.synced = fsync || journal.unwrap_or(majority);
    Ok(concern)
}

fn read_switch(name: &str, value: ValueRef<'_>) -> Result<bool, CommandError> {
    if value.is_number() || matches!(value, ValueRef::Bool(_)) {
        return Ok(value.is_truthy());
    }
    Err(failed_to_parse(format!(
        "{name} must be numeric or a boolean value"
    )))
}

/// The number of servers that `w` asks for: 0 or 1, since there is one.
fn read_servers(value: ValueRef<'_>) -> Result<i64, CommandError> {
    match truncated(value) {
        None => Err(failed_to_parse("w has to be a number, string, or object")),
        Some(servers) if !(0..=50).contains(&servers) => Err(failed_to_parse(
            "w has to be a non-negative number and not greater than 50",
        )),
        Some(servers) if servers > 1 => Err(bad_value(
            "cannot use 'w' > 1 when a host is not replicated",
        )),
        Some(servers) => Ok(servers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::request_for_tests;
    use windrow_document::{Decimal128, DocumentBuf, Value, doc};

    const WRITE: Command = Command {
        write_concern: true,
        ..Command::EMPTY
    };
    const READ: Command = Command {
        read_concern: true,
        ..Command::EMPTY
    };

    fn check(command: &Command, name: &str, value: impl Into<Value>, code: i32) {
        let mut body = doc! { "x": 1 };
        body.push(name, value);
        body.push("$db", "a");
        check_body(command, &body, code);
    }

    fn check_body(command: &Command, body: &DocumentBuf, code: i32) {
        let found = Generic::parse(&request_for_tests(body), command);
        assert_eq!(
            found.map_or_else(|error| error.code.number(), |_| 0),
            code,
            "{body}"
        );
    }

    #[test]
    fn a_limit_of_time() {
        let limit = |value: Value, code: i32| check(&READ, "maxTimeMS", value, code);
        limit(0.into(), 0);
        limit(i32::MAX.into(), 0);
        limit(Value::Decimal128(Decimal128::from_i64(2)), 0);
        for value in [
            Value::from(-1),
            "x".into(),
            0.5.into(),
            2_147_483_648i64.into(),
            true.into(),
        ] {
            limit(value, 2);
        }
        limit(f64::NAN.into(), 2);
        limit(doc! { "a": 1 }.into(), 2);
    }

    #[test]
    fn a_write_concern() {
        let concern = |value: DocumentBuf, code: i32| check(&WRITE, "writeConcern", value, code);
        for accepted in [
            doc! {},
            doc! { "w": 0 },
            doc! { "w": 1.5 },
            doc! { "w": "majority" },
            doc! { "w": "" },
            doc! { "j": true },
            doc! { "j": 1 },
            doc! { "w": 1, "wtimeout": "x" },
        ] {
            concern(accepted, 0);
        }
        concern(doc! { "w": 51 }, 9);
        concern(doc! { "w": { "a": 1 } }, 9);
        concern(doc! { "fsync": true, "j": true }, 9);
        concern(doc! { "foo": 1 }, 9);
        concern(doc! { "j": "x" }, 9);
        concern(doc! { "w": 2, "wtimeout": 1 }, 2);
        concern(doc! { "w": "bogus" }, 2);
        check(&WRITE, "writeConcern", "majority", 14);
        check(&WRITE, "writeConcern", Value::Null, 14);
        check(&READ, "writeConcern", doc! { "w": 1 }, 72);
    }

    #[test]
    fn a_synced_write_is_one_that_asks_for_it() {
        let synced =
            |document: DocumentBuf| read_write_concern(document.as_document()).unwrap().synced;
        assert!(synced(doc! { "j": true }));
        assert!(synced(doc! { "w": "majority" }));
        assert!(!synced(doc! { "w": "majority", "j": false }));
        assert!(!synced(doc! { "w": 1 }));
    }

    #[test]
    fn a_read_concern() {
        let concern = |value: DocumentBuf, code: i32| check(&READ, "readConcern", value, code);
        concern(doc! { "level": "local" }, 0);
        concern(doc! { "level": "available" }, 0);
        concern(doc! { "level": "majority" }, 0);
        concern(doc! { "level": "linearizable" }, 123);
        concern(doc! { "level": "snapshot" }, 123);
        concern(doc! { "level": "x" }, 9);
        concern(doc! { "level": 5 }, 14);
        concern(doc! { "level": "local", "foo": 1 }, 72);
        concern(doc! { "level": "snapshot", "atClusterTime": 5 }, 14);
        check(&READ, "readConcern", "x", 14);
        check(&WRITE, "readConcern", "local", 9);
        check(&WRITE, "readConcern", doc! { "level": "local" }, 0);
        check(&WRITE, "readConcern", doc! { "level": "majority" }, 72);
    }

    #[test]
    fn a_read_preference() {
        let preference =
            |value: DocumentBuf, code: i32| check(&READ, "$readPreference", value, code);
        preference(doc! { "mode": "secondary" }, 0);
        preference(doc! { "mode": "x" }, 2);
        preference(doc! { "mode": "primary", "tags": [{ "a": "b" }] }, 2);
        preference(doc! {}, 4);
        check(&READ, "$readPreference", "x", 14);
    }

    #[test]
    fn a_transaction() {
        let body = |code: i32, body: DocumentBuf| check_body(&WRITE, &body, code);
        let session = SessionId([1; 16]).to_document();
        body(72, doc! { "x": 1, "autocommit": false, "$db": "a" });
        body(
            72,
            doc! { "x": 1, "txnNumber": 1i64, "autocommit": true, "$db": "a" },
        );
        body(72, doc! { "x": 1, "startTransaction": true, "$db": "a" });
        body(
            14,
            doc! { "x": 1, "txnNumber": 1, "autocommit": false, "$db": "a" },
        );
        body(
            72,
            doc! { "x": 1, "txnNumber": (-1i64), "autocommit": false, "$db": "a" },
        );
        body(
            0,
            doc! { "x": 1, "lsid": (session.clone()), "txnNumber": 1i64, "$db": "a" },
        );
        let begins = doc! {
            "x": 1, "lsid": session, "txnNumber": 1i64, "autocommit": false,
            "startTransaction": true, "$db": "a",
        };
        body(0, begins.clone());
        let with = |name: &str, value: DocumentBuf| {
            let mut body = begins.clone();
            body.push(name, value);
            body
        };
        body(72, with("writeConcern", doc! { "w": 1 }));
        body(0, with("readConcern", doc! { "level": "snapshot" }));
        body(72, with("readConcern", doc! { "level": "available" }));
    }

    #[test]
    fn a_version_of_the_api() {
        let body = |code: i32, body: DocumentBuf| check_body(&READ, &body, code);
        body(0, doc! { "x": 1, "apiVersion": "1", "$db": "a" });
        body(322, doc! { "x": 1, "apiVersion": "2", "$db": "a" });
        body(
            323,
            doc! { "x": 1, "apiVersion": "1", "apiStrict": true, "$db": "a" },
        );
        body(4_886_600, doc! { "x": 1, "apiStrict": true, "$db": "a" });
    }
}
