//! Shows the progress of `windrow index`: a bar on a terminal, otherwise a line every ten seconds.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windrow_ingest::Progress;

const BAR_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(10);
const BAR_CELLS: u64 = 24;
/// Moves the cursor to the start of the line and clears the line.
const CLEAR_LINE: &str = "\r\x1b[K";
/// Disables line wrapping. A narrow terminal then truncates the bar. A wrapped line could not be
/// cleared.
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";

/// Shows the progress until the flag is set.
pub type Display = fn(&Progress, &AtomicBool);

/// Runs `work` while another thread shows its progress.
pub fn with_display<T>(progress: &Progress, show: Display, work: impl FnOnce() -> T) -> T {
    let is_finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let display = scope.spawn(|| show(progress, &is_finished));
        let result = work();
        is_finished.store(true, Ordering::Relaxed);
        display.thread().unpark();
        result
    })
}

/// Shows the progress on standard error until `is_finished` is set.
pub fn show_progress(progress: &Progress, is_finished: &AtomicBool) {
    let started = Instant::now();
    let is_terminal = io::stderr().is_terminal();
    let interval = if is_terminal {
        BAR_INTERVAL
    } else {
        LINE_INTERVAL
    };
    let mut next = started + interval;
    while !is_finished.load(Ordering::Relaxed) {
        let rest = next.saturating_duration_since(Instant::now());
        thread::park_timeout(rest.min(BAR_INTERVAL));
        if Instant::now() < next {
            continue;
        }
        next += interval;
        let status = ProgressStatus::new(progress, started.elapsed());
        let mut to = io::stderr().lock();
        // Errors are ignored: if standard error is closed, there is no reader.
        let _ = if is_terminal {
            write!(to, "{CLEAR_LINE}{WRAP_OFF}{}{WRAP_ON}", status.format_bar())
        } else {
            writeln!(to, "{}", status.format_line())
        };
        let _ = to.flush();
    }
    if is_terminal {
        let _ = write!(io::stderr(), "{CLEAR_LINE}");
    }
}

/// A snapshot of the counters.
struct ProgressStatus {
    files: u64,
    files_total: u64,
    /// The completed share of the work in thousandths. It is the mean of the shares of bytes and
    /// files, because each file has a fixed cost.
    thousandths: u64,
    documents: u64,
    failures: u64,
    seconds: f64,
}

impl ProgressStatus {
    fn new(progress: &Progress, elapsed: Duration) -> ProgressStatus {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (files, files_total) = (get(&progress.files_read), get(&progress.files_total));
        let (bytes, bytes_total) = (get(&progress.bytes_read), get(&progress.bytes_total));
        ProgressStatus {
            files,
            files_total,
            thousandths: (compute_thousandths(files, files_total)
                + compute_thousandths(bytes, bytes_total))
                / 2,
            documents: get(&progress.documents),
            failures: get(&progress.failures),
            seconds: elapsed.as_secs_f64(),
        }
    }

    fn format_bar(&self) -> String {
        let full = usize::try_from(self.thousandths * BAR_CELLS / 1000).unwrap_or(0);
        let empty = usize::try_from(BAR_CELLS).unwrap_or(0).saturating_sub(full);
        format!(
            "[{}{}] {}",
            "█".repeat(full),
            "░".repeat(empty),
            self.format_line()
        )
    }

    fn format_line(&self) -> String {
        if self.files_total == 0 {
            return "looking for files".to_owned();
        }
        let failures = match self.failures {
            0 => String::new(),
            failures => format!(", {} failures", format_grouped(failures)),
        };
        let is_read = self.files == self.files_total;
        let rest = if is_read {
            ", completing the index"
        } else {
            ""
        };
        format!(
            "{:3} % {} of {} files, {} documents{failures}, {:.0} s{rest}",
            self.thousandths / 10,
            format_grouped(self.files),
            format_grouped(self.files_total),
            format_grouped(self.documents),
            self.seconds
        )
    }
}

fn compute_thousandths(part: u64, whole: u64) -> u64 {
    match whole {
        0 => 1000,
        whole => (u128::from(part) * 1000 / u128::from(whole)).min(1000) as u64,
    }
}

/// Formats a number with a comma between groups of three digits.
pub fn format_grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, expected) in cases {
            assert_eq!(format_grouped(number), expected);
        }
    }

    #[test]
    fn the_bar_shows_the_completed_share() {
        let check = |files: u64, bytes: u64, expected: &str| {
            let progress = Progress::default();
            let set = |counter: &AtomicU64, value| counter.store(value, Ordering::Relaxed);
            set(&progress.files_total, 10);
            set(&progress.bytes_total, 1000);
            set(&progress.files_read, files);
            set(&progress.bytes_read, bytes);
            set(&progress.failures, files / 10);
            let status = ProgressStatus::new(&progress, Duration::from_secs(2));
            assert_eq!(status.format_bar(), expected);
        };
        check(
            0,
            0,
            "[░░░░░░░░░░░░░░░░░░░░░░░░]   0 % 0 of 10 files, 0 documents, 2 s",
        );
        check(
            5,
            500,
            "[████████████░░░░░░░░░░░░]  50 % 5 of 10 files, 0 documents, 2 s",
        );
        check(
            10,
            1000,
            "[████████████████████████] 100 % 10 of 10 files, 0 documents, 1 failures, 2 s, \
             completing the index",
        );
    }

    #[test]
    fn progress_before_the_walk_has_no_counts() {
        let status = ProgressStatus::new(&Progress::default(), Duration::ZERO);
        assert_eq!(status.format_line(), "looking for files");
    }
}
