//! Commands as `currentOp`, the log and the profile show them: without passwords, and short.

use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};

/// Returns the arguments of a command that are hidden.
pub type SecretArguments = fn(&str) -> &'static [&'static str];

/// Commands above this size in bytes are shown by their first field and their comment, if that is
/// shorter.
const BYTES_MAX: usize = 4096;

/// The text that replaces a password, as in MongoDB.
const HIDDEN: ValueRef<'_> = ValueRef::String("xxx");

/// With this argument, the other ones have tokens of encrypted fields.
const ENCRYPTION_INFORMATION: &str = "encryptionInformation";

/// Returns a command of a database as it may be shown.
pub fn shown_command(
    body: Document<'_>,
    database: &str,
    secret_arguments: SecretArguments,
) -> DocumentBuf {
    if body.as_bytes().len() <= BYTES_MAX {
        let shown = without_secrets(body, secret_arguments);
        return if names_users(body) {
            without_credentials(shown.as_document())
        } else {
            shown
        };
    }
    let mut shown = only_names(body);
    if let Some(comment) = body.get("comment") {
        let alone = doc! { "comment": comment };
        if alone.as_bytes().len() <= BYTES_MAX {
            shown.push("comment", comment);
        }
    }
    shown.push("$truncated", format!("{} bytes", body.as_bytes().len()));
    shown.push("$db", database);
    shown
}

/// The collection with the keys of passwords.
pub const USERS: &str = "system.users";
/// The name of the field with them.
const CREDENTIALS: &str = "credentials";

/// Returns `true` if a command may be about the collection of users: it contains the name.
pub fn names_users(command: Document<'_>) -> bool {
    memchr::memmem::find(command.as_bytes(), USERS.as_bytes()).is_some()
}

/// Returns a document without the keys of passwords, at any depth.
pub fn without_credentials(document: Document<'_>) -> DocumentBuf {
    let mut copy = DocumentBuf::new();
    for (name, value) in document {
        let is_secret = name.split('.').any(|part| part == CREDENTIALS);
        if is_secret {
            copy.push(name, HIDDEN);
        } else {
            copy.push(name, value_without_credentials(value));
        }
    }
    copy
}

fn value_without_credentials(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(document) => without_credentials(document).into(),
        ValueRef::Array(array) => {
            let values = array.iter().map(value_without_credentials);
            Value::Array(values.collect())
        }
        value => value.to_value(),
    }
}

/// Returns `true` if a command, or a command that it explains, has arguments with passwords.
pub fn has_secrets(body: Document<'_>, secret_arguments: SecretArguments) -> bool {
    let Some((name, value)) = body.first() else {
        return false;
    };
    let nested = value.as_document();
    body.contains(ENCRYPTION_INFORMATION)
        || !secret_arguments(name).is_empty()
        || nested.is_some_and(|nested| has_secrets(nested, secret_arguments))
}

/// Returns a command without its secrets. If the first value of the command is a document, that is
/// the command that `explain` explains.
fn without_secrets(body: Document<'_>, secret_arguments: SecretArguments) -> DocumentBuf {
    if !has_secrets(body, secret_arguments) {
        return body.to_buf();
    }
    if body.contains(ENCRYPTION_INFORMATION) {
        let mut shown = only_names(body);
        shown.push(ENCRYPTION_INFORMATION, HIDDEN);
        return shown;
    }
    let secrets = body
        .first()
        .map_or(&[][..], |(name, _)| secret_arguments(name));
    let mut shown = DocumentBuf::new();
    for (place, (name, value)) in body.iter().enumerate() {
        match value {
            _ if secrets.contains(&name) => shown.push(name, HIDDEN),
            ValueRef::Document(nested) if place == 0 => {
                shown.push(name, without_secrets(nested, secret_arguments));
            }
            value => shown.push(name, value),
        }
    }
    shown
}

/// Returns the first field of a command, and of a command in it.
fn only_names(body: Document<'_>) -> DocumentBuf {
    let mut shown = DocumentBuf::new();
    match body.first() {
        Some((name, ValueRef::Document(nested))) => shown.push(name, only_names(nested)),
        Some((name, value)) => shown.push(name, value),
        None => {}
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret_arguments(command: &str) -> &'static [&'static str] {
        match command {
            "createUser" => &["pwd"],
            _ => &[],
        }
    }

    fn check(command: &DocumentBuf, expected: &DocumentBuf) {
        let shown = shown_command(command.as_document(), "d", secret_arguments);
        assert_eq!(shown, *expected, "{command}");
        let hides = shown.to_string().contains("xxx");
        let body = command.as_document();
        assert!(!hides || has_secrets(body, secret_arguments), "{command}");
    }

    /// `explain` of a command had shown its password.
    #[test]
    fn passwords_are_hidden_in_explained_commands_too() {
        let (create, hidden) = (
            doc! { "createUser": "a", "pwd": "b", "$db": "d" },
            doc! { "createUser": "a", "pwd": "xxx", "$db": "d" },
        );
        check(&create, &hidden);
        check(
            &doc! { "explain": (create.clone()), "verbosity": "v" },
            &doc! { "explain": (hidden.clone()), "verbosity": "v" },
        );
        check(
            &doc! { "explain": { "explain": create } },
            &doc! { "explain": { "explain": hidden } },
        );
        let find = doc! { "find": "c", "filter": { "pwd": "b" } };
        check(&find, &find);
        check(
            &doc! { "explain": (find.clone()) },
            &doc! { "explain": find },
        );
    }

    #[test]
    fn keys_of_passwords_are_hidden() {
        let hide = |document: DocumentBuf, expected: DocumentBuf| {
            assert_eq!(without_credentials(document.as_document()), expected);
        };
        hide(
            doc! { "_id": "a.b", "credentials": { "x": 1 } },
            doc! { "_id": "a.b", "credentials": "xxx" },
        );
        hide(
            doc! { "q": {}, "u": { "$set": { "credentials.SCRAM-SHA-1": 1, "roles": [] } } },
            doc! { "q": {}, "u": { "$set": { "credentials.SCRAM-SHA-1": "xxx", "roles": [] } } },
        );
        hide(
            doc! { "u": [{ "$set": { "credentials": 1 } }, 5] },
            doc! { "u": [{ "$set": { "credentials": "xxx" } }, 5] },
        );
        let find = |collection: &str, key: ValueRef<'_>| doc! { "find": collection, "filter": { "credentials.a": key } };
        let (number, hidden) = (ValueRef::Int32(1), ValueRef::String("xxx"));
        let shown =
            |command: &DocumentBuf| shown_command(command.as_document(), "d", secret_arguments);
        assert_eq!(
            shown(&find("system.users", number)),
            find("system.users", hidden)
        );
        assert_eq!(shown(&find("orders", number)), find("orders", number));
    }

    #[test]
    fn long_commands_are_shown_by_their_names() {
        let long = "b".repeat(5000);
        let create = doc! { "createUser": "a", "pwd": (long.as_str()) };
        let bytes = |command: &DocumentBuf| format!("{} bytes", command.as_bytes().len());
        check(
            &create,
            &doc! { "createUser": "a", "$truncated": (bytes(&create)), "$db": "d" },
        );
        let explain = doc! { "explain": create, "comment": 1 };
        check(
            &explain,
            &doc! {
                "explain": { "createUser": "a" }, "comment": 1,
                "$truncated": (bytes(&explain)), "$db": "d",
            },
        );
    }
}
