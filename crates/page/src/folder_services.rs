//! What the page needs of the program to show and change how folders are indexed.

use std::fmt;
use std::time::Duration;

/// What the page needs of the program to show and change how folders are indexed. Functions that read
/// files or start processes are called only for the user of the machine that runs the program.
pub struct FolderServices {
    /// Returns the progress of a run in this process. `None` if there is none.
    pub progress: Box<dyn Fn() -> Option<RunProgress> + Send + Sync>,
    /// The path of the configuration file. `None` if the system has no folder for it.
    pub config_path: Option<String>,
    /// Reads the configuration file. An empty text if there is none.
    pub read_config: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
    /// Checks a configuration. Returns what is no error, but may be a mistake.
    pub check_config: ConfigFunction<Vec<String>>,
    /// Replaces the configuration file by a text that was checked.
    pub write_config: ConfigFunction<()>,
    /// Starts a run in a process of its own. It also reads unchanged files that failed, if they are to
    /// be retried.
    pub start_run: Box<dyn Fn(StartedRun) -> Result<(), String> + Send + Sync>,
    /// Ends the run that a person has started. The next one continues it. Returns `false` if there is
    /// none.
    pub stop_run: Box<dyn Fn() -> bool + Send + Sync>,
    /// Returns why the newest run that a person has started failed, in a sentence.
    pub run_problem: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

/// Does something with the text of a configuration. Fails with a sentence.
pub type ConfigFunction<T> = Box<dyn Fn(&str) -> Result<T, String> + Send + Sync>;

impl fmt::Debug for FolderServices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FolderServices")
    }
}

/// A run that a person starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedRun {
    /// The folders. Empty for those of the configuration.
    pub folders: Vec<String>,
    /// Also reads unchanged files that failed.
    pub retries: bool,
}

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunProgress {
    /// The files to read. 0 until the folders are walked.
    pub files_total: u64,
    /// The files that were read.
    pub files_read: u64,
    /// The bytes to read.
    pub bytes_total: u64,
    /// The bytes that were read.
    pub bytes_read: u64,
    /// The documents that were stored.
    pub documents: u64,
    /// The files and members that could not be read.
    pub failures: u64,
    /// How long the run takes by now.
    pub elapsed: Duration,
    /// The stages, in the order in which files go through them. Empty until a started run has begun.
    pub stages: Vec<StageProgress>,
    /// A person has started it from the page, and can stop it.
    pub can_stop: bool,
}

/// What a stage of a run did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageProgress {
    /// Its name.
    pub name: String,
    /// Its threads or processes.
    pub threads: u64,
    /// What it has processed.
    pub items: u64,
    /// How long its threads worked, in milliseconds.
    pub busy_ms: f64,
    /// How long they waited for the stage before.
    pub input_wait_ms: f64,
    /// How long they waited for the stage behind.
    pub output_wait_ms: f64,
    /// The mean and the greatest number of bytes in the queue to the next stage.
    pub queue_bytes: Option<(u64, u64)>,
}
