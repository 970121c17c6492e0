//! `$listLocalSessions` and `$listSessions`: the active sessions.

use std::time::{Duration, SystemTime};

use windrow_access::UserName;
use windrow_collection::Namespace;
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use super::document_list::Describe;
use super::stage_options;
use crate::clock;
use crate::context::Context;
use crate::errors::refuse;
use crate::sessions::{SessionId, UserDigest};

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
    let selection = Selection::parse(stage, operand)?;
    Ok(Box::new(move || Ok(collect(context, &selection))))
}

fn collect(context: &Context<'_>, selection: &Selection) -> Vec<DocumentBuf> {
    let now = SystemTime::now();
    let is_selected = |session: SessionId| match selection {
        Selection::Own => context.authority.digest() == session.user,
        Selection::All => true,
        Selection::Users(users) => users.contains(&session.user),
    };
    let describe = |(id, age): (SessionId, Duration)| {
        let last = now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let id = doc! { "id": (id.to_value()), "uid": (id.user.to_value()) };
        doc! { "_id": id, "lastUse": (clock::date(last)) }
    };
    let ages = context.state.sessions.ages().into_iter();
    ages.filter(|(id, _)| is_selected(*id))
        .map(describe)
        .collect()
}

/// The users whose sessions are listed.
#[derive(Debug, PartialEq)]
enum Selection {
    /// The user of the client.
    Own,
    All,
    Users(Vec<UserDigest>),
}

impl Selection {
    /// Parses the options `{users: [{user, db}], allUsers}`.
    ///
    /// # Errors
    ///
    /// - 14, 40414, 40415: invalid options.
    /// - 12: both `users` and `allUsers`.
    fn parse(stage: &str, operand: ValueRef<'_>) -> Result<Selection, CommandError> {
        let options = stage_options::parse(stage, operand, &["allUsers", "users"])?;
        let all = options.bool("allUsers")?.unwrap_or(false);
        let mut users = Vec::new();
        for user in options.array("users")?.into_iter().flatten() {
            if !user.is_nullish() {
                users.push(parse_user(user, &format!("{stage}.users"))?);
            }
        }
        if !users.is_empty() && all {
            let message = format!("{stage} may not specify {{allUsers: true}} and a list of users");
            return refuse(ErrorCode::UnsupportedFormat, message);
        }
        Ok(if !users.is_empty() {
            Selection::Users(users)
        } else if all {
            Selection::All
        } else {
            Selection::Own
        })
    }
}

fn parse_user(user: ValueRef<'_>, path: &str) -> Result<UserDigest, CommandError> {
    let options = stage_options::parse(path, user, &["user", "db"])?;
    let text = |name: &str| options.string(name)?.ok_or_else(|| options.missing(name));
    let name = UserName::new(text("user")?, text("db")?);
    let is_nobody = name.user.is_empty() && name.database.is_empty();
    Ok(if is_nobody {
        UserDigest::NOBODY
    } else {
        UserDigest::new(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::Value;

    #[test]
    fn users_are_selected_by_name() {
        let check = |operand: Value, expected: Result<Selection, i32>| {
            let found = Selection::parse("$listLocalSessions", operand.as_ref());
            let found = found.map_err(|error| error.code.number());
            assert_eq!(found, expected, "{operand}");
        };
        let refused = |operand: Value, code| check(operand, Err(code));
        let users = |users: &[UserDigest]| Ok(Selection::Users(users.to_vec()));
        let x = UserDigest::new(&UserName::new("x", "d"));
        check(doc! {}.into(), Ok(Selection::Own));
        check(
            doc! { "allUsers": null, "users": null }.into(),
            Ok(Selection::Own),
        );
        check(
            doc! { "allUsers": true, "users": [null] }.into(),
            Ok(Selection::All),
        );
        let nobody = doc! { "users": [{ "user": "", "db": "" }] };
        check(nobody.into(), users(&[UserDigest::NOBODY]));
        let one = doc! { "users": [{ "db": "d", "user": "x" }, null], "allUsers": false };
        check(one.into(), users(&[x]));
        let both = doc! { "users": [null, { "user": "x", "db": "d" }], "allUsers": true };
        refused(both.into(), 12);
        refused(doc! { "users": [{ "user": "x" }] }.into(), 40414);
        refused(
            doc! { "users": [{ "user": null, "db": "d" }] }.into(),
            40414,
        );
        refused(doc! { "users": [{ "user": 1, "db": "d" }] }.into(), 14);
        refused(
            doc! { "users": [{ "user": "x", "db": "d", "x": 1 }] }.into(),
            40415,
        );
        refused(doc! { "users": ["x"] }.into(), 14);
        refused(doc! { "users": {} }.into(), 14);
        refused(doc! { "allUsers": 1 }.into(), 14);
        refused(doc! { "allusers": true }.into(), 40415);
        refused(Value::Null, 14);
    }
}
