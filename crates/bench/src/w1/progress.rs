//! Shows the progress of a build, as reported by `currentOp`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::bson::{Document, Value};
use crate::client::Connection;

/// Shows the progress until `done` is set.
pub fn show(connection: &mut Connection, done: &AtomicBool) {
    while !done.load(Ordering::Acquire) {
        let reply = connection.run("admin", |writer| writer.int32("currentOp", 1));
        // A failure of `currentOp` must not end the measurement.
        if let Some(line) = reply.ok().and_then(progress_line) {
            eprint!("\r  {line:<76}");
        }
        thread::sleep(Duration::from_millis(100));
    }
    eprintln!();
}

/// Formats the first operation that reports progress.
fn progress_line(reply: Document) -> Option<String> {
    let Some(Value::Array(operations)) = reply.get("inprog") else {
        return None;
    };
    operations.iter().find_map(|(_, operation)| {
        let Value::Document(operation) = operation else {
            return None;
        };
        let (done, total) = (
            operation.number("progress.done")?,
            operation.number("progress.total")?,
        );
        let Some(Value::String(message)) = operation.get("msg") else {
            return None;
        };
        let part = if total > 0.0 {
            (done / total).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let filled = (part * 30.0) as usize;
        let phase = message
            .split(" - ")
            .next()
            .unwrap_or(message)
            .trim_end_matches(':');
        let phase: String = phase.chars().take(34).collect();
        Some(format!(
            "[{}{}] {:>3.0}% {phase}",
            "#".repeat(filled),
            ".".repeat(30 - filled),
            part * 100.0
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson;

    #[test]
    fn progress_is_read_from_current_op() {
        let bytes = bson::build_document(|writer| {
            writer.array("inprog", |list| {
                list.document("0", |operation| operation.string("op", "command"));
                list.document("1", |operation| {
                    operation.string("msg", "Index Build: scanning collection - 300/600 50%");
                    operation.document("progress", |progress| {
                        progress.int32("done", 300);
                        progress.int64("total", 600);
                    });
                });
            });
        });
        let line = progress_line(Document::from_prefix(&bytes).unwrap()).unwrap();
        let bar = "#".repeat(15) + &".".repeat(15);
        assert_eq!(
            line,
            format!("[{bar}]  50% Index Build: scanning collection")
        );
    }
}
