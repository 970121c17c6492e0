//! What the page shows and changes of how folders are indexed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use windrow_ingest::{Progress, StageReport, text_to_path};
use windrow_page::{FolderServices, RunProgress, StageProgress, StartedRun};

use crate::config;

/// The run of this process.
#[derive(Clone)]
pub struct RunWatch {
    pub progress: Arc<Progress>,
    /// Set when the run has ended.
    pub is_ended: Arc<AtomicBool>,
    pub started: Instant,
}

/// A run that a person has started.
type StartedChild = Arc<Mutex<Option<(Child, Instant)>>>;

/// Returns the services for the data folder. `config` is the configuration, if it is not the usual one.
pub fn folder_services(
    data_folder: &Path,
    config: Option<PathBuf>,
    run: Option<RunWatch>,
) -> FolderServices {
    let file = config.or_else(config::default_file);
    let [read_file, check_file, write_file, run_file] = [(); 4].map(|()| file.clone());
    let data_folder = data_folder.to_owned();
    let child = StartedChild::default();
    let running = child.clone();
    FolderServices {
        progress: Box::new(move || progress(run.as_ref(), &running)),
        config_path: file.map(|file| file.display().to_string()),
        read_config: Box::new(move || read_config(read_file.as_deref())),
        check_config: Box::new(move |text| config::check_text(text, check_file.as_deref())),
        write_config: Box::new(move |text| write_config(write_file.as_deref(), text)),
        start_run: Box::new(move |run| start_run(&child, &data_folder, run_file.as_deref(), &run)),
    }
}

/// Returns the progress of the run of this process, or says that a started one goes on.
fn progress(run: Option<&RunWatch>, child: &StartedChild) -> Option<RunProgress> {
    if let Some(run) = run.filter(|run| !run.is_ended.load(Ordering::Relaxed)) {
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let progress = &run.progress;
        return Some(RunProgress {
            files_total: get(&progress.files_total),
            files_read: get(&progress.files_read),
            bytes_total: get(&progress.bytes_total),
            bytes_read: get(&progress.bytes_read),
            documents: get(&progress.documents),
            failures: get(&progress.failures),
            elapsed: run.started.elapsed(),
            stages: progress.pipeline.stages().iter().map(stage).collect(),
        });
    }
    let started = has_ended(child);
    started.map(|started| RunProgress {
        elapsed: started.elapsed(),
        ..RunProgress::default()
    })
}

fn stage(report: &StageReport) -> StageProgress {
    let queue = report.queue.as_ref();
    StageProgress {
        name: report.name.to_owned(),
        threads: report.threads as u64,
        items: report.items,
        busy_ms: report.busy.as_secs_f64() * 1e3,
        input_wait_ms: report.input_wait.as_secs_f64() * 1e3,
        output_wait_ms: report.output_wait.as_secs_f64() * 1e3,
        queue_bytes: queue.map(|queue| (queue.bytes_mean, queue.bytes_max)),
    }
}

/// Returns since when a started run goes on. Forgets one that has ended.
fn has_ended(child: &StartedChild) -> Option<Instant> {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    let (process, started) = child.as_mut()?;
    match process.try_wait() {
        Ok(None) => Some(*started),
        _ => {
            *child = None;
            None
        }
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

/// Replaces the file as a whole, so that a reader sees the old or the new one.
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

/// Starts `windrow index` beside this process, which has the data folder open.
fn start_run(
    child: &StartedChild,
    data_folder: &Path,
    config: Option<&Path>,
    run: &StartedRun,
) -> Result<(), String> {
    if has_ended(child).is_some() {
        return Err("a run goes on already".to_owned());
    }
    let fail = |error: io::Error| format!("the run cannot start: {error}");
    let mut command = Command::new(std::env::current_exe().map_err(fail)?);
    command.arg("index").arg("--data").arg(data_folder);
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
    let null = || Stdio::null();
    let started = command.stdin(null()).stdout(null()).stderr(null()).spawn();
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    *child = Some((started.map_err(fail)?, Instant::now()));
    Ok(())
}

fn has_folders(config: &Path) -> bool {
    config::Config::read(config).is_ok_and(|config| !config.folders.is_empty())
}
