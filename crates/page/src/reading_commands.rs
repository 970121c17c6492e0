//! The commands that a read-only page may run.

use windrow_document::{Document, ValueRef};

use crate::error::PageError;

/// Commands that do not write.
const READING: &[&str] = &[
    "aggregate",
    "buildInfo",
    "collStats",
    "connectionStatus",
    "count",
    "currentOp",
    "dbStats",
    "distinct",
    "explain",
    "find",
    "getCmdLineOpts",
    "getLog",
    "getMore",
    "getParameter",
    "hello",
    "hostInfo",
    "killCursors",
    "listCollections",
    "listCommands",
    "listDatabases",
    "listIndexes",
    "ping",
    "rolesInfo",
    "serverStatus",
    "top",
    "usersInfo",
];
/// The `aggregate` stages that write.
const WRITING_STAGES: [&str; 2] = ["$out", "$merge"];

/// Fails if a command may write.
///
/// # Errors
/// Fails with a message for the user.
pub fn check_reads(command: Document<'_>) -> Result<(), PageError> {
    let name = command.first().map_or("", |(name, _)| name);
    let stages = command.get("pipeline").and_then(ValueRef::as_array);
    let stages = stages
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_document);
    let mut names = stages.filter_map(|stage| stage.first().map(|(name, _)| name));
    let writes = names.any(|name| WRITING_STAGES.contains(&name));
    // Level -1 returns the profiling level without a change.
    let asks_level =
        name == "profile" && command.get(name).and_then(ValueRef::as_whole) == Some(-1);
    if (READING.contains(&name) || asks_level) && !writes {
        return Ok(());
    }
    Err(PageError::forbidden("the page is read-only"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    #[test]
    fn only_reading_commands_are_sent() {
        let reads = [
            doc! { "find": "c" },
            doc! { "profile": (-1) },
            doc! { "aggregate": "c", "pipeline": [{ "$match": {} }] },
        ];
        let writes = [
            doc! { "insert": "c" },
            doc! { "killOp": 1 },
            doc! { "profile": 0 },
            doc! { "aggregate": "c", "pipeline": [{ "$match": {} }, { "$out": "d" }] },
            doc! { "aggregate": "c", "pipeline": [{ "$merge": { "into": "d" } }] },
            doc! {},
        ];
        for command in reads {
            assert!(check_reads(command.as_document()).is_ok(), "{command}");
        }
        for command in writes {
            assert!(check_reads(command.as_document()).is_err(), "{command}");
        }
    }
}
