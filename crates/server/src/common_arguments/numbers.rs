//! The transaction number and the statement numbers of a command.

use windrow_document::{Type, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use super::{NumberedOperation, StatementNumbers, TransactionPart};
use crate::arguments::Arguments;
use crate::sessions::SessionId;

/// Parses the transaction number, with MongoDB's checks.
pub fn parse(
    arguments: &Arguments<'_>,
    session: Option<SessionId>,
) -> Result<Option<NumberedOperation>, CommandError> {
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
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    };
    let part = match (autocommit, start) {
        (None, _) => TransactionPart::RetryableWrite,
        (_, Some(_)) => TransactionPart::Start,
        (_, None) => TransactionPart::Continuation,
    };
    Ok(Some(NumberedOperation {
        session,
        number,
        part,
        statements: parse_statements(arguments)?,
    }))
}

/// Parses `stmtId`, the number of the first statement, or `stmtIds`, the number of each. Fails if
/// both are set.
fn parse_statements(arguments: &Arguments<'_>) -> Result<Option<StatementNumbers>, CommandError> {
    let number = |name: &str, value: ValueRef<'_>| match value {
        ValueRef::Int32(number) => Ok(number),
        other => Err(arguments.wrong_type(name, other.type_of(), &[Type::Int32])),
    };
    let each = arguments.array("stmtIds")?;
    if let Some(first) = arguments.get("stmtId") {
        let first = number("stmtId", first)?;
        if each.is_some() {
            let message = "May not specify both stmtId and stmtIds in write command";
            return Err(CommandError::new(ErrorCode::InvalidOptions, message));
        }
        return Ok(Some(StatementNumbers::From(first)));
    }
    let Some(each) = each else {
        return Ok(None);
    };
    let each: Result<Vec<i32>, CommandError> =
        each.iter().map(|value| number("stmtIds", value)).collect();
    each.map(|each| Some(StatementNumbers::Each(each)))
}
