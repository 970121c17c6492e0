//! The log of the server: one JSON document per line, in MongoDB's format, so that its tools work.
//!
//! ```text
//! {"t":{"$date":"…"},"s":"I","c":"NETWORK","id":22943,"ctx":"listener","msg":"…","attr":{…}}
//! ```

mod sink;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use windrow_document::{DocumentBuf, doc};

use crate::clock;
use crate::sync::lock;
pub(crate) use sink::{Delivery, Sink};
pub use sink::{LogRotation, LogTarget, SyslogFacility};

/// The severity of a line. Its letter is the field `s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The process ends.
    Fatal,
    /// An operation failed because of the server.
    Error,
    /// The server continues, but an administrator should look.
    Warning,
    /// An event of normal operation.
    Info,
}

impl Severity {
    fn letter(self) -> &'static str {
        match self {
            Severity::Fatal => "F",
            Severity::Error => "E",
            Severity::Warning => "W",
            Severity::Info => "I",
        }
    }

    /// Returns the level in the system's log, RFC 5424.
    fn syslog_level(self) -> u32 {
        match self {
            Severity::Fatal => 2,
            Severity::Error => 3,
            Severity::Warning => 4,
            Severity::Info => 6,
        }
    }
}

/// Maximum number of lines that `getLog` returns.
const RECENT_LINES_MAX: usize = 1024;

/// The log: a stream, and the newest lines for `getLog`.
pub struct Log {
    sink: Mutex<Sink>,
    recent: Mutex<RecentLines>,
}

#[derive(Default)]
struct RecentLines {
    lines: VecDeque<String>,
    written: u64,
    startup_warnings: Vec<String>,
}

impl Log {
    /// Writes to stderr.
    pub fn to_stderr() -> Log {
        Log::new(Sink::Stderr)
    }

    /// Opens the target.
    pub fn open(target: &LogTarget) -> io::Result<Log> {
        Ok(Log::new(Sink::open(target)?))
    }

    /// Writes nothing. [`recent`](Self::recent) has the newest lines.
    pub fn to_nowhere() -> Log {
        Log::new(Sink::Nowhere)
    }

    fn new(sink: Sink) -> Log {
        Log {
            sink: Mutex::new(sink),
            recent: Mutex::default(),
        }
    }

    /// Writes an informational line. `component` and `id` are MongoDB's, if it has the event.
    /// `context` is the thread ("conn12", "listener").
    pub fn info(&self, component: &str, id: i32, context: &str, message: &str, attr: DocumentBuf) {
        self.write(Severity::Info, component, id, context, message, attr);
    }

    /// Writes a warning. See [`info`](Self::info) for the arguments.
    pub fn warn(&self, component: &str, id: i32, context: &str, message: &str, attr: DocumentBuf) {
        self.write(Severity::Warning, component, id, context, message, attr);
    }

    /// Writes a line with a severity. See [`info`](Self::info) for the other arguments.
    pub fn write(
        &self,
        severity: Severity,
        component: &str,
        id: i32,
        context: &str,
        message: &str,
        attr: DocumentBuf,
    ) {
        let mut line = doc! {
            "s": (severity.letter()), "c": component, "id": id, "ctx": context, "msg": message,
        };
        if !attr.as_document().is_empty() {
            line.push("attr", attr);
        }
        // The time is the first field, in the format of MongoDB's logs.
        let (time, line) = (clock::iso(SystemTime::now()), line.to_string());
        let fields = line.strip_prefix('{').unwrap_or(&line);
        self.keep(severity, format!(r#"{{"t":{{"$date":"{time}"}},{fields}"#));
    }

    /// Writes a line that `getLog: "startupWarnings"` and mongosh show.
    pub fn startup_warning(&self, id: i32, message: &str) {
        self.warn("CONTROL", id, "initandlisten", message, DocumentBuf::new());
        let mut recent = lock(&self.recent);
        if let Some(line) = recent.lines.back().cloned() {
            recent.startup_warnings.push(line);
        }
    }

    /// Stores a line. If the stream fails, the server continues and the line is only kept in
    /// memory.
    fn keep(&self, severity: Severity, line: String) {
        // An error is not reported, because it would be reported in the log.
        let _ = lock(&self.sink).write(severity, &line);
        let mut recent = lock(&self.recent);
        recent.written += 1;
        recent.lines.push_back(line);
        if recent.lines.len() > RECENT_LINES_MAX {
            recent.lines.pop_front();
        }
    }

    /// Continues in a new file, as the target says. Returns the new path of the renamed file. Has
    /// no effect if the log is not a file. Fails if a file with the new path exists.
    pub fn rotate(&self) -> io::Result<Option<PathBuf>> {
        lock(&self.sink).rotate()
    }

    /// Returns the newest lines, oldest first, and the total number of lines.
    pub fn recent(&self) -> (Vec<String>, u64) {
        let recent = lock(&self.recent);
        (recent.lines.iter().cloned().collect(), recent.written)
    }

    /// Returns the messages of [`startup_warning`](Self::startup_warning), oldest first.
    pub fn startup_warnings(&self) -> Vec<String> {
        lock(&self.recent).startup_warnings.clone()
    }

    /// Writes each panic and each broken invariant of the process as a log line with its location,
    /// instead of text on stderr.
    pub fn take_panics(self: &Arc<Log>) {
        self.take_bugs();
        let log = Arc::clone(self);
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map_or(String::new(), ToString::to_string);
            let what = panic.payload_as_str().unwrap_or("no message");
            let thread = std::thread::current().name().unwrap_or("thread").to_owned();
            let attr = doc! { "error": what, "place": place };
            log.write(Severity::Error, "ASSERT", PANIC, &thread, "Panic", attr);
        }));
    }

    fn take_bugs(self: &Arc<Log>) {
        let log = Arc::clone(self);
        // Only the first server of a process reports. Tests start several.
        windrow_invariant::set_reporter(Box::new(move |report| {
            let thread = std::thread::current().name().unwrap_or("thread").to_owned();
            let attr = doc! {
                "error": (report.bug.message()), "place": (report.location.to_string()),
                "backtrace": (report.backtrace.to_string()),
            };
            log.write(
                Severity::Error,
                "ASSERT",
                BUG,
                &thread,
                "Broken invariant",
                attr,
            );
        }));
    }
}

/// The id of the line about a panic. MongoDB has no such event.
const PANIC: i32 = 9_000_001;

/// The id of the line about a broken invariant. MongoDB has no such event.
const BUG: i32 = 9_000_004;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_invariant_is_logged_with_its_backtrace() {
        let log = Arc::new(Log::to_nowhere());
        log.take_bugs();
        windrow_invariant::tolerate_bugs(|| windrow_invariant::Bug::new("a test breaks it"));
        let (lines, _) = log.recent();
        let line = lines.iter().find(|line| line.contains("a test breaks it"));
        let line = line.expect("a line of the log");
        for expected in [
            "\"Broken invariant\"",
            "log.rs:",
            "\"backtrace\"",
            "a_broken_invariant_is",
        ] {
            assert!(line.contains(expected), "{expected}: {line}");
        }
    }

    #[test]
    fn lines_have_the_format_of_mongodb_and_are_kept() {
        let log = Log::to_nowhere();
        for n in 0..1100 {
            log.info(
                "NETWORK",
                22943,
                "listener",
                "Connection accepted",
                doc! { "n": n },
            );
        }
        let (lines, written) = log.recent();
        assert_eq!((lines.len(), written), (1024, 1100));
        let expected = concat!(
            r#""s":"I","c":"NETWORK","id":22943,"ctx":"listener","#,
            r#""msg":"Connection accepted","attr":{"n":1099}}"#
        );
        assert!(
            lines[1023].starts_with(r#"{"t":{"$date":""#),
            "{}",
            lines[1023]
        );
        assert!(lines[1023].ends_with(expected), "{}", lines[1023]);
    }
}
