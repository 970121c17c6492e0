//! The settings of `windrow index`: its command line, completed by the configuration.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use windrow_converters::SettingsEntry;
use windrow_ingest::{FileSigner, IngestError, WalkOptions, WalkRoot, WorkerPool, WriterOptions};

use super::options::Options;
use super::pauses::Pauses;
use crate::command_line::Failure;
use crate::config::{Config, IoPriority, read_configured};
use crate::data_folder::{DataFolder, engine_options};
use crate::{encryption, extract_worker, memory};

/// The settings of a run.
pub struct Settings {
    folders: Vec<WalkRoot>,
    data_folder: PathBuf,
    memory_bytes: u64,
    pub pool: WorkerPool,
    /// The settings that determine how files are read. `None` without a configuration.
    pub entries: Option<Vec<SettingsEntry>>,
    pub writers: WriterOptions,
    /// The number of threads of the database. `None` is the number of cores.
    index_threads: Option<usize>,
    /// The run uses no more cores than it has workers.
    limits_cores: bool,
    nice: u8,
    io_priority: Option<IoPriority>,
    /// The interval of complete walks of watched folders.
    pub rescan: Option<Duration>,
    pub pauses: Pauses,
}

impl Settings {
    /// Combines the command line with the configuration that it names. If it names no folders, the
    /// default configuration is used.
    pub fn new(options: &Options) -> Result<Settings, Failure> {
        let is_configured = options.config.is_some() || options.folders.is_empty();
        let config = if is_configured {
            read_configured(options.config.as_deref())?
        } else {
            None
        };
        if config.is_none() && options.folders.is_empty() {
            return Err(Failure::missing_argument("FOLDER", "index"));
        }
        let entries = config.as_ref().map(Config::settings_entries);
        let config = config.unwrap_or_default();
        let data_folder = options.data_folder.clone().or_else(|| config.data.clone());
        let worker = extract_worker::worker_config().map_err(Failure::runtime)?;
        let pool = WorkerPool::new(config.apply(worker));
        let folders = folders(options, &config);
        if folders.is_empty() {
            let reason = "the configuration has no [[folder]]; add one or name a FOLDER";
            return Err(Failure::usage(reason));
        }
        let extract = options.threads.map(|threads| threads.extract);
        let workers = extract.or(options.workers).or(config.workers);
        let writers = WriterOptions::default();
        Ok(Settings {
            folders,
            data_folder: data_folder
                .ok_or_else(|| Failure::missing_argument("--data DIR", "index"))?,
            memory_bytes: memory_bytes(options, &config)?,
            pool: match workers {
                Some(workers) => pool.with_workers(workers),
                None => pool,
            },
            entries,
            writers: WriterOptions {
                threads: options.threads.map(|threads| threads.write),
                queue_bytes: options.queue_bytes.unwrap_or(writers.queue_bytes),
            },
            index_threads: options.threads.map(|threads| threads.index),
            limits_cores: options.threads.is_none(),
            nice: config.nice.unwrap_or_default(),
            io_priority: config.io_priority,
            rescan: options
                .rescan
                .or(config.watch.rescan)
                .map(Duration::from_secs),
            pauses: Pauses {
                schedule: config.watch.schedule,
                on_battery: !config.watch.on_battery.unwrap_or(true),
            },
        })
    }

    /// Opens the data folder, or finds the server that has it open.
    pub fn open_data_folder(&self) -> Result<DataFolder, Failure> {
        let mut options = engine_options(self.memory_bytes, encryption::key_from_environment()?);
        options.threads = self.index_threads.unwrap_or(options.threads);
        DataFolder::open_with(&self.data_folder, &options, Duration::ZERO).map_err(Failure::runtime)
    }

    /// Fails if there are neither folders nor a database, so that a misspelt data folder is not
    /// created.
    pub fn refuse_missing_folders(&self) -> Result<(), Failure> {
        let mut folders = self.folders.iter().map(|root| &root.path);
        let Some(missing) = folders.next().filter(|path| !path.exists()) else {
            return Ok(());
        };
        if DataFolder::exists(&self.data_folder) || folders.any(|path| path.exists()) {
            return Ok(());
        }
        Err(Failure::runtime(IngestError::MissingFolder(
            missing.clone(),
        )))
    }

    /// Reads or creates the key that signs indexed files. The data folder must exist.
    pub fn file_signer(&self) -> Result<FileSigner, Failure> {
        let signer = FileSigner::open_or_create(&self.data_folder);
        signer.map_err(|error| Failure::runtime(format!("the key of indexed files: {error}")))
    }

    pub fn data_folder(&self) -> &Path {
        &self.data_folder
    }

    /// Returns the folders to walk. The data folder must exist, because its path is excluded from
    /// the walk.
    pub fn roots(&self) -> Result<Vec<WalkRoot>, Failure> {
        let own = self.data_folder.canonicalize().map_err(|error| {
            let folder = self.data_folder.display();
            Failure::runtime(format!("the data folder {folder}: {error}"))
        })?;
        let mut roots = self.folders.clone();
        for root in &mut roots {
            root.options.exclude.push(own.clone());
        }
        Ok(roots)
    }

    /// If there are fewer workers than cores, restricts this process and its children to as many
    /// cores as workers. Must be called before threads are started.
    pub fn limit_cores(&self) -> Result<(), Failure> {
        let own =
            sched_getaffinity(None).map_err(|error| Failure::runtime(format!("cores: {error}")))?;
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|core| own.is_set(*core))
            .collect();
        let workers = self.pool.workers();
        if !self.limits_cores || workers >= allowed.len() {
            return Ok(());
        }
        // A different start for each process, so that several runs do not use the same cores.
        let current = sched_getcpu();
        let first = allowed.iter().position(|core| *core == current);
        let mut chosen = CpuSet::new();
        for core in allowed
            .iter()
            .cycle()
            .skip(first.unwrap_or(0))
            .take(workers)
        {
            chosen.set(*core);
        }
        sched_setaffinity(None, &chosen)
            .map_err(|error| Failure::runtime(format!("cores: {error}")))
    }

    /// Lowers the priority of this process and of its children. Must be called before threads are
    /// started, because threads inherit the priority.
    pub fn lower_priority(&self) -> Result<(), Failure> {
        if self.nice > 0 {
            let result = rustix::process::nice(self.nice.into());
            result.map_err(|error| Failure::runtime(format!("nice: {error}")))?;
        }
        let Some(priority) = self.io_priority else {
            return Ok(());
        };
        let status = Command::new("ionice")
            .args(priority.ionice_arguments())
            .args(["-p", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::runtime(format!("io-priority: ionice: {status}"))),
            Err(error) => Err(Failure::runtime(format!(
                "io-priority needs the command ionice of util-linux: {error}"
            ))),
        }
    }
}

/// Returns the folders of the command line or of the configuration, with their rules.
fn folders(options: &Options, config: &Config) -> Vec<WalkRoot> {
    let mut roots = config.roots();
    if !options.folders.is_empty() {
        let root = |path: &PathBuf| WalkRoot {
            path: path.clone(),
            options: config.rules_for(path),
        };
        roots = options.folders.iter().map(root).collect();
    }
    for root in &mut roots {
        add_rules(&mut root.options, &options.rules);
    }
    roots
}

fn add_rules(rules: &mut WalkOptions, more: &WalkOptions) {
    rules.include.extend(more.include.iter().cloned());
    rules.skip.extend(more.skip.iter().cloned());
    rules.gitignore |= more.gitignore;
    rules.hidden |= more.hidden;
    rules.follow_links |= more.follow_links;
}

fn memory_bytes(options: &Options, config: &Config) -> Result<u64, Failure> {
    match (options.memory_bytes, config.memory) {
        (Some(bytes), _) => Ok(bytes),
        (None, Some(size)) => memory::check(size.0)
            .map_err(|reason| Failure::Runtime(format!("the configuration: memory: {reason}"))),
        (None, None) => Ok(memory::default_memory_bytes()),
    }
}
