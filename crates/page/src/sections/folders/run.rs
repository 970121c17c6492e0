//! Shows the counters of a run and of its stages.

use maud::{Markup, html};
use windrow_document::{Document, ValueRef};

use crate::folder_services::{QueueBytes, RunProgress, StageProgress};
use crate::show::{bytes, duration, grouped};
use crate::texts::folders as texts;

/// The counters of a finished run.
pub struct EndedRun {
    /// The end of the run, in milliseconds since 1970-01-01 UTC.
    pub ended_ms: i64,
    /// The duration in seconds.
    pub seconds: f64,
    /// The number of files that were read.
    pub files_read: i64,
    /// The number of bytes that were read.
    pub bytes_read: f64,
    /// The numbers of added, replaced and removed files and of failures.
    pub changes: [i64; 4],
    /// The counters of the stages.
    pub stages: Vec<StageProgress>,
}

impl EndedRun {
    /// Reads the counters from a document of `files.runs`.
    pub fn new(run: Document<'_>) -> EndedRun {
        let ms = |name: &str| match run.get(name) {
            Some(ValueRef::DateTime(ms)) => ms,
            _ => 0,
        };
        let whole = |name: &str| run.get(name).and_then(ValueRef::as_whole).unwrap_or(0);
        let stages = run.get("pipeline").and_then(ValueRef::as_array);
        let stages = stages
            .into_iter()
            .flatten()
            .filter_map(ValueRef::as_document);
        EndedRun {
            ended_ms: ms("ended"),
            seconds: (ms("ended") - ms("started")).max(0) as f64 / 1_000.0,
            files_read: whole("files_read"),
            bytes_read: whole("bytes_read") as f64,
            changes: [
                whole("files_added"),
                whole("files_replaced"),
                whole("files_removed"),
                whole("failures"),
            ],
            stages: stages.map(stage).collect(),
        }
    }

    /// Returns the throughput. `None` if no files were read.
    pub fn speed(&self) -> Option<String> {
        let seconds = self.seconds.max(1e-3);
        let files = self.files_read as f64 / seconds;
        (self.files_read > 0).then(|| texts::speed(files, self.bytes_read / 1e6 / seconds))
    }
}

fn stage(stage: Document<'_>) -> StageProgress {
    let number = |name: &str| stage.get(name).and_then(ValueRef::as_f64).unwrap_or(0.0);
    let whole = |name: &str| number(name).max(0.0) as u64;
    let has_queue = stage.get("queue_bytes_max").is_some();
    StageProgress {
        name: stage
            .get("stage")
            .and_then(ValueRef::as_str)
            .unwrap_or_default()
            .to_owned(),
        threads: whole("threads"),
        items: whole("items"),
        busy_ms: number("busy_ms"),
        input_wait_ms: number("input_wait_ms"),
        output_wait_ms: number("output_wait_ms"),
        queue_bytes: has_queue.then(|| QueueBytes {
            mean: whole("queue_bytes_mean"),
            max: whole("queue_bytes_max"),
        }),
    }
}

/// Shows the progress of the active run.
pub fn show_progress(progress: &RunProgress) -> Markup {
    let seconds = progress.elapsed.as_secs_f64().max(1e-3);
    let speed = texts::speed(
        progress.files_read as f64 / seconds,
        progress.bytes_read as f64 / 1e6 / seconds,
    );
    let count = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
    let files = texts::files(&count(progress.files_read), &count(progress.files_total));
    html! {
        div .panel {
            @if progress.files_total == 0 {
                p { (texts::WALKING) }
                progress aria-label=(texts::WALKING) {}
            } @else {
                p .row .spread {
                    strong { (files) }
                    span .muted { (speed) " · " (duration(seconds)) }
                }
                progress max=(progress.files_total) value=(progress.files_read) aria-label=(files) {}
                dl .cards .inner {
                    div { dt { (texts::DOCUMENTS) } dd { (count(progress.documents)) } }
                    div { dt { (texts::FAILURES) } dd { (count(progress.failures)) } }
                }
            }
        }
        @if !progress.stages.is_empty() {
            h2 { (texts::PIPELINE_NOW) }
            (show_stages(&progress.stages))
        }
    }
}

/// The width of the bars, in SVG units.
const WIDTH: f64 = 100.0;

/// Shows the stages as bars: the shares of time in which their threads worked and waited, and the
/// fill level of the queue to the next stage.
pub fn show_stages(stages: &[StageProgress]) -> Markup {
    let queues = stages.iter().filter_map(|stage| stage.queue_bytes);
    let queue_max = queues.map(|queue| queue.max).max().unwrap_or(0);
    html! {
        div .panel {
            p .legend .small {
                span .busy { (texts::WORKING) } span .input { (texts::WAITING_INPUT) }
                span .output { (texts::WAITING_OUTPUT) }
                @if queue_max > 0 { span .queue { (texts::QUEUE_LEGEND) } }
            }
            ol .stages {
                @for stage in stages {
                    @let (shares, name) = (shares(stage), texts::stage_name(&stage.name));
                    li {
                        div .stage-name {
                            strong { (name) }
                            span .muted .small { "× " (stage.threads) }
                        }
                        svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img"
                            aria-label=(texts::stage(name, shares.busy, shares.input, shares.output)) {
                            rect .rest x="0" y="0" width="100" height="10" {}
                            rect .busy x="0" y="0" width=(format!("{:.2}", shares.busy)) height="10" {}
                            rect .input x=(format!("{:.2}", shares.busy)) y="0" width=(format!("{:.2}", shares.input)) height="10" {}
                            rect .output x=(format!("{:.2}", shares.busy + shares.input)) y="0" width=(format!("{:.2}", shares.output)) height="10" {}
                        }
                        @if let Some(queue) = stage.queue_bytes { (show_queue(queue, queue_max)) }
                    }
                }
            }
        }
    }
}

/// Shows the fill level of a queue: the mean as a bar, the maximum as a mark.
fn show_queue(queue: QueueBytes, scale: u64) -> Markup {
    let share = |bytes: u64| bytes as f64 / scale.max(1) as f64 * WIDTH;
    let label = texts::queue(&bytes(queue.mean as f64), &bytes(queue.max as f64));
    html! {
        div .queue {
            svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                rect .rest x="0" y="3" width="100" height="4" {}
                rect .depth x="0" y="3" width=(format!("{:.2}", share(queue.mean))) height="4" {}
                rect .most x=(format!("{:.2}", (share(queue.max) - 0.6).max(0.0))) y="0" width="0.6" height="10" {}
            }
            p .muted .small { (texts::QUEUE) ": " (label) }
        }
    }
}

/// The shares of a stage's thread time, in percent.
struct Shares {
    busy: f64,
    input: f64,
    output: f64,
}

fn shares(stage: &StageProgress) -> Shares {
    let all = stage.busy_ms + stage.input_wait_ms + stage.output_wait_ms;
    let share = |part: f64| if all > 0.0 { part / all * WIDTH } else { 0.0 };
    Shares {
        busy: share(stage.busy_ms),
        input: share(stage.input_wait_ms),
        output: share(stage.output_wait_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, array, doc};

    #[test]
    fn runs_have_speeds_and_stages() {
        let stages = array![{
            "stage": "extract", "threads": 2, "items": 5, "busy_ms": 75.0, "input_wait_ms": 25.0,
            "output_wait_ms": 0.0, "queue_bytes_mean": 10, "queue_bytes_max": 20
        }];
        let run = doc! {
            "started": (Value::DateTime(1_000)), "ended": (Value::DateTime(3_000)),
            "files_read": 10i64, "bytes_read": 4_000_000i64, "pipeline": (stages),
        };
        let run = EndedRun::new(run.as_document());
        assert_eq!(run.speed().as_deref(), Some("5 files/s, 2.0 MB/s"));
        let shares = shares(&run.stages[0]);
        assert_eq!(
            (shares.busy, shares.input, shares.output),
            (75.0, 25.0, 0.0)
        );
        assert_eq!(
            run.stages[0].queue_bytes,
            Some(QueueBytes { mean: 10, max: 20 })
        );
    }
}
