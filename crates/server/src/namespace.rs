//! Names of databases and collections, and their rules.

use windrow_collection::Namespace;
use windrow_document::{Document, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Request};

/// Maximum length of a database name in bytes.
const DATABASE_BYTES_MAX: usize = 63;

/// MongoDB's error code without a name.
const NAMESPACE_TOO_LONG: ErrorCode = ErrorCode(17_381);

/// Maximum length of "database.collection" in bytes.
const NAMESPACE_BYTES_MAX: usize = 255;

/// Fails with InvalidNamespace if MongoDB does not allow a database with this name.
pub fn check_database(name: &str) -> Result<(), CommandError> {
    let is_wrong = name.is_empty()
        || name.len() > DATABASE_BYTES_MAX
        || name.contains(['/', '\\', '.', ' ', '"', '$', '\0']);
    // The pseudo-database for metadata commands of clients starts with a dollar sign.
    if is_wrong && name != "$external" {
        return Err(invalid(format!("Invalid database name: '{name}'")));
    }
    Ok(())
}

/// Fails with InvalidNamespace if no collection can have this name. System collections and `$` in
/// names are checked by the commands.
pub fn check_collection(database: &str, name: &str) -> Result<(), CommandError> {
    if name.is_empty() || name.starts_with('.') || name.contains('\0') {
        return Err(invalid(format!(
            "Invalid namespace specified '{database}.{name}'"
        )));
    }
    Ok(())
}

/// The databases that the server uses itself.
const INTERNAL_DATABASES: [&str; 3] = ["admin", "config", "local"];

/// Returns `true` for the databases that the server uses itself.
pub fn is_internal_database(name: &str) -> bool {
    INTERNAL_DATABASES.contains(&name)
}

/// Returns the collection that a command names in its first field. Fails with `code` if that is not
/// a string, and with InvalidNamespace if no collection can have the name.
pub fn collection_name<'a>(
    database: &str,
    command: Document<'a>,
    code: ErrorCode,
) -> Result<&'a str, CommandError> {
    let name = match command.first() {
        Some((_, ValueRef::String(name) | ValueRef::Symbol(name))) => name,
        other => return Err(wrong_type(other.map(|(_, value)| value), code)),
    };
    check_collection(database, name)?;
    Ok(name)
}

/// Returns the error of a value that must be the name of a collection and is not a string.
pub fn wrong_type(value: Option<ValueRef<'_>>, code: ErrorCode) -> CommandError {
    let found = value.map_or("missing", |value| value.type_of().name());
    CommandError::new(code, format!("collection name has invalid type {found}"))
}

/// Returns the namespace that a request names in its first field. Fails with InvalidNamespace if
/// the name is invalid, except for the rules of [`check_creation`].
pub fn from_request(request: &Request) -> Result<Namespace, CommandError> {
    let database = request.database();
    let name = collection_name(database, request.body(), ErrorCode::InvalidNamespace)?;
    Ok(new(database, name))
}

/// Returns the namespace of a command, as [`from_request`] does, and also refuses names with a
/// dollar sign. `code` is the error for a name that is not a string.
pub fn without_dollar(
    database: &str,
    command: Document<'_>,
    code: ErrorCode,
) -> Result<Namespace, CommandError> {
    let name = collection_name(database, command, code)?;
    check_no_dollar(name)?;
    Ok(new(database, name))
}

/// Fails with InvalidNamespace if the name of a collection contains a dollar sign.
pub fn check_no_dollar(name: &str) -> Result<(), CommandError> {
    if name.contains('$') {
        return Err(invalid(format!("Invalid collection name: {name}")));
    }
    Ok(())
}

/// Creates a namespace from its parts.
pub fn new(database: &str, collection: &str) -> Namespace {
    Namespace {
        database: database.to_owned(),
        collection: collection.to_owned(),
    }
}

/// Collections in `system.` that clients may create. The others are internal.
const SYSTEM_COLLECTIONS: &[&str] = &[
    "system.js",
    "system.profile",
    "system.roles",
    "system.users",
    "system.views",
];

/// Fails with InvalidNamespace if clients may not create a collection with this name, and with
/// BadValue if a later part of the name is `system`.
pub fn check_creation(namespace: &Namespace) -> Result<(), CommandError> {
    let name = namespace.collection.as_str();
    if name.starts_with("system.") && !SYSTEM_COLLECTIONS.contains(&name) {
        return Err(invalid(format!("Invalid system namespace: {namespace}")));
    }
    check_no_dollar(name)?;
    check_length(namespace)?;
    if name.contains(".system.") {
        let message = format!("Invalid namespace: {namespace}");
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    Ok(())
}

/// Fails if the whole namespace is too long.
pub fn check_length(namespace: &Namespace) -> Result<(), CommandError> {
    let bytes = namespace.database.len() + 1 + namespace.collection.len();
    if bytes > NAMESPACE_BYTES_MAX {
        let message = format!(
            "Fully qualified namespace is too long. Namespace: {namespace} Max: {NAMESPACE_BYTES_MAX}"
        );
        return Err(CommandError::new(NAMESPACE_TOO_LONG, message));
    }
    Ok(())
}

fn invalid(message: String) -> CommandError {
    CommandError::new(ErrorCode::InvalidNamespace, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_databases() {
        let check = |name: &str, accepted: bool| {
            assert_eq!(check_database(name).is_ok(), accepted, "{name}");
        };
        for name in ["a", "größe", "a-b_c", "$external", &"x".repeat(63)] {
            check(name, true);
        }
        for name in [
            "",
            "a.b",
            "a b",
            "a/b",
            "a\\b",
            "a\"b",
            "$a",
            "a\0b",
            &"x".repeat(64),
        ] {
            check(name, false);
        }
    }

    /// `create` had accepted `a.system.b`, into which no document could be inserted.
    #[test]
    fn names_that_can_be_created() {
        let check = |collection: &str, expected: Option<i32>| {
            let namespace = Namespace {
                database: "a".to_owned(),
                collection: collection.to_owned(),
            };
            let refused = check_creation(&namespace).err();
            assert_eq!(refused.map(|it| it.code.number()), expected, "{collection}");
        };
        for name in ["a", "a.b", "a.system", "a.systems.b", "system.js"] {
            check(name, None);
        }
        check("a$b", Some(73));
        check("system.b", Some(73));
        check("a.system.b", Some(2));
        check(&"x".repeat(300), Some(17_381));
    }

    #[test]
    fn names_of_collections() {
        let check = |name: &str, accepted: bool| {
            assert_eq!(check_collection("a", name).is_ok(), accepted, "{name}");
        };
        ["a", "a.b", "a b", "größe", "system.js"]
            .iter()
            .for_each(|name| check(name, true));
        ["", ".a", "a\0b"]
            .iter()
            .for_each(|name| check(name, false));
    }
}
