//! The details of a change of users or roles in the audit log. They never contain a password.

use windrow_access::RoleName;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_wire::Request;

use super::role_documents;

/// Returns the details of a command that has changed users or roles.
pub fn audited_change(request: &Request) -> DocumentBuf {
    let (command, body) = (request.command(), request.body());
    let subject = if command.ends_with("FromDatabase") {
        None
    } else if command.ends_with("User") {
        Some("user")
    } else {
        Some("role")
    };
    let mut param = DocumentBuf::new();
    if let (Some(subject), Some(name)) = (subject, body.get(command)) {
        param.push(subject, name);
    }
    param.push("db", request.database());
    if command == "updateUser" {
        param.push("passwordChanged", body.contains("pwd"));
    }
    push_properties(&mut param, body, request.database());
    param
}

/// Returns the details of a stored user or role that was created or changed.
pub fn audited_document(stored: Document<'_>) -> DocumentBuf {
    let mut param = audited_name(stored);
    push_properties(&mut param, stored, "admin");
    param
}

/// Returns the name of a stored user or role.
pub fn audited_name(stored: Document<'_>) -> DocumentBuf {
    let fields = ["user", "role", "db"].iter();
    fields
        .filter_map(|name| Some((*name, stored.get(name)?)))
        .collect()
}

/// Adds the properties that may be shown. `database` is that of roles without one.
fn push_properties(param: &mut DocumentBuf, from: Document<'_>, database: &str) {
    if let Some(data) = from.get("customData") {
        param.push("customData", data);
    }
    if let Some(ValueRef::Array(roles)) = from.get("roles") {
        // The command has parsed them before.
        let names = roles
            .iter()
            .filter_map(|role| RoleName::parse(role, database).ok());
        param.push("roles", role_documents(&names.collect::<Vec<_>>()));
    }
    for name in ["privileges", "authenticationRestrictions"] {
        if let Some(value) = from.get(name) {
            param.push(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::request_for_tests;
    use windrow_document::doc;

    #[test]
    fn details_have_no_secrets() {
        let check = |command: DocumentBuf, expected: DocumentBuf| {
            assert_eq!(audited_change(&request_for_tests(&command)), expected);
        };
        check(
            doc! { "createUser": "u", "pwd": "secret", "roles": ["read"], "$db": "d" },
            doc! { "user": "u", "db": "d", "roles": [{ "role": "read", "db": "d" }] },
        );
        check(
            doc! { "updateUser": "u", "pwd": "secret", "customData": { "a": 1 }, "$db": "d" },
            doc! { "user": "u", "db": "d", "passwordChanged": true, "customData": { "a": 1 } },
        );
        check(
            doc! { "grantPrivilegesToRole": "r", "privileges": [], "$db": "d" },
            doc! { "role": "r", "db": "d", "privileges": [] },
        );
        check(
            doc! { "dropAllRolesFromDatabase": 1, "$db": "d" },
            doc! { "db": "d" },
        );
    }
}
