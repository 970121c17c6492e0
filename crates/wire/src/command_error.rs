//! The error of a command, in the form that drivers parse.

use std::borrow::Cow;
use std::fmt;

use windrow_document::{DocumentBuf, Value};

use crate::code::ErrorCode;

/// The error of a command.
///
/// ```
/// use windrow_wire::{CommandError, ErrorCode};
/// let error = CommandError::new(ErrorCode::NamespaceNotFound, "ns not found");
/// let reply = error.to_document();
/// assert_eq!(reply.get("codeName").and_then(|name| name.as_str()), Some("NamespaceNotFound"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CommandError {
    /// MongoDB's error code.
    pub code: ErrorCode,
    /// The text of the error, for humans.
    pub message: String,
    /// Fields that some codes add to the reply, for example `keyPattern` and `keyValue`.
    pub extra: DocumentBuf,
    /// Error labels, which tell drivers how to react, for example `TransientTransactionError`.
    pub labels: Vec<Cow<'static, str>>,
}

impl CommandError {
    /// Creates an error without extra fields and labels.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> CommandError {
        CommandError {
            code,
            message: message.into(),
            extra: DocumentBuf::new(),
            labels: Vec::new(),
        }
    }

    /// Adds a field to the error's reply.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> CommandError {
        self.extra.push(name, value);
        self
    }

    /// Adds an error label.
    pub fn with_label(mut self, label: &'static str) -> CommandError {
        self.labels.push(Cow::Borrowed(label));
        self
    }

    /// Replaces the error labels.
    pub fn with_labels(mut self, labels: &[String]) -> CommandError {
        self.labels = labels.iter().cloned().map(Cow::Owned).collect();
        self
    }

    /// Returns the reply: `{ok: 0, errmsg, code, codeName, …extra, errorLabels}`.
    pub fn to_document(&self) -> DocumentBuf {
        let mut reply = DocumentBuf::new();
        reply.push("ok", 0.0);
        reply.push("errmsg", &self.message);
        reply.push("code", self.code.number());
        reply.push("codeName", self.code.name().as_ref());
        for (name, value) in self.extra.iter() {
            reply.push(name, value);
        }
        if !self.labels.is_empty() {
            let labels: Vec<&str> = self.labels.iter().map(|label| &**label).collect();
            reply.push("errorLabels", labels);
        }
        reply
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for CommandError {}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn errors_are_encoded_as_replies() {
        let check = |error: CommandError, expected: DocumentBuf| {
            assert_eq!(error.to_document(), expected);
        };
        check(
            CommandError::new(ErrorCode::CommandNotFound, "no such command: 'foo'"),
            doc! { "ok": 0.0, "errmsg": "no such command: 'foo'", "code": 59, "codeName": "CommandNotFound" },
        );
        check(
            CommandError::new(ErrorCode::DuplicateKey, "E11000")
                .with("keyPattern", doc! { "a": 1 })
                .with_label("RetryableWriteError"),
            doc! {
                "ok": 0.0, "errmsg": "E11000", "code": 11000, "codeName": "DuplicateKey",
                "keyPattern": { "a": 1 }, "errorLabels": ["RetryableWriteError"],
            },
        );
        check(
            CommandError::new(ErrorCode(51003), "exists"),
            doc! { "ok": 0.0, "errmsg": "exists", "code": 51003, "codeName": "Location51003" },
        );
    }
}
