//! `$currentOp`: what runs, each with all that is known of it. The options choose among users, servers
//! and what is idle; there is one user and one server, and what runs is never idle.

use windrow_collection::Namespace;
use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use super::options;
use crate::context::Context;
use crate::errors::refuse;

const FLAGS: [&str; 7] = [
    "allUsers",
    "idleConnections",
    "idleCursors",
    "idleSessions",
    "localOps",
    "targetAllNodes",
    "truncateOps",
];

/// Errors: 73 elsewhere than on `admin` without a collection, 14 and 40415 for wrong options, 9 for
/// what only sharded clusters have.
pub fn describe(
    context: &Context<'_>,
    namespace: &Namespace,
    is_collectionless: bool,
    wanted: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>, CommandError> {
    if namespace.database != "admin" || !is_collectionless {
        let message = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return refuse(ErrorCode::InvalidNamespace, message);
    }
    check(wanted)?;
    let state = context.state;
    Ok(state.operations.describe(&state.host, |_, _| true))
}

fn check(wanted: ValueRef<'_>) -> Result<(), CommandError> {
    let options = options::parse("$currentOp", wanted, &FLAGS)?;
    for name in FLAGS {
        let flag = options.given_bool(name)?;
        if name == "targetAllNodes" && flag == Some(true) {
            let message = "$currentOp supports targetAllNodes only for sharded clusters";
            return refuse(ErrorCode::FailedToParse, message);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc};

    #[test]
    fn options_are_true_or_false() {
        let check = |wanted: Value, expected| options::tests::check(check, &wanted, expected);
        check(doc! {}.into(), None);
        check(doc! { "allUsers": true, "idleCursors": false }.into(), None);
        check(doc! { "targetAllNodes": false }.into(), None);
        check(doc! { "targetAllNodes": true }.into(), Some(9));
        check(doc! { "localOps": 1 }.into(), Some(14));
        check(doc! { "allUsers": null }.into(), Some(14));
        check(doc! { "AllUsers": true }.into(), Some(40415));
        check(Value::Null, Some(14));
        check(1.into(), Some(14));
    }
}
