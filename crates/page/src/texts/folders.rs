//! The texts about folders.

pub const NAME: &str = "Folders";
pub const TITLE: &str = "Folders";
pub const NO_FILES: &str = "No files are indexed yet.";
pub const HOW_TO_INDEX: &str = "Make the files of a folder searchable with this command:";
pub const DOCUMENTS: &str = "Documents";
pub const FAILURES: &str = "Failures";
pub const SKIPPED: &str = "Without text";
pub const LAST_RUN: &str = "Last run";
pub const INDEXED_FOLDERS: &str = "Indexed folders";
pub const FOLDER: &str = "Folder";
pub const RUNS: &str = "Runs";
pub const ENDED: &str = "Ended";
pub const TOOK: &str = "Duration";
pub const READ: &str = "Files read";
pub const SPEED: &str = "Speed";
pub const NEW: &str = "New";
pub const CHANGED: &str = "Changed";
pub const REMOVED: &str = "Removed";
pub const FAILED: &str = "Failed";
pub const NOW: &str = "Now";
pub const WALKING: &str = "A run is active …";
pub const PIPELINE: &str = "Where the time of the last run went";
pub const PIPELINE_NOW: &str = "Where the time goes";
pub const WORKING: &str = "working";
pub const WAITING_INPUT: &str = "waiting for the stage before";
pub const WAITING_OUTPUT: &str = "waiting for the stage behind";
pub const QUEUE: &str = "Queue";
pub const BY_REASON: &str = "Failures by reason";
pub const ALL: &str = "All";
pub const PATH: &str = "File";
pub const REASON: &str = "Reason";
pub const NO_FAILURES: &str = "All files could be read.";
pub const RETRY: &str = "Read failed files again";
pub const START: &str = "Look for changed files";
pub const STOP: &str = "Stop the run";
pub const STOPPED: &str = "The run was stopped. The next one continues it.";
pub const QUEUE_LEGEND: &str = "queue: on average, at most";
pub const MISSING: &str = "Missing converters";
pub const MISSING_LEAD: &str =
    "These programs read further formats. Install them, then read the failed files again.";
pub const CONFIGURATION: &str = "Configuration";
pub const CONFIGURATION_LEAD: &str = "Which folders are indexed, and how their files are read.";
pub const CHECK: &str = "Check";
pub const SAVE: &str = "Save";
pub const SAVED: &str = "The configuration is saved.";
pub const VALID: &str = "The configuration has no errors.";
pub const EXAMPLE: &str = "[[folder]]\npath = \"~/Documents\"\nskip = [\"*.tmp\"]";
pub const EDIT: &str = "Text of the configuration";
pub const PREVIOUS: &str = "Previous";
pub const NEXT: &str = "Next";
pub const PAGES: &str = "Pages";

/// Classes of failures with their labels.
const CLASSES: [(&str, &str); 11] = [
    ("unreadable", "Not readable"),
    ("malformed", "Damaged"),
    ("encrypted", "Encrypted"),
    ("no_text", "Pictures of pages"),
    ("limit", "Over a limit"),
    ("deadline", "Took too long"),
    ("crashed", "Reader crashed"),
    ("missing_converter", "Missing converter"),
    ("converter", "Converter failed"),
    ("refused", "Refused by the database"),
    ("unfinished", "Not finished"),
];

/// Stages of runs with their labels.
const STAGES: [(&str, &str); 6] = [
    ("walk", "Find files"),
    ("extract", "Read files"),
    ("write", "Store documents"),
    ("index", "Make index entries"),
    ("merge", "Merge"),
    ("finish", "Finish"),
];

/// Returns the label of a stage.
pub fn stage_name(name: &str) -> &str {
    let known = STAGES.iter().find(|(known, _)| *known == name);
    known.map_or(name, |(_, shown)| shown)
}

/// Returns the label of a class of failures.
pub fn class(name: &str) -> &str {
    let known = CLASSES.iter().find(|(known, _)| *known == name);
    known.map_or(name, |(_, shown)| shown)
}

/// Says how many files were read.
pub fn files(read: &str, total: &str) -> String {
    format!("{read} of {total} files")
}

/// Says why a run failed.
pub fn run_failed(message: &str) -> String {
    format!("The run failed: {message}")
}

/// Says how fast files are read.
pub fn speed(files: f64, megabytes: f64) -> String {
    let files = crate::show::grouped(files.round() as i64);
    format!("{files} files/s, {megabytes:.1} MB/s")
}

/// Says how full a queue is.
pub fn queue(mean: &str, most: &str) -> String {
    format!("{mean} on average, {most} at most")
}

/// Describes a stage to a screen reader.
pub fn stage(name: &str, busy: f64, input: f64, output: f64) -> String {
    format!(
        "{name}: {busy:.0} % working, {input:.0} % waiting for the stage before, {output:.0} % waiting for the stage behind"
    )
}
