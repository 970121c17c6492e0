//! SIGHUP: reads the configuration file again, and applies the changes that are possible at run
//! time.

use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_server::{Log, Severity, State};

use super::options::{Options, parse};
use crate::command_line::Failure;

/// The options of a running server.
pub struct Reloader {
    log: Arc<Log>,
    state: Arc<State>,
    /// The options of the start, with the changeable options of the last reload.
    current: Options,
    /// All options of the last reload.
    newest: DocumentBuf,
}

/// Keys that can change at run time.
const CHANGEABLE: &[&str] = &[
    "setParameter",
    "systemLog.verbosity",
    "systemLog.quiet",
    "operationProfiling.slowOpThresholdMs",
    "operationProfiling.slowOpSampleRate",
];

impl Reloader {
    pub fn new(log: Arc<Log>, state: Arc<State>, current: Options) -> Reloader {
        Reloader {
            log,
            state,
            newest: current.shown.clone(),
            current,
        }
    }

    /// Reads the configuration file again. If it is invalid, nothing changes.
    pub fn reload(&mut self) {
        if self.current.config_file.is_none() {
            return;
        }
        match read_again() {
            Ok(Some(options)) => self.apply(options),
            Ok(None) => {}
            Err(failure) => {
                let message = "The configuration file is not used: it has an error";
                let attr = doc! { "error": (failure.to_string()) };
                self.write(Severity::Error, message, attr);
            }
        }
    }

    fn apply(&mut self, options: Options) {
        let (before, after) = (&self.current.runtime, &options.runtime);
        let failures = self.state.apply_settings(before, after);
        let mut applied = differences(&self.newest, &options.shown);
        applied.retain(|key| is_changeable(key));
        // Changes that need a restart are reported at each reload.
        let mut ignored = differences(&self.current.shown, &options.shown);
        ignored.retain(|key| !is_changeable(key));
        let attr = doc! {
            "changed": applied, "needRestart": ignored, "failed": (failures.clone()),
        };
        let severity = if failures.is_empty() {
            Severity::Info
        } else {
            Severity::Error
        };
        self.write(severity, "The configuration file was read again", attr);
        self.current.runtime = options.runtime;
        self.newest = options.shown;
    }

    fn write(&self, severity: Severity, message: &str, attr: DocumentBuf) {
        self.log
            .write(severity, "CONTROL", RELOAD, "signals", message, attr);
    }
}

/// The id of the log line about a reload. MongoDB has no such event.
const RELOAD: i32 = 9_000_010;

/// Parses the command line and the configuration file again.
fn read_again() -> Result<Option<Options>, Failure> {
    let mut arguments = lexopt::Parser::from_env();
    // Skips the name of the command.
    arguments.next()?;
    parse(arguments)
}

fn is_changeable(key: &str) -> bool {
    CHANGEABLE.iter().any(|changeable| {
        let rest = key.strip_prefix(changeable);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Returns the keys whose values differ, including keys that only one of the documents has.
fn differences(before: &DocumentBuf, after: &DocumentBuf) -> Vec<String> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    flatten("", before.as_document(), &mut old);
    flatten("", after.as_document(), &mut new);
    let mut keys: Vec<String> = Vec::new();
    let changed = new.iter().filter(|entry| !old.contains(entry));
    let removed = old.iter().filter(|entry| !new.contains(entry));
    for (key, _) in changed.chain(removed) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

fn flatten<'a>(prefix: &str, document: Document<'a>, found: &mut Vec<(String, ValueRef<'a>)>) {
    for (name, value) in document.iter() {
        let key = format!("{prefix}{name}");
        match value {
            ValueRef::Document(section) => flatten(&format!("{key}."), section, found),
            value => found.push((key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_keys_are_found() {
        let before = doc! { "net": { "port": 1, "ipv6": true }, "setParameter": { "quiet": true } };
        let after = doc! { "net": { "port": 2 }, "setParameter": { "quiet": true, "logLevel": 1 } };
        let keys = differences(&before, &after);
        assert_eq!(keys, ["net.port", "setParameter.logLevel", "net.ipv6"]);
        assert_eq!(keys.iter().filter(|key| is_changeable(key)).count(), 1);
        assert!(differences(&before, &before).is_empty());
        assert!(is_changeable("systemLog.quiet") && !is_changeable("systemLog.quietly"));
    }
}
