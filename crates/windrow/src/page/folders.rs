//! The folder services of the web page.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use windrow_ingest::{Progress, text_to_path};
use windrow_page::{FolderServices, RunProgress, RunRequest};

use super::page_runs::PageRuns;
use crate::config;
use crate::progress_line::run_progress;

/// The run of this process.
#[derive(Clone)]
pub struct RunWatch {
    pub progress: Arc<Progress>,
    /// Set when the run has ended.
    pub is_ended: Arc<AtomicBool>,
    pub started: Instant,
}

/// Returns the services for a data folder. `config` is the path of the configuration. `None` is the
/// default path.
pub fn folder_services(
    data_folder: &Path,
    config: Option<PathBuf>,
    run: Option<RunWatch>,
) -> FolderServices {
    let file = config.or_else(config::default_file);
    let [read_file, check_file, write_file, run_file] = [(); 4].map(|()| file.clone());
    let data_folder = data_folder.to_owned();
    let started = PageRuns::default();
    let [running, stopped, failed] = [(); 3].map(|()| started.clone());
    FolderServices {
        progress: Box::new(move || progress(run.as_ref(), &running)),
        config_path: file.map(|file| file.display().to_string()),
        read_config: Box::new(move || read_config(read_file.as_deref())),
        check_config: Box::new(move |text| config::check_text(text, check_file.as_deref())),
        write_config: Box::new(move |text| write_config(write_file.as_deref(), text)),
        start_run: Box::new(move |run| {
            let command = run_command(&data_folder, run_file.as_deref(), &run)?;
            started.start(command)
        }),
        stop_run: Box::new(move || stopped.stop()),
        run_problem: Box::new(move || failed.problem()),
    }
}

/// Returns the progress of the run of this process, or else of the run that was started from the
/// page.
fn progress(run: Option<&RunWatch>, started: &PageRuns) -> Option<RunProgress> {
    match run.filter(|run| !run.is_ended.load(Ordering::Relaxed)) {
        Some(run) => Some(run_progress(&run.progress, run.started.elapsed())),
        None => started.progress(),
    }
}

const NO_PLACE: &str = "the system does not say where the configuration is";

fn read_config(file: Option<&Path>) -> Result<String, String> {
    let file = file.ok_or(NO_PLACE)?;
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

/// Replaces the file atomically, so that readers see either the old or the new content.
fn write_config(file: Option<&Path>, text: &str) -> Result<(), String> {
    let file = file.ok_or(NO_PLACE)?;
    let fail = |error: io::Error| format!("{}: {error}", file.display());
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(fail)?;
    let new = file.with_extension(format!("{}.new", std::process::id()));
    fs::write(&new, text).map_err(fail)?;
    if let Ok(metadata) = fs::metadata(file) {
        fs::set_permissions(&new, metadata.permissions()).map_err(fail)?;
    }
    fs::rename(&new, file).map_err(fail)
}

/// Returns the command `windrow index` for a run beside this process, which has the data folder
/// open.
fn run_command(
    data_folder: &Path,
    config: Option<&Path>,
    run: &RunRequest,
) -> Result<Command, String> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| format!("the run cannot start: {error}"))?;
    let mut command = Command::new(program);
    command.arg("index").arg("--data").arg(data_folder);
    command.args(["--progress", "json"]);
    match config.filter(|file| has_folders(file)) {
        Some(file) => {
            command.arg("--config").arg(file);
        }
        None if run.folders.is_empty() => return Err("no folders are indexed yet".to_owned()),
        None => {
            command.args(run.folders.iter().filter_map(|folder| text_to_path(folder)));
        }
    }
    if run.retries {
        command.arg("--retry");
    }
    Ok(command)
}

fn has_folders(config: &Path) -> bool {
    config::Config::read(config).is_ok_and(|config| !config.folders.is_empty())
}
