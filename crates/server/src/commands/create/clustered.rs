//! `create` with `clusteredIndex`: a collection that is sorted by `_id`, and the lifetime of its
//! documents.

use windrow_document::{Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use super::present;
use crate::arguments::Arguments;
use crate::errors::refuse;

/// MongoDB's error codes without a name.
const NOT_UNIQUE: ErrorCode = ErrorCode(5_979_700);
const NO_SPECIFICATION: ErrorCode = ErrorCode(5_979_703);
const WRONG_VERSION: ErrorCode = ErrorCode(5_979_704);
const ON_VIEW: ErrorCode = ErrorCode(6_026_500);
const WITHOUT_IDS: ErrorCode = ErrorCode(6_026_501);
const WITH_SIZE: ErrorCode = ErrorCode(6_049_200);
const CAPPED_FOREVER: ErrorCode = ErrorCode(6_049_201);
const WITH_MAX: ErrorCode = ErrorCode(6_049_204);
const CAPPED: ErrorCode = ErrorCode(6_127_800);

/// Returns the options of a clustered collection: `clusteredIndex` in its normal form, and
/// `expireAfterSeconds`. Empty if the collection is not clustered.
pub fn options(arguments: &Arguments<'_>) -> Result<DocumentBuf, CommandError> {
    let mut options = DocumentBuf::new();
    let Some(specification) = parse(arguments)? else {
        return if present(arguments, "expireAfterSeconds") {
            Err(unsupported_expiry())
        } else {
            Ok(options)
        };
    };
    check_other_options(arguments)?;
    options.push("clusteredIndex", normalize(specification)?);
    if let Some(seconds) = seconds(arguments)? {
        options.push("expireAfterSeconds", seconds);
    }
    Ok(options)
}

/// Fails if a view has `clusteredIndex`.
pub fn refuse_of_view(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    match parse(arguments)? {
        Some(_) => refuse(
            ON_VIEW,
            "The 'clusteredIndex' option is not supported with views",
        ),
        None => Ok(()),
    }
}

/// Returns the error of `expireAfterSeconds` for a collection that is not clustered.
pub fn unsupported_expiry() -> CommandError {
    let message = "'expireAfterSeconds' is only supported on time-series collections or when the \
                   'clusteredIndex' option is specified";
    CommandError::new(ErrorCode::InvalidOptions, message)
}

/// Parses `expireAfterSeconds`. Fails if it is negative.
pub fn seconds(arguments: &Arguments<'_>) -> Result<Option<i64>, CommandError> {
    match arguments.whole_number("expireAfterSeconds")? {
        Some(seconds) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            let message = format!(
                "'expireAfterSeconds' must be from 0 to {}, got {seconds}",
                i32::MAX
            );
            Err(CommandError::new(ErrorCode::InvalidOptions, message))
        }
        seconds => Ok(seconds),
    }
}

/// Returns the specification. `None` if it is absent or false.
fn parse<'a>(arguments: &Arguments<'a>) -> Result<Option<Document<'a>>, CommandError> {
    match arguments.get("clusteredIndex") {
        None | Some(ValueRef::Bool(false)) => Ok(None),
        Some(ValueRef::Document(specification)) => Ok(Some(specification)),
        Some(number) if number.is_number() && !number.is_truthy() => Ok(None),
        Some(value) if value.is_number() || value == ValueRef::Bool(true) => refuse(
            NO_SPECIFICATION,
            "The 'clusteredIndex' option takes a specification: {key: {_id: 1}, unique: true}",
        ),
        Some(other) => {
            let expected = [Type::Bool, Type::Document];
            Err(arguments.wrong_type("clusteredIndex", other.type_of(), &expected))
        }
    }
}

/// Refuses options that a clustered collection cannot have.
fn check_other_options(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    if arguments.switch("autoIndexId")? == Some(false) {
        let message = "The 'clusteredIndex' option does not support {autoIndexId: false}";
        return refuse(WITHOUT_IDS, message);
    }
    if present(arguments, "idIndex") {
        let message = "The 'clusteredIndex' option is not supported with 'idIndex'";
        return refuse(ErrorCode::InvalidOptions, message);
    }
    for (name, code) in [("size", WITH_SIZE), ("max", WITH_MAX)] {
        if present(arguments, name) {
            let message = format!("the option '{name}' is not supported for clustered collections");
            return refuse(code, message);
        }
    }
    if !arguments.flag("capped")? {
        return Ok(());
    }
    if present(arguments, "expireAfterSeconds") {
        refuse(CAPPED, "Clustered collections cannot be capped")
    } else {
        refuse(
            CAPPED_FOREVER,
            "A capped clustered collection requires the 'expireAfterSeconds' field",
        )
    }
}

/// Returns the specification in the form of `listCollections`.
fn normalize(specification: Document<'_>) -> Result<DocumentBuf, CommandError> {
    let fields = Arguments::within("create.clusteredIndex", specification);
    fields.only(&["v", "key", "name", "unique"])?;
    let key = fields
        .document("key")?
        .ok_or_else(|| fields.missing("key"))?;
    if fields.get("unique").is_none() {
        return Err(fields.missing("unique"));
    }
    if !fields.flag("unique")? {
        let message = "The 'clusteredIndex' option requires 'unique: true' to be specified";
        return refuse(NOT_UNIQUE, message);
    }
    let is_of_ids = key.count() == 1 && key.get("_id").and_then(ValueRef::as_f64) == Some(1.0);
    if !is_of_ids {
        return refuse(
            ErrorCode::InvalidIndexSpecificationOption,
            format!("The 'clusteredIndex' option supports the key {{_id: 1}} only, not {key}"),
        );
    }
    if let Some(version) = fields.whole_number("v")?.filter(|version| *version != 2) {
        let message = format!("The version of a clustered index must be 2, not {version}");
        return refuse(WRONG_VERSION, message);
    }
    let name = fields.string("name")?.unwrap_or("_id_");
    Ok(doc! { "v": 2, "key": (Value::from(key.to_buf())), "name": name, "unique": true })
}
