//! `$listLocalSessions` and `$listSessions`: the active sessions.

use std::time::{Duration, SystemTime};

use windrow_collection::Namespace;
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use super::document_list::Describe;
use super::stage_options;
use crate::clock;
use crate::context::Context;
use crate::errors::refuse;
use crate::sessions::SessionId;

/// The SHA-256 digest of the empty string, which MongoDB stores if no user is logged in.
const NOBODY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// Lists the sessions. Fails with 73 if a collection is named.
pub fn local<'c>(
    context: &'c Context<'_>,
    is_collectionless: bool,
    operand: ValueRef<'_>,
) -> Result<Describe<'c>, CommandError> {
    if !is_collectionless {
        let message = "$listLocalSessions must be run against the database with {aggregate: 1}";
        return refuse(ErrorCode::InvalidNamespace, message);
    }
    describe(context, "$listLocalSessions", operand)
}

/// Lists the sessions. Fails with 73 if the command does not name the collection in which MongoDB
/// stores sessions.
pub fn stored<'c>(
    context: &'c Context<'_>,
    namespace: &'c Namespace,
    operand: ValueRef<'_>,
) -> Result<Describe<'c>, CommandError> {
    if namespace.database != "config" || namespace.collection != "system.sessions" {
        let message = "$listSessions may only be run against config.system.sessions";
        return refuse(ErrorCode::InvalidNamespace, message);
    }
    describe(context, "$listSessions", operand)
}

fn describe<'c>(
    context: &'c Context<'_>,
    stage: &str,
    operand: ValueRef<'_>,
) -> Result<Describe<'c>, CommandError> {
    let is_shown = includes_anonymous(stage, operand)?;
    Ok(Box::new(move || {
        if is_shown {
            Ok(collect(context))
        } else {
            Ok(Vec::new())
        }
    }))
}

fn collect(context: &Context<'_>) -> Vec<DocumentBuf> {
    let now = SystemTime::now();
    let describe = |(id, age): (SessionId, Duration)| {
        let last = now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let (subtype, bytes) = (0, NOBODY.to_vec());
        let id = doc! { "id": (id.to_value()), "uid": (Value::Binary { subtype, bytes }) };
        doc! { "_id": id, "lastUse": (clock::date(last)) }
    };
    let ages = context.state.sessions.ages();
    ages.into_iter().map(describe).collect()
}

/// Returns `true` if the options `{users: [{user, db}], allUsers}` include sessions without a user,
/// which all sessions are.
///
/// # Errors
///
/// - 14, 40414, 40415: invalid options.
/// - 12: both `users` and `allUsers`.
fn includes_anonymous(stage: &str, operand: ValueRef<'_>) -> Result<bool, CommandError> {
    let options = stage_options::parse(stage, operand, &["allUsers", "users"])?;
    let all = options.bool("allUsers")?.unwrap_or(false);
    let (mut named, mut anonymous) = (false, false);
    for user in options.array("users")?.into_iter().flatten() {
        if !user.is_nullish() {
            named = true;
            anonymous |= is_anonymous(user, &format!("{stage}.users"))?;
        }
    }
    if named && all {
        let message = format!("{stage} may not specify {{allUsers: true}} and a list of users");
        return refuse(ErrorCode::UnsupportedFormat, message);
    }
    Ok(!named || anonymous)
}

fn is_anonymous(user: ValueRef<'_>, path: &str) -> Result<bool, CommandError> {
    let options = stage_options::parse(path, user, &["user", "db"])?;
    let mut empty = true;
    for name in ["user", "db"] {
        let text = options.string(name)?.ok_or_else(|| options.missing(name))?;
        empty &= text.is_empty();
    }
    Ok(empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_selected_by_name() {
        let check = |operand: Value, expected: Result<bool, i32>| {
            let found = includes_anonymous("$listLocalSessions", operand.as_ref());
            let found = found.map_err(|error| error.code.number());
            assert_eq!(found, expected, "{operand}");
        };
        check(doc! {}.into(), Ok(true));
        check(doc! { "allUsers": null, "users": null }.into(), Ok(true));
        check(doc! { "allUsers": true, "users": [null] }.into(), Ok(true));
        check(
            doc! { "users": [{ "user": "", "db": "" }] }.into(),
            Ok(true),
        );
        check(
            doc! { "users": [{ "db": "d", "user": "x" }, null], "allUsers": false }.into(),
            Ok(false),
        );
        check(
            doc! { "users": [null, { "user": "x", "db": "d" }], "allUsers": true }.into(),
            Err(12),
        );
        check(doc! { "users": [{ "user": "x" }] }.into(), Err(40414));
        check(
            doc! { "users": [{ "user": null, "db": "d" }] }.into(),
            Err(40414),
        );
        check(doc! { "users": [{ "user": 1, "db": "d" }] }.into(), Err(14));
        check(
            doc! { "users": [{ "user": "x", "db": "d", "x": 1 }] }.into(),
            Err(40415),
        );
        check(doc! { "users": ["x"] }.into(), Err(14));
        check(doc! { "users": {} }.into(), Err(14));
        check(doc! { "allUsers": 1 }.into(), Err(14));
        check(doc! { "allusers": true }.into(), Err(40415));
        check(Value::Null, Err(14));
    }
}
