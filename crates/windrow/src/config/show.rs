//! Formats the configuration with all values, including defaults.

use serde::{Serialize, Serializer};
use windrow_ingest::{WalkOptions, WatchOptions, WorkerPool};

use super::{Config, Folder, Limits, Rules, Size, Watch};
use crate::command_line::Failure;
use crate::{extract_worker, memory};

/// Returns the text of a file with all values.
pub fn format(config: &Config) -> Result<String, Failure> {
    let worker = extract_worker::worker_config().map_err(Failure::runtime)?;
    let worker = config.apply(worker);
    let workers = WorkerPool::new(worker.clone()).workers();
    let memory_bytes = memory::default_memory_bytes();
    let rescan = WatchOptions::default().rescan;
    let defaults = Rules::default().or(&config.defaults);
    let folders = config.roots().into_iter();
    let shown = Config {
        data: config.data.clone(),
        workers: config.workers.or(Some(workers)),
        memory: config.memory.or(Some(Size(memory_bytes))),
        nice: config.nice.or(Some(0)),
        io_priority: config.io_priority,
        sandbox: Some(config.programs.sandbox),
        watch: Watch {
            rescan: config.watch.rescan.or(Some(rescan.as_secs())),
            schedule: config.watch.schedule,
            on_battery: config.watch.on_battery.or(Some(true)),
        },
        limits: Limits::from_config(&worker),
        ocr: config.ocr.clone(),
        convert: config.convert.clone(),
        programs: config.programs.clone(),
        defaults: rules(&defaults),
        folders: folders
            .map(|root| {
                let rules = rules(&root.options);
                Folder {
                    path: root.path,
                    include: rules.include,
                    skip: rules.skip,
                    gitignore: rules.gitignore,
                    hidden: rules.hidden,
                    follow_links: rules.follow_links,
                    languages: rules.languages,
                }
            })
            .collect(),
    };
    toml::to_string(&shown).map_err(Failure::runtime)
}

fn rules(options: &WalkOptions) -> Rules {
    Rules {
        include: Some(options.include.clone()),
        skip: Some(options.skip.clone()),
        gitignore: Some(options.gitignore),
        hidden: Some(options.hidden),
        follow_links: Some(options.follow_links),
        languages: Some(options.languages.clone()),
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const MIB: u64 = 1 << 20;
        let Size(bytes) = *self;
        match bytes % MIB {
            0 if bytes > 0 => serializer.serialize_str(&format!("{}MiB", bytes / MIB)),
            _ => serializer.serialize_u64(bytes),
        }
    }
}
