//! Formats the report as text, for a page or a terminal.

use super::{CollectionRate, Report, RunningOperation};
use crate::display_text::harmless_line;

/// Returns the host and the uptime of the server.
pub fn title(report: &Report) -> String {
    let (host, version) = (harmless_line(&report.host), harmless_line(&report.version));
    format!(
        "{host}  windrow {version}  up {}",
        duration(report.uptime_seconds)
    )
}

/// Returns the report as text, with a limited number of rows.
pub fn text(report: &Report) -> String {
    let mut lines = vec![title(report)];
    lines.extend(number_lines(report));
    lines.extend(["".to_owned(), OPERATION_HEADER.to_owned()]);
    lines.extend(report.running.iter().take(ROWS_MAX).map(operation_line));
    lines.extend(["".to_owned(), COLLECTION_HEADER.to_owned()]);
    lines.extend(
        report
            .collections
            .iter()
            .take(ROWS_MAX)
            .map(collection_line),
    );
    lines.extend(report.missing.iter().map(|it| format!("not shown: {it}")));
    lines.join("\n") + "\n"
}

/// The maximum number of rows of each table in a page.
const ROWS_MAX: usize = 10;

/// Returns the lines with values.
pub fn number_lines(report: &Report) -> Vec<String> {
    let value = |section: &str, name: &str| report.value(section, name);
    let operations = report.operations.iter();
    let operations: Vec<String> = operations
        .map(|one| format!("{} {:.0}", one.kind, one.per_second))
        .collect();
    let mut lines = vec![format!("{:<14}{}", "operations/s", operations.join("  "))];
    for one in &report.latencies {
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.2} ms"));
        lines.push(format!(
            "{:<14}{:>8.0}/s   p50 {:>10}   p99 {:>10}",
            one.class,
            one.per_second,
            shown(one.p50_ms),
            shown(one.p99_ms)
        ));
    }
    lines.push(format!(
        "{:<14}{:.0} of {:.0}, {:.0} active   cursors {:.0}   transactions {:.0}",
        "connections",
        value("connections", "current"),
        value("connections", "current") + value("connections", "available"),
        value("connections", "active"),
        value("cursors", "open"),
        value("transactions", "open"),
    ));
    lines.push(format!(
        "{:<14}process {}   limit {}   cache {}   tails {}",
        "memory",
        bytes(value("memory", "residentBytes")),
        bytes(value("memory", "limitBytes")),
        bytes(value("memory", "cacheBytes")),
        bytes(value("memory", "tailsBytes")),
    ));
    lines.push(format!(
        "{:<14}folds {:.0} ({:.1}/s)   merges {:.0} ({:.1}/s)   index builds {:.0}   snapshots {:.0}",
        "background",
        value("background", "folds"),
        value("background", "foldsPerSecond"),
        value("background", "merges"),
        value("background", "mergesPerSecond"),
        value("background", "indexBuilds"),
        value("background", "openSnapshots"),
    ));
    lines.push(format!(
        "{:<14}delayed {:.1}/s   commits that are not synced {:.0}",
        "writes",
        value("background", "delayedWritesPerSecond"),
        value("background", "unsyncedCommits"),
    ));
    lines.push(format!(
        "{:<14}data {}   free {} of {}",
        "disk",
        bytes(value("disk", "dataBytes")),
        bytes(value("disk", "freeBytes")),
        bytes(value("disk", "totalBytes")),
    ));
    lines.push(format!(
        "{:<14}in {}/s   out {}/s   requests {:.0}/s",
        "network",
        bytes(value("network", "inBytesPerSecond")),
        bytes(value("network", "outBytesPerSecond")),
        value("network", "requestsPerSecond"),
    ));
    lines
}

/// The heading of operations.
pub const OPERATION_HEADER: &str = "  seconds       opid  command           namespace";

/// Formats an operation.
pub fn operation_line(one: &RunningOperation) -> String {
    let mut line = format!(
        "{:>9.1} {:>10}  {:<16}  {}  {}",
        one.seconds, one.id, one.command, one.namespace, one.client
    );
    for part in [&one.user, &one.plan]
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        line.push_str("  ");
        line.push_str(part);
    }
    harmless_line(&line)
}

/// The heading of collections.
pub const COLLECTION_HEADER: &str = "  ops/s   total ms/s   reads ms/s  writes ms/s  collection";

/// Formats a collection.
pub fn collection_line(one: &CollectionRate) -> String {
    harmless_line(&format!(
        "{:>7.0} {:>12.1} {:>12.1} {:>12.1}  {}",
        one.per_second, one.total_ms, one.read_ms, one.write_ms, one.namespace
    ))
}

fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000.0 {
        return format!("{bytes:.0} B");
    }
    let mut value = bytes;
    let mut unit = "B";
    for larger in UNITS {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

fn duration(seconds: i64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min {} s", seconds % 60),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(
            [bytes(0.0), bytes(999.0), bytes(1500.0), bytes(2.5e9)],
            ["0 B", "999 B", "1.5 kB", "2.5 GB"]
        );
        assert_eq!([duration(59), duration(90_000)], ["0 min 59 s", "1 d 1 h"]);
    }
}
