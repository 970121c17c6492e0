//! `windrow index --explain-pipeline`: reports the time that each stage of a run worked and waited.

use std::fmt::Write as _;
use std::time::Duration;

use windrow_document::{DocumentBuf, doc};
use windrow_ingest::{PipelineReport, StageReport};

use crate::output_format::OutputFormat;
use crate::progress_bar::format_grouped;

/// Parses the optional value of the option. `None` if it is unknown.
pub fn parse_format(value: Option<&str>) -> Option<OutputFormat> {
    match value {
        None | Some("text") => Some(OutputFormat::Text),
        Some("json") => Some(OutputFormat::Json),
        Some(_) => None,
    }
}

/// Formats the report: a table, or a line of JSON.
pub fn format_report(report: &PipelineReport, format: OutputFormat) -> String {
    match format {
        OutputFormat::Text => format_table(report),
        OutputFormat::Json => format!("{}\n", to_document(report)),
    }
}

/// Describes a stage.
fn describe(stage: &str) -> &'static str {
    match stage {
        "walk" => "find files and what changed",
        "extract" => "read and convert files in worker processes",
        "write" => "store documents",
        "index" => "split text into words and make entries, in the background",
        "merge" => "write entries to sections and merge these, in the background",
        "finish" => "write the last entries to sections",
        _ => "",
    }
}

/// Formats a row for each stage. The shares are of the total time of its threads.
fn format_table(report: &PipelineReport) -> String {
    let mut text = format!(
        "{:<8} {:>7} {:>9} {:>6} {:>9} {:>9} {:>17}  {:>20}\n",
        "stage", "threads", "busy", "share", "no input", "blocked", "queue mean / max", "items"
    );
    for stage in &report.stages {
        let queue = stage.queue.map_or_else(
            || "-".to_owned(),
            |queue| {
                let megabytes = |bytes: u64| bytes as f64 / 1e6;
                format!(
                    "{:.1} / {:.1} MB",
                    megabytes(queue.bytes_mean),
                    megabytes(queue.bytes_max)
                )
            },
        );
        let items = match stage.unit {
            "" => String::new(),
            unit => format!("{} {unit}", format_grouped(stage.items)),
        };
        let _ = writeln!(
            text,
            "{:<8} {:>7} {:>7.2} s {:>4.0} % {:>7.2} s {:>7.2} s {queue:>17}  {items:>20}  {}",
            stage.name,
            stage.threads,
            stage.busy.as_secs_f64(),
            100.0 * share(stage, report.elapsed),
            stage.input_wait.as_secs_f64(),
            stage.output_wait.as_secs_f64(),
            describe(stage.name)
        );
    }
    let _ = writeln!(text, "elapsed {:.2} s", report.elapsed.as_secs_f64());
    if let Some(busiest) = busiest(report) {
        let _ = writeln!(
            text,
            "the busiest stage is '{}': its threads worked {:.0} % of the time",
            busiest.name,
            100.0 * share(busiest, report.elapsed)
        );
    }
    text
}

/// Returns the share of time that the threads of a stage worked.
fn share(stage: &StageReport, elapsed: Duration) -> f64 {
    let capacity = elapsed.as_secs_f64() * stage.threads as f64;
    stage.busy.as_secs_f64() / capacity.max(1e-6)
}

fn busiest(report: &PipelineReport) -> Option<&StageReport> {
    report
        .stages
        .iter()
        .max_by(|one, other| share(one, report.elapsed).total_cmp(&share(other, report.elapsed)))
}

/// Returns the report as a document. Times are in seconds.
fn to_document(report: &PipelineReport) -> DocumentBuf {
    doc! {
        "elapsed": (report.elapsed.as_secs_f64()),
        "stages": (report.stages_in_seconds()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_ingest::QueueDepth;

    fn report() -> PipelineReport {
        let stage = |name, threads, millis, queue| StageReport {
            name,
            threads,
            items: 1234,
            unit: "files",
            busy: Duration::from_millis(millis),
            input_wait: Duration::ZERO,
            output_wait: Duration::from_millis(250),
            queue,
        };
        let queue = QueueDepth {
            bytes_mean: 1_500_000,
            bytes_max: 8_000_000,
        };
        PipelineReport {
            stages: vec![
                stage("walk", 1, 100, None),
                stage("extract", 2, 3_000, Some(queue)),
            ],
            elapsed: Duration::from_secs(2),
        }
    }

    #[test]
    fn a_table_has_a_row_for_each_stage_and_names_the_busiest() {
        let text = format_report(&report(), OutputFormat::Text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        for part in [
            "extract",
            "3.00 s",
            "75 %",
            "0.25 s",
            "1.5 / 8.0 MB",
            "1,234 files",
        ] {
            assert!(lines[2].contains(part), "{part}: {}", lines[2]);
        }
        assert!(lines[4].contains("'extract'"), "{}", lines[4]);
    }

    #[test]
    fn json_has_seconds() {
        let json = format_report(&report(), OutputFormat::Json);
        assert!(json.contains(r#""elapsed":2.0"#), "{json}");
        assert!(json.contains(r#""queue_bytes_max":8000000"#), "{json}");
    }

    #[test]
    fn other_forms_are_refused() {
        assert_eq!(parse_format(Some("yaml")), None);
        assert_eq!(parse_format(None), Some(OutputFormat::Text));
    }
}
